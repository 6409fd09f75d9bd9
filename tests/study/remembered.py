"""Executions that tests need again and again, made once: a study that dozens of
tests tamper with holds the same runs in each of them.

A job's tables follow from the job alone, so what is remembered is what another
execution would give; tests/docs executes again without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from verifier.reexecution import Job, rerun

_tables: dict[Job, dict[str, pa.Table]] = {}


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
