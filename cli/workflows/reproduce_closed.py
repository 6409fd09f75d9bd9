"""A closed population's curve: readings of n sessions kept running, against n."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from modelf.closed_population import ClosedCurve, closed_curve
from registry.design import RunId
from registry.registration import Registration
from verifier.exact_statistics import FloatArray
from verifier.verdict import Readings

_GRID = 60


@dataclass(frozen=True)
class ClosedPoints:
    """Runs of closed populations of the cell's own pool: `sessions` (n,) and,
    at each, turns/s and follow-up hit fraction of every seed, (n, seeds); NaN
    for a run that is not there.
    """

    sessions: FloatArray
    turns_per_s: FloatArray
    hits: FloatArray


def medians(values: FloatArray) -> FloatArray:
    """The median of each row of (n, seeds), what is not defined left out."""
    rows = [row[np.isfinite(row)] for row in values]
    return np.array([np.median(row) if row.size else math.nan for row in rows])


def closed_points(
    registration: Registration, readings: Mapping[RunId, Readings], seeds: tuple[int, ...]
) -> ClosedPoints | None:
    """The points, in the window that the rule judges; None where the design
    has no closed populations, or changes pool or caching.
    """
    draft = registration.draft
    arms = [arm for arm in draft.design.arms if arm.population and arm.caching and arm.pool_tokens is None]
    if len(arms) != len(draft.design.arms):
        return None
    arms.sort(key=lambda arm: arm.population or 0)

    def of(reading: str) -> FloatArray:
        runs = [[readings.get(RunId(arm.name, None, seed)) for seed in seeds] for arm in arms]
        return np.array([[one[draft.judged_window][reading] if one else math.nan for one in row] for row in runs])

    sessions = np.array([arm.population for arm in arms], dtype=np.float64)
    return ClosedPoints(sessions, of("turns_per_s"), of("followup_hit_fraction"))


def predicted_curve(registration: Registration) -> ClosedCurve | None:
    """What the closed population's theory says, from the cell's step costs; None
    where the cell has none.
    """
    costs = registration.cell.step_costs
    if costs is None:
        return None
    most = max(arm.population or 1 for arm in registration.draft.design.arms)
    sessions = np.linspace(2.0, 1.03 * most, _GRID)
    return closed_curve(costs, registration.draft.design.workload, registration.cell.pool_tokens, sessions)
