"""Series for the pictures of a reproduction: runs made again, in bins.

Rehearsals keep readings only; a few seeds are simulated once more here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cli.workflows.rehearse import Rehearsal, provisional, read_cached, simulated
from cli.workflows.reporter import Reporter
from modelf.fluid import fluid_orbit
from modelf.fluid_inputs import Scenario, SessionArrivals, stationary_start
from registry.design import RunId
from registry.plan import make_plan, plan_key
from registry.registration import Registration
from runners.local_queue import run_all
from verifier.exact_statistics import FloatArray
from verifier.predictor_costs import predictor_costs
from verifier.series import Series, series_of

_FLUID_STEP_S = 5.0


@dataclass(frozen=True)
class FluidSeries:
    """Model F on one run's plan: completions in bins, and sessions present at
    the bins' middles; shape (bins,), NaN before the fluid starts.
    """

    middle_s: FloatArray
    completions_per_s: FloatArray
    present: FloatArray


def run_series(order: tuple[bytes, RunId, float]) -> Series:
    """The series of one literal-seed run; runs in a worker process."""
    data, run, bin_s = order
    registration = read_cached(data)
    block = registration.cell_of(run).cache_block_tokens
    design = registration.draft.design
    return series_of(simulated(registration, run), design.horizon_of(design.arm(run.arm)), bin_s, block)


def all_series(rehearsal: Rehearsal, runs: Sequence[RunId], bin_s: float, reporter: Reporter) -> dict[RunId, Series]:
    """The series of some runs of a rehearsal, in parallel over cores."""
    registration = rehearsal.registration
    data = provisional(registration.draft, registration.calibration)
    found: dict[RunId, Series] = {}
    for (_, run, _), result in run_all(run_series, [(data, run, bin_s) for run in runs]):
        if isinstance(result, Exception):
            raise result
        found[run] = result
        reporter.step(f"series of {registration.draft.id} (simulated)", len(found), len(runs))
    return {run: found[run] for run in runs}


def fluid_series(registration: Registration, predictor_name: str, run: RunId, bin_s: float) -> FluidSeries:
    """Model F driven by one literal-seed run's own plan, as a fluid predictor
    of the registration sets it up, whole bins from its start to the horizon.
    """
    design = registration.draft.design
    predictor = next(p for p in registration.draft.predictors if p.name == predictor_name)
    assert predictor.all_miss_from_s is not None and predictor.sessions_present is not None
    key = plan_key("", 0, "", run.seed)
    plan = make_plan(key, design, design.arm(run.arm), registration.lambda_per_s(run), run.rate)
    rows = [(t, plan.session(origin, i).turns) for t, origin, i in plan.arrivals()]
    arrivals = SessionArrivals(tuple(t for t, _ in rows), tuple(turns for _, turns in rows))
    start = stationary_start(design.workload.turns, predictor.all_miss_from_s, predictor.sessions_present)
    costs = predictor_costs(registration, predictor, run)
    orbit = fluid_orbit(design.workload.turns, costs, Scenario(start, arrivals), design.horizon_s, _FLUID_STEP_S)
    edges = np.arange(predictor.all_miss_from_s, design.horizon_s + 1e-9, bin_s)
    middle_s = (edges[1:] + edges[:-1]) / 2
    completed = np.diff(np.interp(edges, orbit.time_s, orbit.completed))
    return FluidSeries(middle_s, completed / bin_s, np.interp(middle_s, orbit.time_s, orbit.present))
