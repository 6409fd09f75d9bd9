"""Tables from a sweep: one statistic of one column, over two of its axes.

Only the run numbers and that column are read, shard by shard: a run's number
says its place on every axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cli.workflows.sweep_axes import AXES, Value, shown, values_of
from cli.workflows.sweep_columns import READINGS, reading_columns, verdict_columns
from cli.workflows.sweep_folder import load_sweep
from cli.workflows.sweep_frozen import Sweep
from cli.workflows.sweep_shards import missing_shards, shard_file
from registry.errors import RecordError, StudyError
from verifier.exact_statistics import FloatArray, IntArray, mean

SHARE, COUNT = "share", "count"
STATISTICS: dict[str, Callable[[FloatArray], float]] = {
    "mean": mean,
    "median": lambda values: float(median(values.tolist())),
    SHARE: mean,
    "min": lambda values: float(values.min()),
    "max": lambda values: float(values.max()),
    COUNT: lambda values: float(values.size),
}
"""By name, of the values that are defined; NaN where there are none, but for
the count.
"""

_MOST_SHOWN = 20


@dataclass(frozen=True)
class Pivot:
    """`statistic` of `value` in cells of shape (rows, columns); `runs` are the
    runs behind it, `expected` as many as the finished sweep has there.
    `where` fixes axes; `pooled` are varied ones that are in the table together.
    """

    sweep: Sweep
    rows: str
    columns: str
    value: str
    statistic: str
    row_values: tuple[Value, ...]
    column_values: tuple[Value, ...]
    cells: FloatArray
    runs: int
    expected: int
    where: Mapping[str, Value]
    pooled: Mapping[str, int]


def pivot(
    folder: Path, rows: str, columns: str, value: str, statistic: str | None = None, where: Sequence[str] = ()
) -> Pivot:
    """A table of the sweep in `folder`. Without a statistic: the share of a
    verdict, the median of a reading. `where` are conditions AXIS=VALUE.

    StudyError for names that the sweep has not, RecordError for shards that
    are not its own.
    """
    sweep = load_sweep(folder)
    for option, axis in (("--rows", rows), ("--columns", columns)):
        _check_axis(option, axis)
    if rows == columns:
        raise StudyError("rows and columns are the same axis", where="--columns", value=columns)
    chosen = _statistic(sweep, value, statistic)
    fixed = _conditions(sweep, where)
    if shared := {rows, columns} & set(fixed):
        raise StudyError("an axis of the table is fixed", where="--where", value=min(shared), remedy="leave it out")
    runs, values = _read(folder, sweep, value)
    for axis, wanted in fixed.items():
        kept = _places(sweep, axis, runs) == sweep.grid.axes[axis].index(wanted)
        runs, values = runs[kept], values[kept]
    row_values, column_values = sweep.grid.axes[rows], sweep.grid.axes[columns]
    place = _places(sweep, rows, runs) * len(column_values) + _places(sweep, columns, runs)
    cells = _cells(place, values, len(row_values) * len(column_values), chosen)
    axes = {axis: len(found) for axis, found in sweep.grid.axes.items() if axis not in (rows, columns, *fixed)}
    return Pivot(
        sweep=sweep,
        rows=rows,
        columns=columns,
        value=value,
        statistic=chosen,
        row_values=row_values,
        column_values=column_values,
        cells=cells.reshape(len(row_values), len(column_values)),
        runs=int(runs.size),
        expected=len(row_values) * len(column_values) * math.prod(axes.values()),
        where=fixed,
        pooled={axis: count for axis, count in axes.items() if count > 1},
    )


def _cells(place: IntArray, values: FloatArray, count: int, statistic: str) -> FloatArray:
    """The statistic of the defined values at each of `count` places."""
    defined = np.isfinite(values)
    place, values = place[defined], values[defined]
    order = np.argsort(place, kind="stable")
    parts = np.split(values[order], np.searchsorted(place[order], np.arange(1, count)))
    empty = 0.0 if statistic == COUNT else math.nan
    return np.array([STATISTICS[statistic](part) if part.size else empty for part in parts])


def _places(sweep: Sweep, axis: str, runs: IntArray) -> IntArray:
    """Where each run stands on an axis."""
    places: IntArray = runs // sweep.grid.stride(axis) % len(sweep.grid.axes[axis])
    return places


def _read(folder: Path, sweep: Sweep, column: str) -> tuple[IntArray, FloatArray]:
    """Run numbers and one column of every shard that is done; NaN for null."""
    undone = set(missing_shards(folder, sweep))
    runs: list[IntArray] = []
    values: list[FloatArray] = []
    for shard in range(sweep.shards):
        if shard not in undone:
            table = _columns(shard_file(folder, READINGS, shard), ["run", column])
            numbers = table.column("run").to_numpy().astype(np.int64)
            if not np.array_equal(numbers, np.array(sweep.runs_of(shard))):
                raise RecordError("the shard has other runs than its sweep", where=_name(folder, shard))
            runs.append(numbers)
            values.append(table.column(column).cast(pa.float64()).to_numpy())
    if not runs:
        raise StudyError("no shard of the sweep is done", where=str(folder), remedy="repeat its command to go on")
    return np.concatenate(runs), np.concatenate(values)


def _columns(file: Path, names: list[str]) -> Any:
    try:
        table = pq.ParquetFile(file).read(columns=names)
    except (pa.ArrowException, OSError) as error:
        raise RecordError(f"the shard cannot be read: {str(error)[:200]}", where=str(file)) from None
    if set(table.column_names) != set(names):
        raise RecordError("the shard lacks a column of its sweep", where=str(file), value=names[-1])
    return table


def _name(folder: Path, shard: int) -> str:
    return str(shard_file(folder, READINGS, shard))


def _check_axis(option: str, axis: str) -> None:
    if axis not in AXES:
        raise StudyError("a sweep has no such axis", where=option, value=axis, remedy=f"one of: {', '.join(AXES)}")


def _statistic(sweep: Sweep, value: str, asked: str | None) -> str:
    """The statistic asked for or usual, where it fits the column."""
    verdicts, readings = verdict_columns(sweep.registration, sweep.arm.name), reading_columns(sweep.registration)
    if value not in verdicts and value not in readings:
        windows = ", ".join(window.name for window in sweep.registration.draft.design.windows)
        raise StudyError(
            "the sweep has no such reading or verdict",
            where="--value",
            value=value,
            remedy=f"{', '.join(verdicts)}, or a reading of {windows}: {readings[0]} for example",
        )
    if value in verdicts and asked not in (None, SHARE, COUNT):
        raise StudyError("a verdict has a share or a count", where="--statistic", value=asked, remedy=SHARE)
    if value in readings and asked == SHARE:
        raise StudyError("a reading has no share of runs", where="--statistic", value=asked, remedy="mean, or median")
    return asked or (SHARE if value in verdicts else "median")


def _conditions(sweep: Sweep, texts: Sequence[str]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for text in texts:
        axis, _, wanted = text.partition("=")
        _check_axis("--where", axis)
        # Two equal values, since one number alone could be a count of seeds.
        values = values_of(AXES[axis], f"{wanted}:{wanted}" if axis == "seed" else wanted)
        known = sweep.grid.axes[axis]
        if len(values) != 1 or values[0] not in known:
            some = ", ".join(shown(value) for value in known[:_MOST_SHOWN])
            raise StudyError("the sweep has no such value", where="--where", value=text, remedy=f"of {axis}: {some}")
        found[axis] = values[0]
    return found
