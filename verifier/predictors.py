"""Predictors: values computed on the drawn plans, by their kind.

Pure: plans and simulated readings come as values. The same code evaluates for
`trapkit predict` and, again, for the verifier.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from modelf.costs import session_cost
from modelf.fluid import fluid_orbit
from modelf.fluid_inputs import Scenario, SessionArrivals, stationary_start
from modelf.fluid_readings import window_readings
from modelf.renewal import solve
from registry.beacon import BeaconValue
from registry.design import RunId, Window
from registry.errors import RegistrationError
from registry.predictions import Values
from registry.predictor import Predictor
from registry.registration import Registration
from verifier.first_principles_predictors import closed_population_readings, trap_forecast
from verifier.predictor_costs import predictor_costs
from verifier.verdict import Readings, run_verdicts

FLUID_STEP_S = 5.0
"""Step of the fluid, seconds: part of predictor version 1."""

Simulated = Callable[[RunId], Readings]


def computed(registration: Registration) -> list[Predictor]:
    """The predictors that are evaluated on the drawn plans."""
    return [predictor for predictor in registration.draft.predictors if predictor.computed]


def predicted_runs(registration: Registration, predictor: Predictor) -> list[RunId]:
    """The runs that a predictor speaks of, rate by rate, one a seed."""
    runs = [run for run in registration.draft.design.run_ids() if run.arm == predictor.arm]
    return [run for run in runs if predictor.rate in (None, run.rate)]


def simulated_runs(registration: Registration) -> list[RunId]:
    """The runs that have to be simulated before `evaluate`."""
    wanted = [p for p in computed(registration) if p.kind == "simulator"]
    return list(dict.fromkeys(run for p in wanted for run in predicted_runs(registration, p)))


def evaluate(registration: Registration, beacon: BeaconValue | None, simulated: Simulated) -> Values:
    """Every computed predictor's value for each of its runs.

    RegistrationError where a predictor gives none.
    """
    values: dict[tuple[str, RunId], float] = {}
    kept: dict[tuple[object, ...], Mapping[str, float]] = {}
    for predictor in computed(registration):
        for run in predicted_runs(registration, predictor):
            if predictor.verdict is not None:
                value = _verdict(registration, predictor, run, beacon, simulated)
            else:
                value = _reading(registration, predictor, run, beacon, simulated, kept)
            values[predictor.name, run] = _finite(registration, predictor, run, value)
    return values


def _verdict(
    registration: Registration, predictor: Predictor, run: RunId, beacon: BeaconValue | None, simulated: Simulated
) -> float:
    """1 for true, 0 for false; NaN where a simulated run is not decidable."""
    if predictor.kind == "first-principles-trap":
        return float(trap_forecast(registration, predictor, run, beacon).traps)
    found = {v.name: v.decision.value for v in run_verdicts(registration, run, {run: simulated(run)}, {})}
    value = found[str(predictor.verdict)]
    return math.nan if value is None else float(value)


def _reading(
    registration: Registration,
    predictor: Predictor,
    run: RunId,
    beacon: BeaconValue | None,
    simulated: Simulated,
    kept: dict[tuple[object, ...], Mapping[str, float]],
) -> float:
    """The predicted reading; `kept` holds what another one can share."""
    reading = str(predictor.reading)
    if predictor.kind == "simulator":
        return simulated(run)[str(predictor.window)][reading]
    if predictor.kind == "model-f-asymptotic":
        return _asymptotic(registration, predictor, run)
    if predictor.kind == "closed-population":
        key: tuple[object, ...] = (run.arm, predictor.costs)
        if key not in kept:
            kept[key] = closed_population_readings(registration, predictor, run)
        return kept[key][reading]
    key = (run, predictor.window, predictor.costs, predictor.all_miss_from_s, predictor.sessions_present)
    if key not in kept:
        kept[key] = _fluid(registration, predictor, run, beacon)
    return kept[key][reading]


def _finite(registration: Registration, predictor: Predictor, run: RunId, value: float) -> float:
    if math.isfinite(value):
        return value
    raise RegistrationError(
        "the predictor gives no value",
        where=f"{registration.tag} {predictor.name}",
        value=run.path,
        remedy="register a predictor that is defined at this rate and in this window",
    )


def _asymptotic(registration: Registration, predictor: Predictor, run: RunId) -> float:
    """Theorem 1(a) at the run's load, the same for every seed. NaN at or
    below the all-miss capacity, where there is no trapped regime.
    """
    workload = registration.draft.design.workload
    costs = predictor_costs(registration, predictor, run)
    capacity = 1.0 / session_cost(workload, costs)
    rho = (registration.lambda_per_s(run) or 0.0) / capacity
    if rho <= 1.0:
        return float("nan")
    state = solve(costs, workload, rho)
    completions = float(state.completions_over_lambda_miss[0])
    return {
        "mean_prompt_tokens": float(state.mean_prompt_tokens[0]),
        "completions_per_s": completions * capacity,
        "backlog_slope_per_s": (rho - completions) * capacity,
        "sojourn_slope": float(state.gap_slope[0]),
    }[str(predictor.reading)]


def _fluid(
    registration: Registration, predictor: Predictor, run: RunId, beacon: BeaconValue | None
) -> dict[str, float]:
    """Model F driven by the run's own arrivals and turn counts, every turn
    missing from `all_miss_from_s` on; earlier arrivals are what is left of
    them, `sessions_present` in the stationary turn mix.
    """
    workload = registration.draft.design.workload
    assert predictor.all_miss_from_s is not None and predictor.sessions_present is not None
    plan = registration.plan(run, beacon)
    rows = [(t, plan.session(origin, i).turns) for t, origin, i in plan.arrivals()]
    arrivals = SessionArrivals(tuple(t for t, _ in rows), tuple(turns for _, turns in rows))
    start = stationary_start(workload.turns, predictor.all_miss_from_s, predictor.sessions_present)
    costs = predictor_costs(registration, predictor, run)
    window = registration.draft.design.window(str(predictor.window))
    assert isinstance(window, Window)
    horizon_s = registration.draft.design.horizon_of(registration.draft.design.arm(run.arm))
    orbit = fluid_orbit(workload.turns, costs, Scenario(start, arrivals), horizon_s, FLUID_STEP_S)
    return window_readings(orbit, workload, window.start_s, window.end_s)
