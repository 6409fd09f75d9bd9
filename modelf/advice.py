"""What an operator can do about a trap, from shape, GPU, pool and workload.

Every figure is model F's or the closed population's, from first-principles
costs or a cell's: estimates, not measurements.

Caps. To prevent: a third below the onset n_on (the paper's caps of 20, 64 and
48 are 0.60, 0.67 and 0.68 of it). To rescue: pool / (long prompt + output),
where the long prompt is the mean over the turns still to come of the sessions
present, sum_k k S_k p_k / sum_k k S_k: the trap keeps long sessions and paused
ones resume first, and while they drain all of a cap's contexts must fit. (The
trap's own mix is younger, 5 to 8% less at loads of 1.3 to 1.6: left out, to be
on the safe side.) Never above the prevention cap less one, never below 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from modelf.cells import StepCosts
from modelf.closed_population import closed_curve, half_hit_sessions, onset_sessions
from modelf.costs import session_cost
from modelf.first_principles import step_costs, turn_costs
from modelf.hardware import GPU, ModelShape
from modelf.renewal import Vector, busy_period, remaining_work, solve
from modelf.turn_law import survivals
from modelf.turn_mix import stationary_weights
from modelf.workload import Workload

PREVENTION_MARGIN = 1 / 3
"""How far below the onset the prevention cap lies."""

SUPPOSED_LOAD = 1.5
"""Load, in multiples of the all-miss capacity, where no rate is given."""

FIRST_PRINCIPLES = "first principles"
"""What costs come from that nobody measured: the model's shape and the GPU's data sheet."""

CUTS = (0.9, 0.5, 0.0)
"""Cut rates shown, in multiples of the all-miss capacity; 0 stops arrivals."""


@dataclass(frozen=True)
class Trapped:
    """Model F's trapped state at a rate above the all-miss capacity.

    `completions_per_s` is what one would measure, `overstatement` that over
    the all-miss capacity; `backlog_per_s` how fast sessions present grow.
    """

    completions_per_s: float
    overstatement: float
    backlog_per_s: float
    mean_prompt_tokens: float


@dataclass(frozen=True)
class Cut:
    """Arrivals cut to `rate_per_s`: seconds until the queue is empty."""

    rate_per_s: float
    empty_after_s: float


@dataclass(frozen=True)
class Advice:
    """Figures for one engine; sessions/s, seconds, sessions and tokens.

    `trapped` is None where `rate_per_s` is at or below `lambda_miss_per_s`:
    there every trap empties. `rescue_per_s` and `prevention_per_s` are what a
    good engine completes with the cap's sessions kept running.
    """

    model: str
    gpu: str
    pool_tokens: int
    step_costs: StepCosts
    costs_from: str
    lambda_miss_per_s: float
    rate_per_s: float
    rate_given: bool
    trapped: Trapped | None
    onset: float
    half_hit: float
    prevention_cap: int
    prevention_per_s: float
    rescue_cap: int
    rescue_per_s: float
    long_prompt_tokens: float
    backlog: int | None
    cuts: tuple[Cut, ...]


@dataclass(frozen=True)
class AdvisedEngine:
    """What an engine is to the theory: names, KV pool in tokens, step costs, and
    what these come from, in words.
    """

    model: str
    gpu: str
    pool_tokens: int
    step_costs: StepCosts
    costs_from: str

    @classmethod
    def of_data_sheets(cls, shape: ModelShape, gpu: GPU, pool_tokens: int) -> AdvisedEngine:
        """A model on a GPU, with costs from first principles."""
        return cls(shape.name, gpu.name, pool_tokens, step_costs(shape, gpu), FIRST_PRINCIPLES)


def advise(
    engine: AdvisedEngine,
    workload: Workload,
    *,
    backlog: int | None = None,
    rate_per_s: float | None = None,
) -> Advice:
    """Advice for one engine; `backlog` sessions present make it count how long
    a cut takes, `rate_per_s` is what arrives (sessions/s).
    """
    costs, pool_tokens = engine.step_costs, engine.pool_tokens
    all_miss = turn_costs(costs, workload, pool_tokens).all_miss_s
    lambda_miss = 1 / session_cost(workload, all_miss)
    rate = SUPPOSED_LOAD * lambda_miss if rate_per_s is None else rate_per_s
    onset = onset_sessions(workload, pool_tokens, lambda_miss)
    prevention = prevention_cap(onset)
    rescue = rescue_cap(workload, pool_tokens, prevention)
    under_cap = closed_curve(costs, workload, pool_tokens, [rescue, prevention]).sessions_per_s
    return Advice(
        model=engine.model,
        gpu=engine.gpu,
        pool_tokens=pool_tokens,
        step_costs=costs,
        costs_from=engine.costs_from,
        lambda_miss_per_s=lambda_miss,
        rate_per_s=rate,
        rate_given=rate_per_s is not None,
        trapped=trapped_at(all_miss, workload, rate),
        onset=onset,
        half_hit=half_hit_sessions(costs, workload, pool_tokens),
        prevention_cap=prevention,
        prevention_per_s=float(under_cap[1]),
        rescue_cap=rescue,
        rescue_per_s=float(under_cap[0]),
        long_prompt_tokens=long_prompt_tokens(workload),
        backlog=backlog,
        cuts=() if backlog is None else cuts(all_miss, workload, backlog, rate),
    )


def prevention_cap(onset: float) -> int:
    """A third below the onset, at least 1 session."""
    return max(1, math.floor((1 - PREVENTION_MARGIN) * onset))


def rescue_cap(workload: Workload, pool_tokens: float, prevention: int) -> int:
    """Pool / (long prompt + output), below the prevention cap, at least 1."""
    whole = math.floor(pool_tokens / (long_prompt_tokens(workload) + workload.output_tokens))
    return max(1, min(whole, prevention - 1))


def long_prompt_tokens(workload: Workload) -> float:
    """Mean prompt over the turns still to come of sessions met in the middle:
    sum_k k S_k p_k / sum_k k S_k, tokens.
    """
    survival = np.asarray(survivals(workload.turns))
    weights = survival * np.arange(1, len(survival) + 1)
    return float(weights @ np.asarray(workload.prompts(), dtype=np.float64) / weights.sum())


def trapped_at(all_miss_s: Vector, workload: Workload, rate_per_s: float) -> Trapped | None:
    """Model F's trapped state, None at or below the all-miss capacity."""
    lambda_miss = 1 / session_cost(workload, all_miss_s)
    if rate_per_s <= lambda_miss:
        return None
    state = solve(all_miss_s, workload, rate_per_s / lambda_miss)
    over = float(state.completions_over_lambda_miss[0])
    return Trapped(over * lambda_miss, over, rate_per_s - over * lambda_miss, float(state.mean_prompt_tokens[0]))


def cuts(all_miss_s: Vector, workload: Workload, backlog: int, rate_per_s: float) -> tuple[Cut, ...]:
    """W / (1 - rho') for the cuts of `CUTS`: W is the all-miss work left of
    `backlog` sessions, their next turns in the trap's mix at `rate_per_s` (the
    stationary mix at or below the all-miss capacity).
    """
    lambda_miss = 1 / session_cost(workload, all_miss_s)
    mix = stationary_weights(workload)[0]
    if rate_per_s > lambda_miss:
        mix = solve(all_miss_s, workload, rate_per_s / lambda_miss).mix[0]
    work_s = backlog * float(mix @ remaining_work(all_miss_s, workload))
    return tuple(Cut(load * lambda_miss, busy_period(work_s, load)) for load in CUTS)
