"""When things happened in a real study, and by whose clock."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from registry.timestamps import moment
from tests.study.hosted import Hosts
from verifier.evidence import StudyEvidence, gather
from verifier.moments import AUTHOR, Moment, moments_of
from verifier.run_report import RunReport


def found(evidence: StudyEvidence, *runs: RunReport) -> list[Moment]:
    (tag,) = (tag for tag in evidence.tags if tag.name == "reg/small/v1")
    return moments_of(evidence, tag, runs)


def with_times(evidence: StudyEvidence) -> list[RunReport]:
    registration = next(tag.registration for tag in evidence.tags if tag.name == "reg/small/v1")
    assert registration is not None
    times = (("2026-01-01T00:00:02.000000Z", "2026-01-01T00:00:09.000000Z"), ("2026-01-01T00:00:01.000000Z", None))
    runs = registration.draft.design.run_ids()
    return [
        RunReport(run, "complete", started_at=began, ended_at=ended)
        for run, (began, ended) in zip(runs, times, strict=False)
    ]


def test_the_local_witness_s_clock_orders_push_draw_announcement_and_results(finished: Path) -> None:
    moments = found(gather(finished))
    assert [one.what for one in moments] == [
        "registration pushed",
        "random bytes drawn, by the same witness",
        "first run announced",
        "last result pushed",
    ]
    times = [moment(one.time) for one in moments]
    assert times[0] == times[1] < times[2] < times[3]
    assert {(one.clock, one.independent) for one in moments} == {("the clock of the local witness", False)}


def test_runs_began_and_ended_by_the_author_s_clock(finished: Path) -> None:
    evidence = gather(finished)
    told = {one.what: one for one in found(evidence, *with_times(evidence))}
    assert told["first run began"] == Moment("first run began", "2026-01-01T00:00:01.000000Z", AUTHOR, False)
    assert told["last run ended"].time == "2026-01-01T00:00:09.000000Z"


def test_without_a_witness_the_attempts_log_speaks_for_itself(finished: Path) -> None:
    evidence = dataclasses.replace(gather(finished), logs=())
    starts, results = (
        [r.time for r in evidence.log.of("small", 1) if r.event == event] for event in ("start", "complete")
    )
    told = {one.what: one for one in found(evidence)}
    assert told["first run announced"] == Moment("first run announced", min(starts), AUTHOR, False)
    assert told["last result recorded"] == Moment("last result recorded", max(results), AUTHOR, False)


def test_a_round_is_out_by_its_chain_s_schedule(github_finished: Path, services: Hosts) -> None:
    moments = found(gather(github_finished, services.policy()))
    told = {one.what: one for one in moments}
    assert told["random bytes were out"].clock == "the schedule of the beacon"
    assert told["random bytes were out"].independent
    assert moment(told["registration pushed"].time) < moment(told["random bytes were out"].time)
