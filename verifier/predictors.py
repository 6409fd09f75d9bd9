"""Predictors: values computed on the drawn plans, by their kind.

Pure: plans and simulated readings come as values. The same code evaluates for
`trapkit predict` and, again, for the verifier.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from modelf.costs import COSTS, MissCosts
from modelf.renewal import solve
from modelf.workload import Workload
from registry.beacon import BeaconValue
from registry.design import RunId
from registry.draft import Predictor
from registry.errors import RegistrationError
from registry.predictions import Values
from registry.registration import Registration
from verifier.verdict import Readings

PREDICTOR_VERSION = 1
Simulated = Callable[[RunId], Readings]


def computed(registration: Registration) -> list[Predictor]:
    """The predictors that are evaluated on the drawn plans."""
    return [predictor for predictor in registration.draft.predictors if predictor.computed]


def predicted_runs(registration: Registration, predictor: Predictor) -> list[RunId]:
    """The runs that a predictor speaks of, one a seed."""
    runs = registration.draft.design.run_ids()
    return [run for run in runs if (run.arm, run.rate) == (predictor.arm, predictor.rate)]


def simulated_runs(registration: Registration) -> list[RunId]:
    """The runs that have to be simulated before `evaluate`."""
    wanted = [p for p in computed(registration) if p.kind == "simulator"]
    return list(dict.fromkeys(run for p in wanted for run in predicted_runs(registration, p)))


def evaluate(registration: Registration, beacon: BeaconValue | None, simulated: Simulated) -> Values:
    """Every computed predictor's value for each of its runs.

    RegistrationError where a predictor gives none.
    """
    return {
        (predictor.name, run): _value(registration, predictor, run, beacon, simulated)
        for predictor in computed(registration)
        for run in predicted_runs(registration, predictor)
    }


def _value(
    registration: Registration, predictor: Predictor, run: RunId, beacon: BeaconValue | None, simulated: Simulated
) -> float:
    if predictor.kind == "simulator":
        value = simulated(run)[predictor.window][predictor.reading]
    elif predictor.kind == "model-f-fluid":
        value = _fluid(registration, predictor, run, beacon)
    else:
        value = _asymptotic(registration, predictor, run)
    if not math.isfinite(value):
        raise RegistrationError(
            "the predictor gives no value",
            where=f"{registration.tag} {predictor.name}",
            value=run.path,
            remedy="register a predictor that is defined at this rate and in this window",
        )
    return value


def miss_costs(registration: Registration, predictor: Predictor) -> MissCosts:
    """The costs that a model-F predictor takes."""
    costs = COSTS.get(registration.cell.name)
    if costs is None:
        raise RegistrationError(
            "no costs are known for this cell", where=registration.tag, value=registration.cell.name
        )
    return costs


def lambda_miss_per_s(registration: Registration, costs: MissCosts, workload: Workload) -> float:
    """The predicted all-miss capacity in the calibration's scale: the frozen
    lambda_ref times lambda_miss / lambda_ref of the costs.
    """
    assert registration.calibration is not None
    return registration.calibration.lambda_ref_per_s * costs.lambda_miss(workload) / costs.lambda_ref()


def _asymptotic(registration: Registration, predictor: Predictor, run: RunId) -> float:
    """Theorem 1(a) at the run's load; the same for every seed. NaN at or
    below the all-miss capacity, where there is no trapped regime.
    """
    workload = registration.draft.design.workload
    costs = miss_costs(registration, predictor)
    capacity = lambda_miss_per_s(registration, costs, workload)
    rho = (registration.lambda_per_s(run) or 0.0) / capacity
    if rho <= 1.0:
        return float("nan")
    state = solve(costs.turn_costs(workload), workload, rho)
    completions = float(state.completions_over_lambda_miss[0])
    return {
        "mean_prompt_tokens": float(state.mean_prompt_tokens[0]),
        "completions_per_s": completions * capacity,
        "backlog_slope_per_s": (rho - completions) * capacity,
        "sojourn_slope": float(state.gap_slope[0]),
    }[predictor.reading]
