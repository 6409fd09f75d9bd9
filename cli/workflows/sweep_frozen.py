"""A sweep as it is frozen in `sweep.json`: the grid, and all that its runs
hang on. Every byte of its files follows from this one, on any machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import pyarrow as pa

from cli.workflows.sweep_axes import AXES, Value
from cli.workflows.sweep_columns import (
    READINGS,
    RECORDS,
    SERIES,
    STATEMENT,
    readings_schema,
    series_schema,
)
from cli.workflows.sweep_grid import MOST_RUNS, Grid, Point, arm_at
from registry.bundle import bundled, unbundled
from registry.canonical import canonical_bytes, load_json, sha256_hex
from registry.design import Arm, RunId
from registry.errors import StudyError
from registry.registration import Registration, read_registration

SWEEP_FILE = "sweep.json"
SCHEMA = "trap-sweep-1"


@dataclass(frozen=True)
class Sweep:
    """A frozen sweep. `registration` is the rule file's, calibrated, with no
    tag; `arm` the arm that is varied; bins of the series are `bin_s` wide.
    """

    registration: Registration
    arm: Arm
    grid: Grid
    bin_s: float
    shard_runs: int
    records: bool

    @property
    def shards(self) -> int:
        """How many shards the runs fill, the last perhaps in part."""
        return -(-self.grid.runs // self.shard_runs)

    @property
    def tables(self) -> tuple[str, ...]:
        """The folders that have a file a shard; readings come last."""
        return (*(RECORDS if self.records else ()), SERIES, READINGS)

    def runs_of(self, shard: int) -> range:
        """The numbers of a shard's runs."""
        first = shard * self.shard_runs
        return range(first, min(first + self.shard_runs, self.grid.runs))

    def at(self, point: Point) -> tuple[Registration, RunId]:
        """The registration whose arm is the point's, and the run in it."""
        draft, arm = self.registration.draft, arm_at(self.arm, point)
        arms = tuple(arm if other.name == arm.name else other for other in draft.design.arms)
        changed = replace(draft, design=replace(draft.design, arms=arms))
        return replace(self.registration, draft=changed), RunId(arm.name, point.rate, point.seed)


def freeze_sweep(
    rule_file: bytes,
    registration: bytes,
    arm: str,
    axes: Mapping[str, tuple[Value, ...]],
    *,
    bin_s: float,
    shard_runs: int,
    records: bool,
) -> bytes:
    """The canonical bytes of sweep.json; no clock, no path, no machine in them.
    `registration` is bundled with its scripts, and so is the sweep.
    """
    read, (frozen, scripts) = read_registration(registration, SWEEP_FILE), unbundled(registration)
    sweep = canonical_bytes(
        {
            "schema": SCHEMA,
            "statement": STATEMENT,
            "made_with": {"trapkit": version("trapkit"), "pyarrow": pa.__version__},
            "rule_file": {"sha256": sha256_hex(rule_file), "text": rule_file.decode("utf-8")},
            "registration": load_json(frozen, SWEEP_FILE),
            "arm": arm,
            "axes": {name: list(values) for name, values in axes.items()},
            "bin_s": bin_s,
            "shard_runs": shard_runs,
            "records": records,
            "columns": {READINGS: readings_schema(read, arm).names, SERIES: series_schema(read).names},
        }
    )
    return bundled(sweep, scripts)


@lru_cache(maxsize=4)
def read_sweep(data: bytes, name: str) -> Sweep:
    """Read sweep.json back, bundled with the scripts that it names; StudyError
    where it is no sweep of this version, DraftError where they are missing or others.
    """
    data, scripts = unbundled(data)
    value = load_json(data, name)
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise StudyError("not a sweep of this version", where=name, remedy=f"a file with schema {SCHEMA}")
    try:
        registration = read_registration(bundled(canonical_bytes(value["registration"]), scripts), name)
        sweep = Sweep(
            registration=registration,
            arm=registration.draft.design.arm(value["arm"]),
            grid=Grid({axis: _values(axis, value["axes"][axis]) for axis in AXES}),
            bin_s=float(value["bin_s"]),
            shard_runs=int(value["shard_runs"]),
            records=value["records"] is True,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StudyError(f"a field of the sweep is missing or malformed: {error}", where=name) from None
    if not 1 <= sweep.grid.runs <= MOST_RUNS or sweep.shard_runs < 1 or not sweep.bin_s > 0:
        raise StudyError("the sweep has no runs, or too many", where=name, value=sweep.grid.runs)
    return sweep


def _values(axis: str, values: Any) -> tuple[Value, ...]:
    """Values as they were: canonical JSON writes the rate 1.0 as 1."""
    kinds: dict[str, tuple[type, ...]] = {"rate": (int, float, type(None)), "cap": (int, type(None))}
    allowed = kinds.get(axis, (str,) if AXES[axis].words else (int,))
    if not isinstance(values, list) or not all(type(value) in allowed for value in values):
        raise ValueError(f"axes.{axis}")
    return tuple(float(value) if axis == "rate" and value is not None else value for value in values)


def differences(frozen: bytes, asked: bytes) -> list[str]:
    """The fields in which two sweeps differ, `axes.rate` say."""
    one, other = load_json(frozen, SWEEP_FILE), load_json(asked, SWEEP_FILE)
    if not isinstance(one, dict):
        return ["schema"]
    found = []
    for name, value in other.items():
        there = one.get(name)
        if name == "axes" and isinstance(there, dict):
            found += [f"axes.{axis}" for axis in value if there.get(axis) != value[axis]]
        elif there != value:
            found.append(name)
    return found
