"""What an attack on a study changed in what a verifier says of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path

from registry.timestamps import moment, timestamp_of
from registry.witness.policy import Policy
from registry.witness.rows import PushRow
from tests.study.hosted import Hosts
from verifier.check import Check, Outcome
from verifier.evidence import StudyEvidence, TagEvidence, gather
from verifier.online import Ask, Online
from verifier.report import Proof
from verifier.verification import verify_study

SMALL = "reg/small/v1"
NOWHERE = Path("/no-such-folder")
"""No source of run files: what a registration's own checks say costs little."""


def tag_of(evidence: StudyEvidence, name: str = SMALL) -> TagEvidence:
    """The evidence of one tag."""
    return next(tag for tag in (*evidence.tags, *evidence.predictions) if tag.name == name)


def judged(evidence: StudyEvidence, name: str = SMALL, runs: Path = NOWHERE) -> Proof:
    """The proof of one tag."""
    return next(proof for proof in verify_study(evidence, runs).proofs if proof.tag == name)


def checks(proof: Proof) -> dict[str, Check]:
    """The checks of a proof by their names."""
    return {check.name: check for check in proof.check.children}


def outcomes(proof: Proof) -> dict[str, Outcome]:
    """What each check of a proof came to."""
    return {name: check.outcome for name, check in checks(proof).items()}


def rows_of_github(services: Hosts) -> tuple[PushRow, ...]:
    """The rows that GitHub shows, the earliest first."""
    assert services.github.bare
    services.github.follow(services.github.bare)
    names = ("id", "timestamp", "ref", "before", "after", "activity_type")
    return tuple(PushRow(**{name: row[name] for name in names}) for row in reversed(services.github.rows))


def answering(rows: Iterable[PushRow], number: int) -> Ask:
    """GitHub asked online, with these rows for an answer."""
    return lambda settings, policy: Online(github=tuple(rows), github_repository_id=number)


def gathered_online(
    root: Path, services: Hosts, policy: Policy, change: Callable[[PushRow], PushRow | None] = lambda row: row
) -> StudyEvidence:
    """The evidence with GitHub asked, each of its rows changed or, by None, left out."""
    changed = [new for row in rows_of_github(services) if (new := change(row))]
    return gather(root, policy, answering(changed, services.github.number))


def main_not_before(time: str) -> Callable[[PushRow], PushRow]:
    """GitHub saw the branch `main` pushed at `time` and no earlier."""

    def change(row: PushRow) -> PushRow:
        late = row.ref == "refs/heads/main" and moment(row.timestamp) < moment(time)
        return dataclasses.replace(row, timestamp=time) if late else row

    return change


def shifted(time: str, seconds: float) -> str:
    """A time so much later."""
    return timestamp_of(moment(time).timestamp() + seconds)
