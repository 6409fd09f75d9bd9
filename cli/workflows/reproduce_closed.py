"""A closed population's curve: readings of n sessions kept running, against n."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cli.workflows.rehearse import Rehearsal
from modelf.closed_population import ClosedCurve, closed_curve
from verifier.exact_statistics import FloatArray

_GRID = 60


@dataclass(frozen=True)
class ClosedPoints:
    """Runs of closed populations of the cell's own pool: `sessions` (n,) and,
    at each, turns/s and follow-up hit fraction of every seed, (n, seeds).
    """

    sessions: FloatArray
    turns_per_s: FloatArray
    hits: FloatArray


def closed_points(rehearsal: Rehearsal) -> ClosedPoints | None:
    """The points, in the window that the rule judges; None where the design
    has no closed populations, or changes pool or caching.
    """
    draft = rehearsal.registration.draft
    arms = [arm for arm in draft.design.arms if arm.population and arm.caching and arm.pool_tokens is None]
    if len(arms) != len(draft.design.arms):
        return None
    arms.sort(key=lambda arm: arm.population or 0)
    rows = [
        [readings[draft.judged_window] for run, readings in rehearsal.readings.items() if run.arm == arm.name]
        for arm in arms
    ]
    return ClosedPoints(
        sessions=np.array([arm.population for arm in arms], dtype=np.float64),
        turns_per_s=np.array([[one["turns_per_s"] for one in row] for row in rows]),
        hits=np.array([[one["followup_hit_fraction"] for one in row] for row in rows]),
    )


def predicted_curve(rehearsal: Rehearsal) -> ClosedCurve:
    """What the closed population's theory says, from the cell's step costs."""
    registration = rehearsal.registration
    costs = registration.cell.step_costs
    assert costs is not None
    most = max(arm.population or 1 for arm in registration.draft.design.arms)
    sessions = np.linspace(2.0, 1.03 * most, _GRID)
    return closed_curve(costs, registration.draft.design.workload, registration.cell.pool_tokens, sessions)
