"""Where a run stands: its own records first, the scheduler's word as a hint."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.workflows.standing import (
    FAILED,
    FINISHED,
    LOST,
    MISSING,
    RUNNING,
    SUBMITTED,
    WAITING,
    AttemptFiles,
    JobFiles,
    RunFiles,
    standing_of,
)
from registry.attempt_log import AttemptRecord
from registry.design import RunId
from runners.slurm.scheduler import LIVE, JobState

RUN = RunId("A", 1.0, 0)
NOW = "2026-01-01T00:10:00Z"
EARLIER, JUST_NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:09:50Z"


def record(event: str, attempt: int = 1, last: int = 1, **more: Any) -> AttemptRecord:
    return AttemptRecord(event, "r", 1, "0" * 64, "A", 1.0, 0, attempt, last, "b", NOW, **more)


def job(state: str | None = None, **more: Any) -> JobFiles:
    ended_at = more.pop("ended_at", None)
    known = JobState("7_0", "n", state, "Priority", "node1", ended_at=ended_at) if state else None
    return replace(JobFiles(1, 3, "7_0", known, settle_s=60.0, tail="job log"), **more)


ANNOUNCED = (record("start", 1, 3),)


def files(
    *attempts: AttemptFiles, job: JobFiles | None = None, here: bool = False, records: Any = ANNOUNCED
) -> RunFiles:
    return RunFiles(RUN, records, attempts, job, here, NOW, 8700.0)


DEAD = AttemptFiles(1, reason="the engine exited with 3", tail="CUDA error")

TABLE = {
    "never announced": (files(records=()), MISSING, ""),
    "a result was pushed": (files(records=(record("complete"),)), FINISHED, ""),
    "complete on disk": (files(AttemptFiles(1, True)), FINISHED, "not pushed yet"),
    "complete, whatever Slurm says": (files(AttemptFiles(1, True), job=job("FAILED")), FINISHED, ""),
    "complete, while Slurm is silent": (files(AttemptFiles(1, True), job=job(problem="down")), FINISHED, ""),
    "abandoned by the log": (files(records=(record("start"), record("abandoned", reason="why"))), FAILED, "why"),
    "waiting here": (files(here=True), WAITING, "queue"),
    "running here": (files(AttemptFiles(1, progress_s=1200), here=True), RUNNING, "1,200 of 8,700 s"),
    "killed here": (files(AttemptFiles(1)), LOST, "trap run is gone"),
    "no job was submitted": (files(job=job(job=None)), LOST, "no job is known"),
    "cut off, yet it ran": (files(DEAD, job=job(job=None)), FAILED, "exited with 3"),
    "Slurm does not answer": (files(job=job(problem="timed out")), SUBMITTED, "timed out"),
    "in Slurm's queue": (files(job=job("PENDING")), WAITING, "Priority"),
    "requeued": (files(DEAD, job=job("REQUEUED")), WAITING, "after 1 attempts"),
    "starting on a node": (files(job=job("RUNNING")), RUNNING, "starting"),
    "running on a node": (files(AttemptFiles(1, progress_s=9), job=job("RUNNING")), RUNNING, "9 of"),
    "failed by its own record": (files(DEAD, job=job("FAILED")), FAILED, "exited with 3 (Slurm: FAILED)"),
    "over, just now": (files(job=job("COMPLETED", ended_at=JUST_NOW)), RUNNING, "files may still come"),
    "over, long ago": (files(job=job("TIMEOUT", ended_at=EARLIER)), FAILED, "TIMEOUT"),
    "forgotten, left nothing": (files(job=job()), LOST, "left nothing"),
    "forgotten, left a part": (files(AttemptFiles(1), job=job()), LOST, "no final record"),
    "forgotten, failed": (files(DEAD, job=job()), FAILED, "exited with 3"),
    "a job of an earlier start": (files(records=(record("start", 4, 6),), job=job("RUNNING")), LOST, "trap run"),
}


@pytest.mark.parametrize("case", TABLE)
def test_the_state_of_a_run(case: str) -> None:
    known, state, words = TABLE[case]
    found = standing_of(known)
    assert (found.state, words in found.words) == (state, True), found


def test_a_failed_run_shows_its_engine_s_last_lines_else_its_job_s() -> None:
    assert standing_of(files(DEAD, job=job("FAILED"))).tail == "CUDA error"
    assert standing_of(files(job=job("FAILED"))).tail == "job log"
    assert standing_of(files(DEAD, job=job("RUNNING"))).tail == ""


@given(
    st.sampled_from([*sorted(LIVE), "COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "WHAT_IS_THIS", None]),
    st.booleans(),
    st.booleans(),
)
def test_a_final_record_beats_every_scheduler(state: str | None, silent: bool, here: bool) -> None:
    said = job(state, problem="down" if silent else None)
    assert standing_of(files(AttemptFiles(2, True), job=said, here=here)).state == FINISHED


@given(st.sampled_from(["COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "CANCELLED", "WHAT_IS_THIS", None]))
def test_nothing_is_waited_for_once_its_job_is_over(state: str | None) -> None:
    assert not standing_of(files(job=job(state, ended_at=EARLIER))).open
