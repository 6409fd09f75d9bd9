"""Which attempt of a run decides.

A simulated run can be executed again, so its first complete attempt decides.
A real engine's cannot: a run that was tried until it pleased would look like
any other. There an attempt after an abandoned one decides only if the
registration's `exclusions` name the cause of every attempt before it, and its
number is within `max_attempts`.
"""

from __future__ import annotations

from collections.abc import Sequence

from registry.attempt_log import AttemptRecord
from registry.draft import Draft
from verifier.check import Check, proven, unprovable


def deciding(records: Sequence[AttemptRecord]) -> AttemptRecord | None:
    """The first complete attempt, by its number."""
    complete = [record for record in records if record.event == "complete"]
    return min(complete, key=lambda record: record.attempt, default=None)


def check_decides(records: Sequence[AttemptRecord], chosen: AttemptRecord, draft: Draft, simulated: bool) -> Check:
    """Whether the chosen attempt may decide; `records` are those of its run.

    The causes are the author's word, pushed before the next attempt began.
    """
    name = "attempt_decides"
    if simulated:
        return proven(name, "simulated: the first complete attempt decides, and is executed again")
    for number in range(1, chosen.attempt):
        own = [record for record in records if record.attempt == number and record.event == "abandoned"]
        cause = own[0].cause if own else None
        if not any(record.attempt <= number <= record.last_attempt for record in records):
            return unprovable(name, f"attempt {number} is not in the log, and attempt {chosen.attempt} is chosen")
        if cause not in draft.exclusions:
            why = f"abandoned ({cause})" if cause else "without an evidenced cause"
            return unprovable(name, f"not decidable: attempt {number} was {why}, which no registered exclusion names")
    if chosen.attempt > draft.max_attempts:
        return unprovable(name, f"not decidable: attempt {chosen.attempt}, registered were {draft.max_attempts}")
    return proven(name, f"attempt {chosen.attempt} of at most {draft.max_attempts}")
