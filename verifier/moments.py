"""When each thing happened, and by whose clock: the moments of a registration.

In the order in which they have to come; no clock here overrules a check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from registry.timestamps import moment
from registry.witness.rows import in_order
from registry.witness.sightings import PushLog, Sighting
from verifier.evidence import StudyEvidence, TagEvidence
from verifier.run_report import RunReport
from verifier.witness_checks import first_start

AUTHOR = "the author's own clock"


@dataclass(frozen=True)
class Moment:
    """`what` came at `time` (RFC 3339, UTC) by `clock`; `independent` if the
    auditor's policy trusts that clock and the author could not have set it.
    """

    what: str
    time: str
    clock: str
    independent: bool


def moments_of(evidence: StudyEvidence, tag: TagEvidence, runs: Sequence[RunReport]) -> list[Moment]:
    """What is known, from the push of the registration to that of its last result."""
    predicted = next((p for p in evidence.predictions if (p.id, p.version) == (tag.id, tag.version)), None)
    logs = sorted(evidence.logs, key=lambda log: not log.independent)
    found = [
        _seen("registration pushed", tag.push or next(iter(tag.sightings), None)),
        _drawn(tag),
        _seen("predictions pushed", predicted.push if predicted else None),
        _announced(evidence, tag, logs),
        _of_runs("first run began", min, (run.started_at for run in runs)),
        _of_runs("last run ended", max, (run.ended_at for run in runs)),
        _published(evidence, tag, logs),
    ]
    return [one for one in found if one]


def _seen(what: str, sighting: Sighting | None) -> Moment | None:
    if sighting is None:
        return None
    return Moment(what, sighting.time, f"the clock of the {sighting.witness}", sighting.independent)


def _drawn(tag: TagEvidence) -> Moment | None:
    """A round by its chain's schedule; what a witness drew came with the push."""
    if tag.draw.out_at:
        return Moment("random bytes were out", tag.draw.out_at, "the schedule of the beacon", tag.draw.trusted)
    if tag.draw.value is None:
        return None
    return _seen("random bytes drawn, by the same witness", tag.push)


def _announced(evidence: StudyEvidence, tag: TagEvidence, logs: Sequence[PushLog]) -> Moment | None:
    rows = ((log, first_start(evidence, tag.id, tag.version, log)) for log in logs)
    if seen := next(((log, row) for log, row in rows if row), None):
        return _seen("first run announced", seen[0].sighting(seen[1]))
    starts = (r.time for r in evidence.log.of(tag.id, tag.version) if r.event == "start")
    return _of_runs("first run announced", min, starts)


def _published(evidence: StudyEvidence, tag: TagEvidence, logs: Sequence[PushLog]) -> Moment | None:
    own = [
        (record.time, commit)
        for record, commit in zip(evidence.log.records, evidence.log.commits, strict=False)
        if (record.registration, record.version, record.event) == (tag.id, tag.version, "complete")
    ]
    for log in logs:
        if rows := in_order(log.first[commit] for _, commit in own if commit in log.first):
            return _seen("last result pushed", log.sighting(rows[-1]))
    return _of_runs("last result recorded", max, (time for time, _ in own))


def _of_runs(what: str, which: Callable[..., Any], times: Iterable[str | None]) -> Moment | None:
    known = [time for time in times if time]
    return Moment(what, which(known, key=moment), AUTHOR, False) if known else None
