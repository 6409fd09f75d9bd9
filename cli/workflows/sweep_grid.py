"""The grid of a sweep: which run has which number, and the arm that it runs.

Pure. A run's number says its place on every axis: the last axis turns
fastest, the seed slowest, so that an unfinished sweep is the whole grid over
fewer seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cli.workflows.sweep_axes import AXES, Value, shown
from modelf.cells import Cell
from registry.design import Arm, Design, GateSetting
from registry.errors import StudyError
from registry.plan import MAX_ARRIVALS
from registry.policy_checks import policy_problems
from registry.registration import Registration
from registry.strict_yaml import Document

MOST_RUNS = 1_000_000

_REFUSED = ("cap", "pool_tokens", "order", "eviction")
"""The axes some of whose values a design may refuse."""


@dataclass(frozen=True)
class Point:
    """One run: its value on every axis. `rate` is a multiple of lambda_ref,
    None for a closed population; no `burst_sessions` is no burst; `cap` None
    is no gate.
    """

    seed: int
    rate: float | None
    burst_sessions: int
    cap: int | None
    pool_tokens: int
    order: str
    eviction: str


@dataclass(frozen=True)
class Grid:
    """The values of every axis of `AXES`, in its order."""

    axes: Mapping[str, tuple[Value, ...]]

    @property
    def runs(self) -> int:
        """How many runs the grid has."""
        return math.prod(len(values) for values in self.axes.values())

    def stride(self, axis: str) -> int:
        """How many consecutive runs share a value of `axis`."""
        names = list(self.axes)
        return math.prod(len(self.axes[name]) for name in names[names.index(axis) + 1 :])

    def point(self, run: int) -> Point:
        """The values of the run of this number."""
        found: dict[str, Any] = {}
        for name, values in self.axes.items():
            found[name] = values[run // self.stride(name) % len(values)]
        return Point(**found)


def grid_of(design: Design, arm: Arm, cell: Cell, given: Mapping[str, tuple[Value, ...]]) -> Grid:
    """The grid of the axes given; the others keep the value of the rule file,
    its seeds as literal seeds.
    """
    own: dict[str, tuple[Value, ...]] = {
        "seed": design.seeds.values,
        "rate": design.rates if arm.population is None else (None,),
        "burst_sessions": (arm.burst.sessions if arm.burst else 0,),
        "cap": (arm.gate.cap if arm.gate else None,),
        "pool_tokens": (cell.pool_tokens if arm.pool_tokens is None else arm.pool_tokens,),
        "order": (arm.engine.order,),
        "eviction": (arm.engine.eviction,),
    }
    return Grid({name: given.get(name, own[name]) for name in AXES})


def arm_at(arm: Arm, point: Point) -> Arm:
    """The arm with the point's burst, cap, pool and engine policy.

    A cap where the arm has no gate holds from the run's start to its end.
    """
    burst = replace(arm.burst, sessions=point.burst_sessions) if arm.burst and point.burst_sessions else None
    engine = replace(arm.engine, order=point.order, eviction=point.eviction)
    return replace(arm, burst=burst, gate=_gate_at(arm.gate, point.cap), pool_tokens=point.pool_tokens, engine=engine)


def _gate_at(gate: GateSetting | None, cap: int | None) -> GateSetting | None:
    if gate and gate.pool_share is not None:
        return gate
    if cap is None:
        return None
    return replace(gate, cap=cap) if gate else GateSetting(cap, engage_s=0.0, release_after_s=None)


def check_grid(registration: Registration, arm: Arm, grid: Grid, given: Mapping[str, tuple[Value, ...]]) -> None:
    """StudyError for an axis that the arm has not, a value that its design
    refuses, or a grid that is too large. No two axes hang together, so each
    value is tried alone.
    """
    if grid.runs > MOST_RUNS:
        sizes = " x ".join(f"{len(values)} of {name}" for name, values in grid.axes.items() if len(values) > 1)
        raise StudyError("too many runs", value=grid.runs, remedy=f"at most {MOST_RUNS:,}, and here are {sizes}")
    _check_arm(arm, given)
    base = grid.point(0)
    for name in _REFUSED:
        for value in given.get(name, ()):
            changed: dict[str, Any] = {name: value}
            problem = _problem(registration, arm_at(arm, replace(base, **changed)))
            if problem:
                raise StudyError(problem[0], where=AXES[name].option, value=shown(value), remedy=problem[1])
    _check_arrivals(registration, arm, grid)


def _check_arm(arm: Arm, given: Mapping[str, tuple[Value, ...]]) -> None:
    closed = arm.population is not None
    refusals = {
        "rate": "the arm keeps a population running, and has no arrival rate" if closed else "",
        "burst_sessions": "" if arm.burst else "the arm has no burst whose size could vary",
        "cap": "a closed population takes no gate"
        if closed
        else "the arm's gate looks at the pool's share, not at a cap"
        if arm.gate and arm.gate.pool_share is not None
        else "",
    }
    for name, what in refusals.items():
        if name in given and what:
            raise StudyError(what, where=AXES[name].option, value=arm.name, remedy="leave it out, or name another arm")


def _problem(registration: Registration, arm: Arm) -> tuple[str, str | None] | None:
    """What the design's own checks say of one arm: (what, remedy)."""
    cell, draft = registration.cell, registration.draft
    if (arm.pool_tokens or 0) > cell.pool_tokens:
        return "the pool is larger than its cell's", f"at most {cell.pool_tokens}"
    if draft.session_scripts and arm.engine.eviction != "lru":
        return "with a trace the cache is of blocks that sessions share: the oldest go first", "lru"
    design = replace(draft.design, arms=(arm,))
    found = policy_problems(Document(draft.id, draft.source), design, {cell.name: cell})
    return (found[0].what, found[0].remedy) if found else None


def _check_arrivals(registration: Registration, arm: Arm, grid: Grid) -> None:
    rates = [rate for rate in grid.axes["rate"] if isinstance(rate, float)]
    reference = registration.calibration.lambda_ref_per_s if registration.calibration else 0.0
    arrivals = max(rates, default=0.0) * reference * registration.draft.design.horizon_of(arm)
    if arrivals > MAX_ARRIVALS:
        raise StudyError("too many arrivals in one run", where="--rates", value=int(arrivals),
                         remedy=f"at most {MAX_ARRIVALS} a run")  # fmt: skip
