"""Which attempt of a run decides: a real engine is not asked until it pleases."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest

from registry.attempt_log import AttemptRecord, decode, encode
from registry.errors import TrapError
from verifier.attempts import check_decides, deciding
from verifier.check import Outcome

START = AttemptRecord("start", "e2", 1, "0" * 64, "BURST", 1.35, 0, 1, 1, "batch", "2026-01-01T00:00:00.000000Z")


def record(event: str, attempt: int, cause: str | None = None) -> AttemptRecord:
    digest = "1" * 64 if event == "complete" else None
    return dataclasses.replace(
        START, event=event, attempt=attempt, last_attempt=attempt, run_sha256=digest, cause=cause
    )


def judged(*records: AttemptRecord, exclusions: tuple[str, ...] = (), at_most: int = 1, simulated: bool = False) -> Any:
    chosen = deciding(records)
    assert chosen is not None
    draft: Any = SimpleNamespace(exclusions=exclusions, max_attempts=at_most)
    return check_decides(records, chosen, draft, simulated)


def twice(cause: str | None) -> tuple[AttemptRecord, ...]:
    return (record("start", 1), record("abandoned", 1, cause), record("start", 2), record("complete", 2))


def test_the_first_complete_attempt_decides() -> None:
    assert judged(record("start", 1), record("complete", 1)).outcome is Outcome.PROVEN
    assert deciding([record("complete", 3), record("complete", 2)]) == record("complete", 2)


def test_a_registered_exclusion_excuses_an_abandoned_attempt() -> None:
    assert judged(*twice("preempted"), exclusions=("preempted",), at_most=2).outcome is Outcome.PROVEN


@pytest.mark.parametrize(
    ("cause", "exclusions", "at_most", "words"),
    [
        (None, ("preempted",), 2, "without an evidenced cause"),
        ("node_failed", ("preempted",), 2, "no registered exclusion names"),
        ("preempted", (), 2, "no registered exclusion names"),
        ("preempted", ("preempted",), 1, "attempt 2, registered were 1"),
    ],
)
def test_nothing_else_does(cause: str | None, exclusions: tuple[str, ...], at_most: int, words: str) -> None:
    check = judged(*twice(cause), exclusions=exclusions, at_most=at_most)
    assert check.outcome is Outcome.UNPROVABLE and words in check.reason


def test_an_attempt_that_is_not_in_the_log() -> None:
    check = judged(record("start", 2), record("complete", 2), exclusions=("preempted",), at_most=2)
    assert check.outcome is Outcome.UNPROVABLE and "attempt 1 is not in the log" in check.reason


def test_a_result_that_was_never_pushed_is_no_excuse() -> None:
    check = judged(record("start", 1), record("start", 2), record("complete", 2), exclusions=("preempted",), at_most=2)
    assert check.outcome is Outcome.UNPROVABLE and "attempt 1 was without an evidenced cause" in check.reason


def test_a_simulated_run_is_executed_again_instead() -> None:
    assert judged(*twice(None), simulated=True).outcome is Outcome.PROVEN


def test_causes_stand_in_the_log() -> None:
    (read,) = decode(encode([record("abandoned", 1, "preempted")]), "log")
    assert read.cause == "preempted"
    for wrong in (record("complete", 1, "preempted"), record("abandoned", 1, "it displeased")):
        with pytest.raises(TrapError):
            decode(encode([wrong]), "log")
