"""Executions that tests need again and again, made once: a study that dozens of
tests tamper with holds the same runs in each of them, and every study of tests
rehearses the same calibration.

Tables and readings follow from what is asked alone, so what is remembered is what
another execution would give; tests/docs executes again without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from runners.local_queue import Queue, run_all
from verifier.reexecution import Job, rerun

_tables: dict[Job, dict[str, pa.Table]] = {}
_readings: dict[Any, Any] = {}


class Remembered:
    """As `verifier.reexecution.Rerun`."""

    def __init__(self, jobs: list[Job]) -> None:
        self._jobs = jobs

    def tables(self, number: int) -> dict[str, pa.Table] | None:
        return _tables.get(self._jobs[number])


@contextmanager
def remembered_rerun(jobs: list[Job]) -> Iterator[Remembered]:
    """As `verifier.reexecution.rerun`, for all jobs not executed before in this process."""
    new = [job for job in dict.fromkeys(jobs) if job not in _tables]
    if new:
        with rerun(new) as executions:
            for number, job in enumerate(new):
                tables = executions.tables(number)
                if tables is not None:
                    _tables[job] = {name: pa.table(table.to_pydict(), table.schema) for name, table in tables.items()}
    yield Remembered(jobs)


def remembered_runs(
    function: Callable[[Any], Any], orders: Iterable[Any], queue: Queue | None = None
) -> Iterator[tuple[Any, Any]]:
    """As `runners.local_queue.run_all` of rehearsals: orders not rehearsed before in this process."""
    new = []
    for order in orders:
        if order in _readings:
            yield order, _readings[order]
        else:
            new.append(order)
    for order, result in run_all(function, new, queue):
        if not isinstance(result, Exception):
            _readings[order] = result
        yield order, result
