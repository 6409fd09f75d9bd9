"""The digest of a model's folder: which files an engine was given."""

from __future__ import annotations

import hashlib
from pathlib import Path

from registry.canonical import canonical_bytes
from registry.errors import StudyError

MAX_FILES = 1000


def model_sha256(folder: Path) -> str:
    """SHA-256 over the canonical JSON of {path: SHA-256} of all its files.

    StudyError for a link, or more than `MAX_FILES`: the digest must say what
    the engine reads.
    """
    files: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or len(files) >= MAX_FILES:
            raise StudyError(
                "a model's folder holds a link, or too many files",
                where=str(path),
                remedy=f"plain files, at most {MAX_FILES}",
            )
        if path.is_file():
            with path.open("rb") as file:
                files[path.relative_to(folder).as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    return hashlib.sha256(canonical_bytes(files)).hexdigest()


def model_of(root: Path, name: str) -> Path | None:
    """The model's folder in the study at `root`; None where `name` is a name
    that the engine knows. StudyError for a path that leaves the study.
    """
    path = (root / name).resolve()
    if not path.is_dir():
        return None
    if root.resolve() not in path.parents:
        raise StudyError("the model's folder lies outside the study", where=str(path), remedy="put it inside")
    return path
