"""The columns of a sweep's Parquet files: readings, coarse series, records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from artifacts.records import SCHEMAS, stamped
from cli.workflows.sweep_axes import AXES, Value
from registry.reading_catalogue import READING_KINDS
from registry.registration import Registration
from verifier.series import Series

STATEMENT = "Simulated runs over literal seeds, exploratory: never evidence, and no result about a GPU."
READINGS, SERIES = "readings", "series"
RECORDS = tuple(f"records/{name}" for name in SCHEMAS)

_AXIS_TYPES: dict[str, pa.DataType] = {
    "seed": pa.int64(),
    "rate": pa.float64(),
    "burst_sessions": pa.int32(),
    "cap": pa.int32(),
    "pool_tokens": pa.int64(),
    "order": pa.string(),
    "eviction": pa.string(),
}
_RUN = pa.field("run", pa.int32(), nullable=False)
_SERIES_VALUES = ("followup_hit_fraction", "outstanding", "at_gate", "completions_per_s")


def verdict_columns(registration: Registration, arm: str) -> list[str]:
    """`<ARM>.<verdict>` of every run rule and reported rule of an arm."""
    rule = registration.draft.rule
    return [f"{arm}.{one.name}" for one in (*rule.runs, *rule.reported) if one.arm == arm]


def reading_columns(registration: Registration) -> list[str]:
    """`<window>.<reading>` of every window of the design."""
    return [f"{window.name}.{reading}" for window in registration.draft.design.windows for reading in READING_KINDS]


def readings_schema(registration: Registration, arm: str) -> pa.Schema:
    """One row a run: its number, arm and axes, its arrival rate, readings with
    their units, verdicts. Null is undefined or not decidable.
    """
    units = {name: READING_KINDS[name.partition(".")[2]].unit for name in reading_columns(registration)}
    fields = [
        _RUN,
        pa.field("arm", pa.string(), nullable=False),
        *(pa.field(name, _AXIS_TYPES[name]) for name in AXES),
        pa.field("lambda_per_s", pa.float64(), metadata={"unit": "sessions/s"}),
        *(pa.field(name, pa.float64(), metadata={"unit": unit}) for name, unit in units.items()),
        *(pa.field(name, pa.bool_()) for name in verdict_columns(registration, arm)),
    ]
    return pa.schema(fields, metadata=_metadata(registration, READINGS))


def series_schema(registration: Registration) -> pa.Schema:
    """One row a run and bin, single precision: what the reading of the same
    name says in the bin (`at_gate`: sessions that wait there, on average).
    """
    values = [pa.field(name, pa.float32()) for name in _SERIES_VALUES]
    fields = [_RUN, pa.field("bin_start_s", pa.float64(), nullable=False), *values]
    return pa.schema(fields, metadata=_metadata(registration, SERIES))


def records_schema(registration: Registration, name: str) -> pa.Schema:
    """A table of the records with its run's number before its columns."""
    return pa.schema([_RUN, *stamped(name)], metadata=_metadata(registration, name))


def _metadata(registration: Registration, name: str) -> dict[str, str]:
    draft = registration.draft
    return {"trap_table": f"sweep-{name}-1", "statement": STATEMENT, "rule": draft.id, "draft_sha256": draft.sha256}


def readings_table(registration: Registration, arm: str, rows: Sequence[dict[str, Value]]) -> pa.Table:
    """The rows of some runs as a table."""
    schema = readings_schema(registration, arm)
    # Parquet's null, not its NaN: other programs leave nulls out of a mean.
    columns = [pa.array([row[field.name] for row in rows], field.type, from_pandas=True) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def series_table(registration: Registration, runs: Sequence[int], series: Sequence[Series]) -> pa.Table:
    """The series of some runs as one table."""
    schema = series_schema(registration)
    parts: dict[str, list[Any]] = {
        "run": [np.full(one.middle_s.size, run) for run, one in zip(runs, series, strict=True)],
        "bin_start_s": [one.bin_s * np.arange(one.middle_s.size) for one in series],
        "followup_hit_fraction": [one.hits for one in series],
        "outstanding": [one.outstanding for one in series],
        "at_gate": [one.at_gate for one in series],
        "completions_per_s": [one.completions_per_s for one in series],
    }
    columns = [
        pa.array(np.concatenate(parts[field.name]).astype(field.type.to_pandas_dtype()), from_pandas=True)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def records_table(registration: Registration, name: str, run: int, table: pa.Table) -> pa.Table:
    """One run's table with the run's number before its columns."""
    numbers = pa.array(np.full(table.num_rows, run, dtype=np.int32))
    return pa.Table.from_arrays([numbers, *table.columns], schema=records_schema(registration, name))
