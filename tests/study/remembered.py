"""Executions that tests need again and again, made once: a study that dozens of
tests tamper with holds the same runs in each of them, and every study of tests
rehearses the same calibration. So are figures: drawn once of the same runs.

They are made in this process, by the compiled core: tables and readings follow
from what is asked alone, so what is remembered is what a program of its own, or a
worker, would give. tests/docs executes and rehearses in those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pickle import dumps, loads
from typing import Any

import pyarrow as pa

from cli.workflows.study_figures import StudyFigures, drawn_figures
from cli.workflows.study_runs import shown_runs
from registry.errors import TrapError
from registry.plan import make_plan
from registry.registration import read_registration
from runners.local_queue import Queue
from runners.simulated.run import simulate
from verifier.reexecution import Job
from verifier.report import StudyReport

_tables: dict[Job, dict[str, pa.Table] | None] = {}
_results: dict[Any, Any] = {}
_figures: dict[bytes, StudyFigures] = {}


class Remembered:
    """As `verifier.reexecution.Rerun`."""

    def __init__(self, jobs: list[Job]) -> None:
        self._jobs = jobs

    def tables(self, number: int) -> dict[str, pa.Table] | None:
        job = self._jobs[number]
        if job not in _tables:
            _tables[job] = _executed(job)
        return _tables[job]


@contextmanager
def remembered_rerun(jobs: list[Job]) -> Iterator[Remembered]:
    """As `verifier.reexecution.rerun`; a job is executed once in this process."""
    yield Remembered(jobs)


def _executed(job: Job) -> dict[str, pa.Table] | None:
    """As `runners.simulated.rerun` executes it; None where that would end without tables."""
    try:
        registration = read_registration(job.registration, "rerun")
        design, run = registration.draft.design, job.run
        arm = design.arm(run.arm)
        plan = make_plan(job.key, design, arm, registration.lambda_per_s(run), run.rate)
        return simulate(plan, arm, registration.cell_of(run))
    except (TrapError, ValueError, LookupError):
        return None


def remembered_runs(
    function: Callable[[Any], Any], orders: Iterable[Any], queue: Queue | None = None
) -> Iterator[tuple[Any, Any]]:
    """As `runners.local_queue.run_all` of simulations: an order is executed once in this process, and
    it and its result are passed on as between processes.
    """
    for order in orders:
        key = function, order
        if key not in _results:
            try:
                call, given = loads(dumps((function, order)))
                _results[key] = loads(dumps(call(given)))
            except Exception as error:
                yield order, error
                continue
        yield order, _results[key]


def remembered_figures(report: StudyReport, *, letters: bool = False) -> StudyFigures:
    """As `drawn_figures`: runs of which everything is the same are drawn once in this process."""
    key = dumps((shown_runs(report), letters))
    if key not in _figures:
        _figures[key] = drawn_figures(report, letters=letters)
    return _figures[key]
