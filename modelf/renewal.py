"""The renewal law of a trapped server: where model F goes, at any load.

Along FIFO orbits the cycles obey tau_{n+1} = sum_k a_k tau_{n+1-k} with
a_k = lambda S_k c_k, sum a_k = rho. R is the root of sum_k a_k R^-k = 1;
x = 1/R below. Source: the paper's Lemma 1, Theorem 1(a), Theorem 2,
Proposition 1, Corollary 3.

Only ratios matter: costs may be in any unit of time, loads are multiples of
the all-miss capacity lambda_miss.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modelf.costs import session_cost
from modelf.turn_law import mean_turns, survivals
from modelf.workload import Workload

Vector = NDArray[np.float64]

_NEWTON_STEPS = 60
_TOLERANCE = 4 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class TrappedState:
    """The self-similar regime at loads rho > 1; every field has their shape,
    but `mix`, which has (loads, max_turns).

    `growth` is R; `mix` the tilted mix of turns served; `mean_prompt_tokens`
    its mean prompt. `gap_slope` is 1 - 1/R, the growth of the gap between a
    session's turns per second of completion time (R - 1 per second of joining
    time). `completions_over_lambda_miss` is D / lambda_miss = H Gamma, with
    H `turn_count_factor` and Gamma `cost_growth_factor`.
    `backlog_slope_over_excess` is sigma / (lambda - lambda_miss), and
    `quasi_static_ratio` its inverse: what the quasi-static reading says over
    what model F says.
    """

    rho: Vector
    growth: Vector
    mix: Vector
    mean_prompt_tokens: Vector
    gap_slope: Vector
    completions_over_lambda_miss: Vector
    backlog_slope_over_excess: Vector
    quasi_static_ratio: Vector
    turn_count_factor: Vector
    cost_growth_factor: Vector


def solve(turn_costs: Vector, workload: Workload, rho: ArrayLike) -> TrappedState:
    """The trapped state at each load of `rho` (all above 1).

    `turn_costs` has shape (max_turns,), positive, in any unit of time.
    ValueError says which load or cost is outside the model.
    """
    loads = np.atleast_1d(np.asarray(rho, dtype=np.float64))
    survival = np.asarray(survivals(workload.turns))
    _check(turn_costs, survival, loads)
    shares = survival * turn_costs / np.dot(survival, turn_costs)
    x = perron_root(shares, loads)
    ending = survival - np.append(survival[1:], 0.0)
    powers = x[:, None] ** np.arange(len(survival))
    weights = survival * powers
    total = weights.sum(axis=1)
    over_miss = loads * (powers @ ending) * x
    mean_cost = np.dot(survival, turn_costs) / survival.sum()
    return TrappedState(
        rho=loads,
        growth=1.0 / x,
        mix=weights / total[:, None],
        mean_prompt_tokens=weights @ np.asarray(workload.prompts(), dtype=np.float64) / total,
        gap_slope=1.0 - x,
        completions_over_lambda_miss=over_miss,
        backlog_slope_over_excess=loads * (1.0 - x) * total / (loads - 1.0),
        quasi_static_ratio=(loads - 1.0) / (loads * (1.0 - x) * total),
        turn_count_factor=survival.sum() * (powers @ ending) / total,
        cost_growth_factor=mean_cost / (weights @ turn_costs / total),
    )


def _check(turn_costs: Vector, survival: Vector, loads: Vector) -> None:
    if turn_costs.shape != survival.shape:
        raise ValueError(f"{len(turn_costs)} turn costs for a law of {len(survival)} turns")
    if not (np.isfinite(turn_costs).all() and (turn_costs > 0).all()):
        raise ValueError("every turn cost must be positive and finite")
    outside = loads[~(np.isfinite(loads) & (loads > 1.0))]
    if len(outside):
        raise ValueError(
            f"the load {outside[0]:g} is not above 1: at or below the all-miss capacity the queue empties "
            "or stays level, and there is no trapped regime"
        )


def perron_root(shares: Vector, loads: Vector) -> Vector:
    """X = 1/R in (0, 1) with rho sum_k shares_k x^k = 1, for each load > 1.

    `shares` is S_k c_k over its sum. Newton from the right: the polynomial is
    increasing and convex on x > 0, so the steps descend to the root.
    """
    smallest = max(float(shares[0]), float(np.finfo(np.float64).tiny))
    x: Vector = np.minimum(1.0, 1.0 / (loads * smallest))
    for _ in range(_NEWTON_STEPS):
        value, slope = _polynomial(shares, x)
        step = (loads * value - 1.0) / (loads * slope)
        x = x - step
        if (np.abs(step) <= _TOLERANCE * x).all():
            break
    return x


def _polynomial(shares: Vector, x: Vector) -> tuple[Vector, Vector]:
    """sum_k shares_k x^k and its derivative, by Horner's rule."""
    value, slope = np.zeros_like(x), np.zeros_like(x)
    for share in shares[::-1]:
        slope = slope * x + value
        value = value * x + share
    return value * x, slope * x + value


def threshold_slope(turn_costs: Vector, workload: Workload) -> float:
    """theta: sigma / (lambda - lambda_miss) as rho falls to 1 (Prop. 1(c)).

    E[T] over the cost-weighted mean turn number.
    """
    survival = np.asarray(survivals(workload.turns))
    shares = survival * turn_costs / np.dot(survival, turn_costs)
    return mean_turns(workload.turns) / float(np.dot(np.arange(1, len(shares) + 1), shares))


def mean_stationary_prompt_tokens(workload: Workload) -> float:
    """Mean prompt over turns in the normal mix, sum S_k p_k / E[T], tokens."""
    return workload.expected_session_prompt_tokens() / mean_turns(workload.turns)


def stationary_work(turn_costs: Vector, workload: Workload, sessions: float) -> float:
    """Remaining all-miss work of `sessions` present whose next turns follow
    the stationary mix: units of `turn_costs`.
    """
    survival = np.asarray(survivals(workload.turns))
    return sessions * float(np.dot(survival / survival.sum(), remaining_work(turn_costs, workload)))


def remaining_work(turn_costs: Vector, workload: Workload) -> Vector:
    """All-miss work of a session whose next turn is k, expected, shape
    (max_turns,): sum over j >= k of S_j c_j / S_k.
    """
    survival = np.asarray(survivals(workload.turns))
    tails = np.cumsum((survival * turn_costs)[::-1])[::-1]
    return np.asarray(tails / survival)


def busy_period(work: float, rho: float) -> float:
    """Time until the queue is empty after a switch to load `rho`: W / (1 - rho),
    in the unit of `work`; infinite at or above the all-miss capacity
    (Prop. 1(a), Corollary 3). With arrivals stopped, `rho` is 0.
    """
    if work < 0 or rho < 0:
        raise ValueError("work and load must not be negative")
    return work / (1.0 - rho) if rho < 1.0 else float("inf")


def load_of(turn_costs: Vector, workload: Workload, lambda_per_s: float) -> float:
    """Rho = lambda / lambda_miss, for costs in seconds."""
    return lambda_per_s * session_cost(workload, turn_costs)
