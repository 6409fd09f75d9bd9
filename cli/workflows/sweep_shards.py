"""Shards of a sweep: runs simulated, read, and written whole or not at all.

A shard is a file in each of the sweep's folders. Each is written under another
name and renamed; the readings come last, so that they say the shard is done.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from artifacts.attempt import sync
from cli.workflows.rehearse import simulated_tables
from cli.workflows.sweep_axes import Value
from cli.workflows.sweep_columns import READINGS, SERIES, readings_table, records_schema, records_table, series_table
from cli.workflows.sweep_folder import PARTIAL, load_sweep
from cli.workflows.sweep_frozen import Sweep
from registry.errors import StudyError
from verifier.releases import first_release_s
from verifier.run_report import frames_of, read
from verifier.series import Series, series_of
from verifier.verdict import run_verdicts

_COMPRESSION = "zstd"


@dataclass(frozen=True)
class MadeRun:
    """One run: its row of the readings, its series, its record tables."""

    row: dict[str, Value]
    series: Series
    tables: dict[str, pa.Table]


def shard_file(folder: Path, table: str, shard: int) -> Path:
    """The file of one shard in one of the sweep's folders."""
    return folder / table / f"shard-{shard:05d}.parquet"


def missing_shards(folder: Path, sweep: Sweep) -> list[int]:
    """The shards that are not done."""
    return [shard for shard in range(sweep.shards) if not shard_file(folder, READINGS, shard).is_file()]


def make_shards(out: str, first: int, last: int) -> int:
    """Make the shards `first` to `last`, both included, of the sweep frozen in
    folder `out`, and leave those that are done. Returns how many it made.

    May be repeated, and run beside others. StudyError for a shard that the
    sweep has not.
    """
    shards = load_sweep(Path(out)).shards
    if not 0 <= first <= last < shards:
        raise StudyError("the sweep has no such shards", value=[first, last], remedy=f"from 0 to {shards - 1}")
    return sum(make_shard((out, shard)) for shard in range(first, last + 1))


def make_shard(order: tuple[str, int]) -> int:
    """Make one shard of the sweep in a folder; 0 where it was done, else 1."""
    folder, shard = Path(order[0]), order[1]
    if shard_file(folder, READINGS, shard).is_file():
        return 0
    sweep = load_sweep(folder)
    targets = {table: shard_file(folder, table, shard) for table in sweep.tables}
    with _written_whole(targets) as partial:
        rows, series, runs = [], [], sweep.runs_of(shard)
        with ExitStack() as stack:
            writers = {
                name.rpartition("/")[2]: stack.enter_context(_writer(sweep, name, file))
                for name, file in partial.items()
                if name not in (SERIES, READINGS)
            }
            for number in runs:
                made = make_run(sweep, number)
                rows.append(made.row)
                series.append(made.series)
                for name, writer in writers.items():
                    writer.write_table(records_table(sweep.registration, name, number, made.tables[name]))
        _write(series_table(sweep.registration, runs, series), partial[SERIES])
        _write(readings_table(sweep.registration, sweep.arm.name, rows), partial[READINGS])
    return 1


def make_run(sweep: Sweep, number: int) -> MadeRun:
    """Simulate and read the run of this number.

    Of the rule, only what looks at the run itself can be decided: other arms
    and predictors are not in a sweep.
    """
    point = sweep.grid.point(number)
    registration, run = sweep.at(point)
    design = registration.draft.design
    tables = simulated_tables(registration, run)
    frames = frames_of(tables)
    releases = {run.arm: first_release_s(frames.gate)} if run.arm in design.releasing else {}
    readings = read(frames, registration, run, releases)
    verdicts = run_verdicts(registration, run, {run: readings}, {})
    row: dict[str, Value] = {
        "run": number,
        "arm": run.arm,
        **asdict(point),
        "lambda_per_s": registration.lambda_per_s(run),
        **{f"{window}.{name}": value for window, here in readings.items() for name, value in here.items()},
        **{f"{run.arm}.{verdict.name}": verdict.decision.value for verdict in verdicts},
    }
    block = registration.cell_of(run).cache_block_tokens
    return MadeRun(row, series_of(frames, design.horizon_of(design.arm(run.arm)), sweep.bin_s, block), tables)


def _writer(sweep: Sweep, name: str, file: Path) -> pq.ParquetWriter:
    """Records go to disk run by run, a row group each: they never fill memory."""
    schema = records_schema(sweep.registration, name.rpartition("/")[2])
    return pq.ParquetWriter(file, schema, compression=_COMPRESSION)


def _write(table: pa.Table, file: Path) -> None:
    pq.write_table(table, file, compression=_COMPRESSION)


@contextmanager
def _written_whole(targets: dict[str, Path]) -> Iterator[dict[str, Path]]:
    """Files to write in the targets' place; they get the targets' names, in
    order, once all of them are on disk, and are removed where that fails.
    """
    token = secrets.token_hex(4)
    partial = {name: target.with_name(f".{target.name}.{token}{PARTIAL}") for name, target in targets.items()}
    try:
        for file in partial.values():
            file.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        for file in partial.values():
            sync(file)
        for name, file in partial.items():
            file.replace(targets[name])
    finally:
        for file in partial.values():
            file.unlink(missing_ok=True)


def remove_leftovers(folder: Path, sweep: Sweep) -> int:
    """Remove what killed makers of shards left half written; how many files."""
    left = [file for table in sweep.tables for file in (folder / table).glob(f".shard-*{PARTIAL}")]
    for file in left:
        file.unlink(missing_ok=True)
    return len(left)
