"""Reading a clone that nobody trusts.

git runs code from a repository's config, filters, hooks and fsmonitor; so
everything is read from one's own mirror clone, by plumbing commands with
argument lists, in a guarded environment, without a checkout.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from registry.errors import CapExceeded, StudyError

MAX_BLOB_BYTES = 67_108_864
_TIMEOUT_S = 120
_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_GUARDS = [
    "-c",
    "protocol.allow=never",
    "-c",
    "protocol.file.allow=always",
    "-c",
    "protocol.https.allow=always",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "fetch.fsckObjects=true",
    "-c",
    "gc.auto=0",
    "-c",
    "safe.directory=*",
]


def guarded_environment() -> dict[str, str]:
    """An environment in which git reads no configuration but its own."""
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR", "SYSTEMROOT") if key in os.environ}
    return kept | {
        "LC_ALL": "C",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "GIT_OPTIONAL_LOCKS": "0",
    }


def run_git(arguments: list[str], cwd: Path, *, check: bool = True) -> subprocess.CompletedProcess[bytes]:
    """One guarded git command; StudyError with git's words where it fails."""
    try:
        done = subprocess.run(
            ["git", *_GUARDS, *arguments],
            cwd=cwd,
            env=guarded_environment(),
            capture_output=True,
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise StudyError("git is not installed", remedy="install git 2.34 or newer") from None
    except subprocess.TimeoutExpired:
        raise CapExceeded(f"git {arguments[0]} took over {_TIMEOUT_S} s") from None
    if check and done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise StudyError(f"git {arguments[0]} failed: {words[-1] if words else done.returncode}")
    return done


class Mirror:
    """A mirror clone, read by plumbing only."""

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = git_dir

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

    def object_bytes(self, oid: str, kind: str) -> bytes | None:
        """An object's bytes; None where it is missing or of another kind."""
        if not _OID.fullmatch(oid):
            return None
        size = run_git(["cat-file", "-s", oid], self.git_dir, check=False)
        if size.returncode == 0 and int(size.stdout) > MAX_BLOB_BYTES:
            raise CapExceeded("a git object is too large", value=int(size.stdout))
        done = run_git(["cat-file", kind, oid], self.git_dir, check=False)
        return done.stdout if done.returncode == 0 else None

    def blob(self, commit: str, path: str) -> bytes | None:
        """A file's bytes in a commit; None where there is none."""
        done = run_git(["ls-tree", "-z", commit, "--", path], self.git_dir, check=False)
        entry = done.stdout.split(b"\0")[0].decode("utf-8", "replace")
        fields = entry.partition("\t")[0].split(" ")
        if done.returncode != 0 or len(fields) != 3 or fields[0] not in ("100644", "100755"):
            return None
        return self.object_bytes(fields[2], "blob")

    def list_files(self, commit: str, folder: str) -> list[str]:
        """Paths of the files directly in `folder`, sorted."""
        done = run_git(["ls-tree", "-z", "--name-only", commit, "--", f"{folder}/"], self.git_dir, check=False)
        return sorted(p for p in done.stdout.decode("utf-8", "replace").split("\0") if p)

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

    def additions(self, commit: str) -> list[str]:
        """Paths in the order in which the history of `commit` added them."""
        arguments = ["log", "--reverse", "--topo-order", "-z", "--format=", "--name-only", "--diff-filter=A", commit]
        done = run_git(arguments, self.git_dir).stdout.decode("utf-8", "replace")
        return [path for path in done.split("\0") if path]

    def has_merges(self, commit: str) -> bool:
        """Whether the history of `commit` is no single line."""
        done = run_git(["rev-list", "--min-parents=2", "--max-count=1", commit], self.git_dir)
        return bool(done.stdout.strip())


@contextmanager
def mirror_of(repository: Path) -> Iterator[Mirror]:
    """A mirror clone of a repository on disk, gone afterwards.

    Shallow and grafted repositories are refused: their history is a claim.
    """
    git_dir = run_git(["rev-parse", "--absolute-git-dir"], repository).stdout.decode().strip()
    for name in ("shallow", "info/grafts"):
        if (Path(git_dir) / name).exists():
            raise StudyError(
                "the repository is shallow or grafted: its history is incomplete",
                where=str(repository),
                remedy="clone it whole: git fetch --unshallow, or a clone without --depth",
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
        yield Mirror(target)
