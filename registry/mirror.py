"""Reading a clone that nobody trusts.

git runs code from a repository's config, filters, hooks and fsmonitor; so
everything is read from one's own mirror clone, by plumbing commands with
argument lists, in a guarded environment, without a checkout.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from registry.errors import CapExceeded, StudyError
from registry.git_objects import ObjectReader, tree_entries
from registry.guarded_git import run_git

MAX_COMMITS = 1_000_000
_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Mirror:
    """A mirror clone, read by plumbing only.

    Objects come from one `git cat-file --batch`, so that thousands of them
    need no process each. Close it, or use it as a context manager.
    """

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = git_dir
        self._objects = ObjectReader(git_dir)

    def __enter__(self) -> Mirror:
        return self

    def __exit__(self, *_: object) -> None:
        self._objects.close()

    def refs(self) -> dict[str, tuple[str, str]]:
        """Every ref: name to (object id, object type)."""
        form = "--format=%(refname)%00%(objectname)%00%(objecttype)"
        lines = run_git(["for-each-ref", form], self.git_dir).stdout.decode("utf-8", "replace").split("\n")
        rows = [line.split("\0") for line in lines if line]
        return {name: (oid, kind) for name, oid, kind in rows}

    def head(self) -> str | None:
        """The commit at HEAD, None in an empty repository."""
        done = run_git(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], self.git_dir, check=False)
        return done.stdout.decode().strip() or None

    def commit_of(self, oid: str) -> str | None:
        """The commit behind an object, through any number of tags; None where
        there is none.
        """
        if not _OID.fullmatch(oid):
            return None
        done = run_git(["rev-parse", "--verify", "--quiet", f"{oid}^{{commit}}"], self.git_dir, check=False)
        return done.stdout.decode().strip() or None

    def object_bytes(self, oid: str, kind: str) -> bytes | None:
        """An object's bytes; None where it is missing or of another kind."""
        if not _OID.fullmatch(oid):
            return None
        found = self._objects.read(oid)
        return found[1] if found and found[0] == kind else None

    def blob(self, commit: str, path: str) -> bytes | None:
        """A file's bytes in a commit; None where there is none, or a link."""
        *folders, name = path.split("/")
        tree = self._tree(commit, folders)
        mode, oid = tree.get(name.encode(), (b"", ""))
        return self.object_bytes(oid, "blob") if mode in (b"100644", b"100755") else None

    def list_files(self, commit: str, folder: str) -> list[str]:
        """Paths of the entries directly in `folder`, sorted."""
        names = self._tree(commit, folder.split("/"))
        return sorted(f"{folder}/{name.decode('utf-8', 'replace')}" for name in names)

    def _tree(self, commit: str, folders: list[str]) -> Mapping[bytes, tuple[bytes, str]]:
        """The entries of a folder in a commit: name to (mode, object id)."""
        found = self._objects.read(f"{commit}^{{tree}}") if _OID.fullmatch(commit) else None
        for folder in folders:
            mode, oid = tree_entries(found[1], len(commit) // 2).get(folder.encode(), (b"", "")) if found else (b"", "")
            found = self._objects.read(oid) if mode == b"40000" else None
        return tree_entries(found[1], len(commit) // 2) if found and found[0] == "tree" else {}

    def parents(self) -> dict[str, tuple[str, ...]]:
        """The commit graph of everything here: commit to its parents."""
        done = run_git(["rev-list", "--all", "--parents", f"--max-count={MAX_COMMITS + 1}"], self.git_dir)
        lines = done.stdout.decode("ascii", "replace").splitlines()
        if len(lines) > MAX_COMMITS:
            raise CapExceeded("the repository has too many commits", value=f"over {MAX_COMMITS}")
        graph = {}
        for line in lines:
            commit, *parents = line.split(" ")
            graph[commit] = tuple(parents)
        return graph

    def parents_of(self, commit: str) -> list[str]:
        """The parents of one commit, by its own object."""
        head = (self.object_bytes(commit, "commit") or b"").partition(b"\n\n")[0].decode("utf-8", "replace")
        return [line.removeprefix("parent ") for line in head.split("\n") if line.startswith("parent ")]

    def is_ancestor(self, ancestor: str, commit: str) -> bool | None:
        """Whether one commit precedes another; None where either is unknown."""
        done = run_git(["merge-base", "--is-ancestor", ancestor, commit], self.git_dir, check=False)
        return {0: True, 1: False}.get(done.returncode)

    def changes(self, commit: str) -> list[tuple[str, str, str]]:
        """(commit, status, path) of every non-adding change on the way to
        `commit`: an append-only history has none.
        """
        arguments = ["log", "--format=%H", "--name-status", "--diff-filter=a", "-m", "--no-renames", commit]
        lines = run_git(arguments, self.git_dir).stdout.decode("utf-8", "replace").splitlines()
        found, current = [], ""
        for line in lines:
            if _OID.fullmatch(line):
                current = line
            elif "\t" in line:
                status, _, path = line.partition("\t")
                found.append((current, status, path))
        return found

    def additions(self, start: str, *folders: str) -> list[tuple[str, str]]:
        """(path, commit) of every file that the history of `start` (a commit,
        or `--all`) added below `folders`, oldest first.
        """
        arguments = ["log", "--reverse", "--topo-order", "-z", "--format=%x01%H", "--name-only", "--no-renames"]
        done = run_git([*arguments, "--diff-filter=A", "-m", start, "--", *folders], self.git_dir)
        found, current = [], ""
        for part in done.stdout.decode("utf-8", "replace").split("\0"):
            text = part.lstrip("\n")
            if text.startswith("\x01"):
                current = text[1:]
            elif text:
                found.append((text, current))
        return found

    def contents(self, folder: str) -> dict[str, frozenset[str]]:
        """Every file that any commit here ever held below `folder`: path to
        the ids of its blobs.
        """
        arguments = ["log", "--all", "-z", "--format=", "--raw", "--no-abbrev", "-m", "--no-renames"]
        done = run_git([*arguments, "--", folder], self.git_dir)
        parts = iter(done.stdout.decode("utf-8", "replace").split("\0"))
        found: dict[str, set[str]] = {}
        for part in parts:
            fields = part.lstrip("\n").split(" ")
            if part.lstrip("\n").startswith(":") and len(fields) == 5:
                path = next(parts, "")
                if set(fields[3]) != {"0"}:
                    found.setdefault(path, set()).add(fields[3])
        return {path: frozenset(blobs) for path, blobs in found.items()}

    def has_merges(self, commit: str) -> bool:
        """Whether the history of `commit` is no single line."""
        done = run_git(["rev-list", "--min-parents=2", "--max-count=1", commit], self.git_dir)
        return bool(done.stdout.strip())


@contextmanager
def mirror_of(repository: Path) -> Iterator[Mirror]:
    """A mirror clone of a repository on disk, gone afterwards.

    Shallow and grafted repositories are refused: their history is a claim.
    Partial ones too: older gits fetch what is missing by running commands
    that the repository names.
    """
    git_dir = run_git(["rev-parse", "--absolute-git-dir"], repository).stdout.decode().strip()
    for name in ("shallow", "info/grafts"):
        if (Path(git_dir) / name).exists():
            raise StudyError(
                "the repository is shallow or grafted: its history is incomplete",
                where=str(repository),
                remedy="clone it whole: git fetch --unshallow, or a clone without --depth",
            )
    partial = ["config", "--local", "--includes", "--get-regexp", r"^(extensions\.partialclone|remote\..*\.promisor)$"]
    if run_git(partial, repository, check=False).stdout:
        raise StudyError(
            "the repository is a partial clone: objects may be missing",
            where=str(repository),
            remedy="clone it whole: a clone without --filter",
        )
    with tempfile.TemporaryDirectory(prefix="trap-mirror-") as folder:
        target = Path(folder) / "mirror.git"
        run_git(
            [
                "clone",
                "--quiet",
                "--mirror",
                "--no-local",
                "--reject-shallow",
                "--",
                str(repository.resolve()),
                str(target),
            ],
            Path(folder),
        )
        with Mirror(target) as mirror:
            yield mirror
