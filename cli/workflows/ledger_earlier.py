"""The ledger that is there already, in the working tree, at the head or published."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ledger.proving import growth
from ledger.reading import MAX_LEDGER_BYTES, Ledger, read_ledger
from registry.errors import CapExceeded, RecordError, StudyError
from registry.guarded_git import run_git

LEDGER_FILE = "evidence/ledger.json"
_TAG = re.compile(r"ledger/v([1-9][0-9]{0,8})")
_WITHOUT_LOG = re.compile(rb'^ "schema": "trap-ledger-1"', re.MULTILINE)


@dataclass(frozen=True)
class Publication:
    """A published ledger: its number, its tag, and the ledger in the tagged commit."""

    number: int
    tag: str
    data: bytes


def earlier_ledger(root: Path) -> Ledger | None:
    """The ledger to go on from; None where there was none with a log.

    The working tree's, else the head's, else the last one published.
    StudyError where it does not hold, or does not go on from what was
    published: it is never overwritten then.
    """
    last = last_publication(root)
    copies = (_working_copy(root), _at(root, "HEAD"), last.data if last else None)
    found = next((data for data in copies if data is not None and not _WITHOUT_LOG.search(data)), None)
    if found is None:
        return None
    remedy = f"git restore {LEDGER_FILE}" if last is None else f"git checkout {last.tag} -- evidence"
    try:
        ledger = read_ledger(found, LEDGER_FILE)
        if last:
            growth(ledger.log, read_ledger(last.data, last.tag).checkpoint, last.tag)
    except (RecordError, CapExceeded) as error:
        raise StudyError(
            f"the ledger that is there does not hold: {error.what}",
            where=error.where or LEDGER_FILE,
            value=error.value,
            remedy=f"bring back one that does, then repeat: {remedy}",
        ) from None
    return ledger


def publications(root: Path) -> list[tuple[int, str]]:
    """Number and tag of every published ledger that this clone knows, in order."""
    form = ["for-each-ref", "refs/tags/ledger/", "--format=%(refname:strip=2)"]
    return numbered(run_git(form, root, check=False).stdout.decode("utf-8", "replace").splitlines())


def numbered(names: Iterable[str]) -> list[tuple[int, str]]:
    """Number and name of those names that are tags of published ledgers, in order."""
    return sorted((int(found[1]), name) for name in set(names) if (found := _TAG.fullmatch(name)))


def last_publication(root: Path) -> Publication | None:
    """The last published ledger that this clone knows."""
    for number, tag in reversed(publications(root)):
        data = _at(root, f"refs/tags/{tag}^{{commit}}")
        if data is not None:
            return Publication(number, tag, data)
    return None


def _working_copy(root: Path) -> bytes | None:
    path = root / LEDGER_FILE
    if not path.is_file():
        return None
    if path.stat().st_size > MAX_LEDGER_BYTES:
        raise StudyError("the ledger is too large", where=LEDGER_FILE, value=path.stat().st_size)
    return path.read_bytes()


def _at(root: Path, commit: str) -> bytes | None:
    """The ledger's bytes in a commit, None where it has none."""
    done = run_git(["cat-file", "blob", f"{commit}:{LEDGER_FILE}"], root, check=False)
    return done.stdout if done.returncode == 0 else None
