"""Every published ledger of a study, each against the one before it, and who saw it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cli.workflows.ledger_earlier import LEDGER_FILE, numbered, publications
from cli.workflows.online import ask_witnesses
from ledger.proving import growth
from ledger.reading import Ledger, read_ledger
from registry.errors import TrapError
from registry.mirror import mirror_of
from registry.study import find_root
from registry.witness.policy import Policy
from registry.witness.sightings import Sighting
from verifier.evidence import TAG_PREFIX, gather
from verifier.tag_sightings import TaggedFile, tagged_file


@dataclass(frozen=True)
class PublishedLedger:
    """One published ledger: the ledger where it can be read, who saw its tag, and
    what is wrong with it.
    """

    tag: str
    ledger: Ledger | None
    sightings: tuple[Sighting, ...]
    problems: tuple[str, ...]


def published_ledgers(start: Path, policy: Policy, *, online: bool) -> list[PublishedLedger]:
    """Read every tag `ledger/v<N>` that the refs or a witness name, in order."""
    root = find_root(start)
    evidence = gather(root, policy, ask_witnesses if online else None)
    seen = (row.ref.removeprefix(TAG_PREFIX) for log in evidence.logs for row in log.rows)
    tags = [tag for _, tag in numbered([*seen, *(tag for _, tag in publications(root))])]
    found: list[PublishedLedger] = []
    with mirror_of(root) as mirror:
        for tag in tags:
            file = tagged_file(mirror, evidence, tag, LEDGER_FILE)
            earlier = next((each.ledger for each in reversed(found) if each.ledger), None)
            found.append(_judged(file, earlier, {evidence.settings.signing_key, *policy.signing_keys}))
    return found


def _judged(file: TaggedFile, earlier: Ledger | None, known: set[str]) -> PublishedLedger:
    problems, ledger = list(file.problems), None
    if file.data is not None and file.signer not in known:
        problems.append("the tag is not signed by a key that the study or your policy names")
    try:
        ledger = read_ledger(file.data, file.tag) if file.data is not None else None
        if ledger and earlier:
            growth(ledger.log, earlier.checkpoint, "the ledger published before it")
    except TrapError as error:
        problems.append(f"{error.what} ({error.where})" if error.where else error.what)
    return PublishedLedger(file.tag, ledger, file.sightings, tuple(problems))


def exit_code(found: list[PublishedLedger]) -> int:
    """1 where something is wrong; 3 where nothing is published, or one is
    unsigned or seen by nobody; else 0.
    """
    if any(each.problems for each in found):
        return 1
    unproven = any(not each.sightings or each.ledger is None or each.ledger.signer is None for each in found)
    return 3 if unproven or not found else 0
