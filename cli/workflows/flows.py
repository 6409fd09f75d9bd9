"""Completions and sessions over time: of runs, and of model F on their own plans."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modelf.fluid import fluid_orbit
from modelf.fluid_inputs import Scenario, SessionArrivals, stationary_start
from registry.design import RunId
from registry.plan import Plan
from registry.predictor import Predictor
from registry.registration import Registration
from verifier.exact_statistics import FloatArray
from verifier.predictor_costs import predictor_costs
from verifier.predictors import FLUID_STEP_S
from verifier.series import Series, in_groups


@dataclass(frozen=True)
class Flow:
    """Completions in bins, sessions per second, and sessions present (of a run:
    waiting at or served by the engine); arrays of shape (bins,).
    """

    middle_s: FloatArray
    completions_per_s: FloatArray
    sessions: FloatArray


def run_flow(series: Series, bins: int = 1) -> Flow:
    """A run's flow in groups of `bins` bins of its series."""
    middle_s = in_groups(series, "middle_s", bins)
    return Flow(middle_s, in_groups(series, "completions_per_s", bins), in_groups(series, "outstanding", bins))


def fluid_flow(registration: Registration, predictor: Predictor, run: RunId, plan: Plan, bin_s: float) -> Flow:
    """Model F driven by a run's own plan, as a fluid predictor of the registration
    sets it up: whole bins from its start to the horizon, sessions at their middles.
    """
    design = registration.draft.design
    assert predictor.all_miss_from_s is not None and predictor.sessions_present is not None
    rows = [(t, plan.session(origin, i).turns) for t, origin, i in plan.arrivals()]
    arrivals = SessionArrivals(tuple(t for t, _ in rows), tuple(turns for _, turns in rows))
    start = stationary_start(design.workload.turns, predictor.all_miss_from_s, predictor.sessions_present)
    costs = predictor_costs(registration, predictor, run)
    horizon_s = design.horizon_of(design.arm(run.arm))
    orbit = fluid_orbit(design.workload.turns, costs, Scenario(start, arrivals), horizon_s, FLUID_STEP_S)
    edges = np.arange(predictor.all_miss_from_s, horizon_s + 1e-9, bin_s)
    middle_s = (edges[1:] + edges[:-1]) / 2
    completed = np.diff(np.interp(edges, orbit.time_s, orbit.completed))
    return Flow(middle_s, completed / bin_s, np.interp(middle_s, orbit.time_s, orbit.present))
