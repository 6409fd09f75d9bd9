"""Simulated runs are executed again, in other processes, and compared.

The judge shares no code with the judged: the simulator is started as a
program, and the two sets of tables must agree in every column, bit for bit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather

from artifacts.records import SCHEMAS
from registry.design import RunId
from verifier.check import Check, proven, refuted, unprovable

PROGRAM = "runners.simulated.rerun"
JOBS_A_WORKER = 60
"""Fewer are over before another process would have started."""

LIMIT_S = 3600.0
"""How long one run may take; costs can be frozen with which none ever ends."""


@dataclass(frozen=True)
class Job:
    """One run to execute again: `registration` is bundled with its scripts, `key` is
    its plan key.
    """

    registration: bytes
    run: RunId
    key: bytes


class Rerun:
    """Executions under way; `tables` waits for one of them."""

    def __init__(self, folder: Path, processes: list[subprocess.Popen[str]], places: dict[int, int]) -> None:
        self._folder = folder
        self._processes = processes
        self._places = places
        self._done: set[int] = set()

    def tables(self, number: int) -> dict[str, pa.Table] | None:
        """The tables of job `number`, None if its execution failed."""
        process = self._processes[self._places[number]]
        assert process.stdout is not None
        while number not in self._done:
            limit = Timer(LIMIT_S, process.kill)
            limit.start()
            line = process.stdout.readline()
            limit.cancel()
            if not line.strip():
                return None
            self._done.add(int(line))
        folder = self._folder / str(number)
        return {name: feather.read_table(folder / f"{name}.arrow") for name in SCHEMAS}


@contextmanager
def rerun(jobs: list[Job]) -> Iterator[Rerun]:
    """Start the executions of all jobs over the machine's cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(cores, -(-len(jobs) // JOBS_A_WORKER))
    with tempfile.TemporaryDirectory(prefix="trap-rerun-") as name:
        folder = Path(name)
        places = {number: number % workers for number in range(len(jobs))}
        names = _write_registrations(folder, jobs)
        processes = [_start(folder, w, [(n, jobs[n]) for n in places if places[n] == w], names) for w in range(workers)]
        try:
            yield Rerun(folder, processes, places)
        finally:
            for process in processes:
                process.kill()
                process.wait()
                if process.stdout:
                    process.stdout.close()


def _write_registrations(folder: Path, jobs: list[Job]) -> dict[bytes, str]:
    """Each registration once, as a file of the folder: its name."""
    names = {data: f"registration-{n}.json" for n, data in enumerate(dict.fromkeys(job.registration for job in jobs))}
    for data, name in names.items():
        (folder / name).write_bytes(data)
    return names


def _start(folder: Path, worker: int, jobs: list[tuple[int, Job]], names: dict[bytes, str]) -> subprocess.Popen[str]:
    requests = folder / f"requests-{worker}.jsonl"
    with requests.open("w", encoding="utf-8") as file:
        for number, job in jobs:
            request = {
                "number": number,
                "registration": names[job.registration],
                "arm": job.run.arm,
                "rate": job.run.rate,
                "seed": job.run.seed,
                "key": job.key.hex(),
            }
            file.write(json.dumps(request) + "\n")
    with requests.open(encoding="utf-8") as file:
        return subprocess.Popen(
            [sys.executable, "-m", PROGRAM, str(folder)],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=folder,
        )


def check_reexecution(recorded: dict[str, pa.Table], again: dict[str, pa.Table] | None) -> Check:
    """Equal column values, bit for bit, in every table."""
    name = "executed_again"
    if again is None:
        return unprovable(name, "the simulated run could not be executed again")
    for table_name, table in recorded.items():
        other = again[table_name]
        if table.num_rows != other.num_rows:
            return refuted(name, f"{table_name}: {table.num_rows} rows recorded, {other.num_rows} when executed again")
        for column in table.column_names:
            if not same_bits(table.column(column), other.column(column)):
                return refuted(name, f"{table_name}.{column} differs when the run is executed again")
    return proven(name, "executed again: equal to the bit")


def same_bits(left: pa.ChunkedArray, right: pa.ChunkedArray) -> bool:
    """Whether two columns have the same nulls and the same bits."""
    if left.type != right.type:
        return False
    if pa.types.is_floating(left.type):
        if not left.is_null().equals(right.is_null()):
            return False
        left, right = (pc.fill_null(column, 0.0).cast(pa.float64()) for column in (left, right))
        left, right = (column.combine_chunks().view(pa.int64()) for column in (left, right))
    return bool(left.equals(right))
