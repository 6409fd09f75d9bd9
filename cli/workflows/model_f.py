"""Model F for one registered run: its load and what the theory says of it there.

Nothing is fitted to the runs: costs are the paper's fitted ones where the cell and
workload are the paper's, scaled to the calibrated lambda_ref, else the cell's own
step costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from modelf.costs import COSTS, Vector, session_cost
from modelf.first_principles import turn_costs
from modelf.renewal import TrappedState, mean_stationary_prompt_tokens, solve
from modelf.workload import STANDARD_WORKLOAD, Workload
from registry.design import RunId
from registry.registration import Registration

FITTED, STEP = "the paper's fitted costs", "the cell's step costs"


@dataclass(frozen=True)
class TurnCosts:
    """Seconds of turns 1 .. max_turns that miss, and where they come from."""

    seconds: tuple[float, ...]
    workload: Workload
    origin: str

    @property
    def vector(self) -> Vector:
        """The seconds as an array."""
        return np.array(self.seconds)

    @property
    def lambda_miss_per_s(self) -> float:
        """The all-miss capacity, sessions per second."""
        return 1.0 / session_cost(self.workload, self.vector)


@dataclass(frozen=True)
class Forecast:
    """Model F's asymptotic values at one load; readings' names and units.

    `lambda_per_s` arrives; `completions_per_s` and `backlog_slope_per_s` are
    sessions per second; `quasi_static_per_s` is what the quasi-static reading
    says of the backlog, lambda less lambda_miss.
    """

    rho: float
    lambda_per_s: float
    lambda_miss_per_s: float
    mean_prompt_tokens: float
    sojourn_slope: float
    completions_per_s: float
    backlog_slope_per_s: float
    quasi_static_per_s: float
    costs: str


def costs_of(registration: Registration, run: RunId) -> TurnCosts | None:
    """The costs of a run's cell and workload; None where there are none."""
    cell, workload = registration.cell_of(run), registration.draft.design.workload
    fitted = COSTS.get(cell.name) if cell == registration.cell and workload == STANDARD_WORKLOAD else None
    if fitted and registration.calibration:
        scale = fitted.lambda_ref() / registration.calibration.lambda_ref_per_s
        return TurnCosts(tuple((fitted.turn_costs(workload) * scale).tolist()), workload, FITTED)
    if cell.step_costs is None:
        return None
    seconds = turn_costs(cell.step_costs, workload, cell.pool_tokens).all_miss_s
    return TurnCosts(tuple(seconds.tolist()), workload, STEP)


def forecast(registration: Registration, run: RunId) -> Forecast | None:
    """Model F at a run's load; None for a closed population, without costs, and
    at or below the all-miss capacity, where there is no trapped regime.
    """
    costs = costs_of(registration, run)
    if run.rate is None or costs is None or registration.calibration is None:
        return None
    return _forecast(costs, run.rate * registration.calibration.lambda_ref_per_s)


@lru_cache(maxsize=256)
def _forecast(costs: TurnCosts, lambda_per_s: float) -> Forecast | None:
    capacity = costs.lambda_miss_per_s
    if not lambda_per_s > capacity:
        return None
    state = solved(costs, lambda_per_s / capacity)
    completions = float(state.completions_over_lambda_miss[0]) * capacity
    return Forecast(
        rho=lambda_per_s / capacity,
        lambda_per_s=lambda_per_s,
        lambda_miss_per_s=capacity,
        mean_prompt_tokens=float(state.mean_prompt_tokens[0]),
        sojourn_slope=float(state.gap_slope[0]),
        completions_per_s=completions,
        backlog_slope_per_s=lambda_per_s - completions,
        quasi_static_per_s=lambda_per_s - capacity,
        costs=costs.origin,
    )


def solved(costs: TurnCosts, rho: float | Vector) -> TrappedState:
    """The trapped state of such costs at loads above 1."""
    return solve(costs.vector, costs.workload, rho)


def stationary_prompt_tokens(costs: TurnCosts) -> float:
    """Mean prompt of the normal turn mix, tokens."""
    return mean_stationary_prompt_tokens(costs.workload)
