"""Keeps log and refs together, whatever died in between.

git moves refs first and runs the hook that logs afterwards. So every push is
made under the repository's push lock, and before its answer goes out the refs
are held against the log. A ref that moved and was not logged, because the hook
or the server was killed, is logged then: with the time of now, which is later
than the truth and never earlier. A ref that no push could have left so, gone,
moved back or a tag moved, is not logged: the server takes no further push.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from registry.errors import WitnessError
from registry.guarded_git import guarded_environment, run_git
from registry.witness.log import MAX_LOG_BYTES, parse_log
from registry.witness.rows import PushRow
from registry.witness.server.repositories import Repository

_POLL_S = 0.02
_HOOK_TIMEOUT_S = 60


class Busy(WitnessError):
    """Another push holds the repository's lock."""


@contextmanager
def push_lock(repository: Repository, wait_s: float) -> Iterator[int]:
    """Hold the repository's push lock; yields the lock's descriptor.

    A process that inherits the descriptor holds the lock until it ends, also
    where this server dies before. Raises Busy after `wait_s` seconds.
    """
    descriptor = os.open(repository.path / "trap-witness" / "push.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        until = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise Busy("another push is under way", where=repository.full_name) from None
            time.sleep(_POLL_S)
        yield descriptor
    finally:
        os.close(descriptor)


def read_log(repository: Repository) -> bytes:
    """The log's whole lines; what is read is on disk and will stay."""
    with repository.log_path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        data = file.read(MAX_LOG_BYTES + 1)
    return data[: data.rfind(b"\n") + 1]


@lru_cache(maxsize=32)
def rows_in(log: bytes, name: str) -> tuple[PushRow, ...]:
    """`parse_log`, remembered."""
    return tuple(parse_log(log, name))


def refs_of(repository: Repository) -> dict[str, str]:
    """Every ref of a repository and its object's id."""
    done = run_git(["for-each-ref", "--format=%(objectname) %(refname)"], repository.path)
    lines = done.stdout.decode("utf-8", "replace").split("\n")
    return {ref: oid for oid, ref in (line.split(" ", 1) for line in lines if line)}


def last_logged(rows: Iterable[PushRow]) -> dict[str, str]:
    """What each ref should be by the log."""
    found: dict[str, str] = {}
    for row in rows:
        if row.deletion:
            found.pop(row.ref, None)
        else:
            found[row.ref] = row.after
    return found


def unlogged(logged: Mapping[str, str], refs: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """`(before, after, ref)` of the refs that are not as the log says; a ref
    that is gone has an `after` of zeros.
    """
    names = sorted(logged.keys() | refs.keys())
    moves = [(logged.get(name), refs.get(name), name) for name in names]
    return [(old or "0" * len(new or ""), new or "0" * len(old or ""), name) for old, new, name in moves if old != new]


def reconcile(repository: Repository) -> int:
    """Log what stands unlogged, under the push lock; how many rows that took.

    WitnessError where the refs contradict the log: then nothing is written.
    """
    rows = rows_in(read_log(repository), repository.full_name)
    moves = unlogged(last_logged(rows), refs_of(repository))
    problems = contradictions(repository, moves)
    if problems:
        raise WitnessError(
            f"the repository is not what its log says: {'; '.join(problems[:5])}",
            where=repository.full_name,
            remedy="was it restored from a backup, or changed by hand? put the refs back, or begin a new repository",
        )
    if moves:
        _run_hook(repository.path, moves)
    return len(moves)


def contradictions(repository: Repository, moves: Iterable[tuple[str, str, str]]) -> list[str]:
    """What no push through the server could have done, in words."""
    found = []
    for before, after, ref in moves:
        if set(after) == {"0"}:
            found.append(f"{ref} is gone")
        elif set(before) != {"0"} and ref.startswith("refs/tags/"):
            found.append(f"{ref} was moved")
        elif set(before) != {"0"}:
            forward = run_git(["merge-base", "--is-ancestor", before, after], repository.path, check=False)
            if forward.returncode != 0:
                found.append(f"{ref} does not follow from what was logged")
    return found


def _run_hook(git_dir: Path, moves: Iterable[tuple[str, str, str]]) -> None:
    """Have the hook log these moves, as git would."""
    environment = guarded_environment() | {"GIT_DIR": str(git_dir)}
    done = subprocess.run(
        [sys.executable, "-IS", str(git_dir / "hooks" / "post_receive.py")],
        input="".join(f"{before} {after} {ref}\n" for before, after, ref in moves).encode(),
        env=environment,
        capture_output=True,
        timeout=_HOOK_TIMEOUT_S,
    )
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise WitnessError(f"the push log cannot be written: {words[-1] if words else done.returncode}")


def size_kilobytes(repository: Repository) -> int:
    """What a repository's objects take on disk."""
    words = run_git(["count-objects", "-v"], repository.path).stdout.decode().split()
    counts = dict(zip(words[::2], words[1::2], strict=True))
    return int(counts["size:"]) + int(counts["size-pack:"])
