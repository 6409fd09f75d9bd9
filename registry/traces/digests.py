"""Digest of a trace: of a file's bytes, or of a folder's names and files."""

from __future__ import annotations

import hashlib
from pathlib import Path

from registry.canonical import digest
from registry.errors import RecordError
from registry.traces.weka import files_of


def trace_sha256(path: Path) -> str:
    """SHA-256, lower-case hex; of a folder: that of the canonical JSON of the
    sorted names of its session files, each with its own.
    """
    if path.is_dir():
        return digest([[file.name, _file_sha256(file)] for file in files_of(path)])
    return _file_sha256(path)


def _file_sha256(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        raise RecordError("not a regular file", where=str(path))
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
