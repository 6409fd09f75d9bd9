"""Predictors from the closed population and the trap forecast of `modelf`."""

from __future__ import annotations

from modelf.closed_population import closed_curve
from modelf.trap_forecast import PlannedSession, TrapForecast, forecast
from registry.beacon import BeaconValue
from registry.design import RunId
from registry.plan import MICROSECONDS
from registry.predictor import Predictor
from registry.registration import Registration
from verifier.predictor_costs import predictor_step_costs


def closed_population_readings(registration: Registration, predictor: Predictor, run: RunId) -> dict[str, float]:
    """What the closed-population curve says of a run's population, by reading,
    with the demand-fluctuation layer: the steady state, the same for every
    seed. It knows no window; the young population of a start is left out.
    """
    arm = registration.draft.design.arm(run.arm)
    assert arm.population is not None
    costs = predictor_step_costs(registration, predictor, run)
    pool_tokens = registration.cell_of(run).pool_tokens
    curve = closed_curve(costs, registration.draft.design.workload, pool_tokens, [arm.population])
    return {
        "followup_hit_fraction": float(curve.hit_fraction[0]),
        "reuse_fraction": float(curve.reuse_fraction[0]),
        "turns_per_s": float(curve.turns_per_s[0]),
        "completions_per_s": float(curve.sessions_per_s[0]),
    }


def trap_forecast(
    registration: Registration, predictor: Predictor, run: RunId, beacon: BeaconValue | None
) -> TrapForecast:
    """The first-principles forecast for a run: does its plan, slowed, cut and
    shed as its arm says, bring a good engine to the all-miss onset?

    See `modelf.trap_forecast` for what that decides, and what it ignores.
    """
    design = registration.draft.design
    arm, plan = design.arm(run.arm), registration.plan(run, beacon)
    rows = [(time_us / MICROSECONDS, origin, index) for time_us, origin, index in plan.arrivals()]
    sessions = [
        PlannedSession(time_s, tuple(us / MICROSECONDS for us in plan.session(origin, index).tool_us))
        for time_s, origin, index in rows
        if not (arm.shed and arm.shed.refuses(time_s))
    ]
    rate = registration.lambda_per_s(run) or 0.0
    if arm.cut and run.rate:
        rate *= arm.cut.to_rate / run.rate
    costs = predictor_step_costs(registration, predictor, run)
    pool_tokens = registration.cell_of(run).pool_tokens
    slowdown = arm.tool_slowdown.added_s if arm.tool_slowdown else (lambda _: 0.0)
    return forecast(costs, design.workload, pool_tokens, sessions, rate, slowdown)
