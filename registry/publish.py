"""The author's side of git: commits and tags that exist only once pushed.

Objects are written first and pushed by their ids, branch and tag in one
atomic push; local refs and files move only when the remote has accepted. A
rejected push therefore leaves nothing half-done.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import git

from registry.errors import RegistrationError
from registry.plain_text import without_credentials


def write_blob(repository: git.Repo, data: bytes, kind: str = "blob") -> str:
    """Write an object; returns its id. Never filtered: bytes are bytes."""
    with _pipe(data) as stream:
        return str(repository.git.hash_object("-t", kind, "-w", "--stdin", istream=stream))


def _write_files(repository: git.Repo, paths: list[Path]) -> dict[Path, str]:
    """Write the bytes of files as blobs, in one process for all whose names have no line break."""
    broken = {path for path in paths if set(str(path.absolute())) & {"\n", "\r"}}
    written = {path: write_blob(repository, path.read_bytes()) for path in broken}
    if listed := [path for path in paths if path not in broken]:
        with _pipe("".join(f"{path.absolute()}\n" for path in listed).encode("utf-8", "surrogateescape")) as stream:
            blobs = repository.git.hash_object("-w", "--no-filters", "--stdin-paths", istream=stream).split()
        written |= zip(listed, blobs, strict=True)
    return written


def write_commit(repository: git.Repo, parent: str | None, files: Mapping[str, bytes | Path], message: str) -> str:
    """A commit on `parent` that adds or replaces `files`; no ref moves.

    Values are bytes, or the path of a file on disk. Returns the commit's id,
    or `parent` itself where nothing changes.
    """
    on_disk = _write_files(repository, [source for source in files.values() if isinstance(source, Path)])
    entries = []
    for path, source in sorted(files.items()):
        blob = write_blob(repository, source) if isinstance(source, bytes) else on_disk[source]
        entries.append(f"100644 {blob}\t{path}\n")
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        if parent:
            repository.git.read_tree(parent, env=index)
        with _pipe("".join(entries).encode()) as stream:
            repository.git.update_index("--index-info", env=index, istream=stream)
        tree = repository.git.write_tree(env=index)
    if parent and repository.git.rev_parse(f"{parent}^{{tree}}") == tree:
        return parent
    parents = ["-p", parent] if parent else []
    return str(repository.git.commit_tree(tree, *parents, "-m", message))


@contextmanager
def _pipe(data: bytes) -> Iterator[IO[bytes]]:
    """A real file for git to read: GitPython hands its descriptor on."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file


def identity(repository: git.Repo) -> str:
    """`Name <mail> seconds +0000` of the committer, for tag objects."""
    return str(repository.git.var("GIT_COMMITTER_IDENT"))


def push(repository: git.Repo, remote: str, refspecs: list[str], again: str) -> None:
    """One atomic push; RegistrationError where it is rejected, with `again`,
    the command that repeats it.
    """
    try:
        repository.git.push("--atomic", "--porcelain", remote, *refspecs)
    except git.GitCommandError as error:
        raise RegistrationError(
            f"the push to {remote} was rejected: {_reason(error)}",
            remedy=f"nothing was registered or changed here; put it right "
            f"(behind the remote: git pull --rebase), then repeat: {again}",
        ) from None


def _reason(error: git.GitCommandError) -> str:
    text = without_credentials(f"{error.stdout or ''}\n{error.stderr or ''}")
    lines = [line.strip(" \t'") for line in text.splitlines()]
    telling = [line for line in lines if line.startswith("!") or "fatal:" in line or "remote:" in line]
    return "; ".join(telling[:3]).replace("\t", " ") or "git gave no reason"


def advance(repository: git.Repo, commit: str, paths: list[str]) -> None:
    """Move the checked-out branch to a pushed child commit; bring `paths` into
    index and working tree. Other local changes stay as they are.
    """
    repository.git.update_ref(f"refs/heads/{repository.active_branch.name}", commit)
    if paths:
        repository.git.checkout(commit, "--", *paths)


def publish(repository: git.Repo, remote: str, files: Mapping[str, bytes | Path], message: str, again: str) -> str:
    """Commit `files` on the checked-out branch and push it; returns the commit."""
    head = repository.head.commit.hexsha
    commit = write_commit(repository, head, files, message)
    branch = repository.active_branch.name
    push(repository, remote, [f"{commit}:refs/heads/{branch}"], again)
    if commit != head:
        advance(repository, commit, list(files))
    return commit
