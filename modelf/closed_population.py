"""The closed-population curve: hits and throughput with n sessions kept running.

A follow-up hits if its context survived its idle time (tool call and wait).
The cache is an LRU of contexts with a characteristic time t (Che's
approximation): the tokens left behind in the last t seconds, those taken up
again left out, fill what running turns do not reserve:

    pool - reserved = X (live E[min(I, t)] + dead t)

with X turns/s, I the idle time (exponential tool time plus wait), `live` and
`dead` the tokens a turn leaves behind in sessions that go on or are over (an
engine does not know that a session is over). The churn of the paper's pool
turnover is the right side's growth. An engine at reuse h has X(h), hence
t(h), hence reuse P(I < t(h)): a fixed point, sought from h = 1 (`upper`) and
from h = 0 (`lower`). Full hits need the whole context: half of a size-biased
context is lost to the one that is partly evicted.

Fluid: one mix, the mean; its curve follows the upper branch, on which a
population grown from nothing sits. With the demand-fluctuation layer: what n
sessions hold in sum varies slowly by chance, Gaussian with the spread of one
session's tokens over sqrt(n). Seen at ends of turns that law is the same at
any speed (each turn moves one session on), so hits are averaged over it
plainly and X harmonically; both branches count alike, as the
demand enters a bistable range from either side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modelf.cells import StepCosts
from modelf.closed_engine import EngineState, Population, engine_state
from modelf.first_principles import all_miss_capacity, running_at_full_pool
from modelf.turn_law import mean_turns
from modelf.turn_mix import relative_spread, stationary_weights, tilted_weights, turn_mix
from modelf.workload import Workload

Vector = NDArray[np.float64]

_GRID = 33
_REFINEMENTS = 16
_BISECTIONS = 34
_DEVIATES = np.linspace(-3.0, 3.0, 19)
_CHANCES = np.exp(-(_DEVIATES**2) / 2) / np.exp(-(_DEVIATES**2) / 2).sum()
_SMALLEST_DEMAND = 0.05
_LATEST = 1e3
_SCAN = 11


@dataclass(frozen=True)
class ClosedCurve:
    """The curve over `sessions` (n); all of its shape.

    `hit_fraction` counts follow-ups whose whole prefix was cached;
    `lower_hit_fraction` is that of the branch from h = 0 (equal where the
    fixed point is unique, and in the fluctuation layer, which averages).
    `reuse_fraction` is cached over prompt tokens of follow-ups, partly kept
    contexts included.
    """

    sessions: Vector
    turns_per_s: Vector
    sessions_per_s: Vector
    hit_fraction: Vector
    lower_hit_fraction: Vector
    reuse_fraction: Vector

    @property
    def peak_sessions(self) -> float:
        """The n of the highest throughput."""
        return float(self.sessions[int(np.argmax(self.turns_per_s))])

    @property
    def cliff_sessions(self) -> float:
        """The n at which hits fall most steeply, between grid points."""
        steepest = int(np.argmin(np.diff(self.hit_fraction) / np.diff(self.sessions)))
        return float(self.sessions[steepest : steepest + 2].mean())


def closed_curve(
    costs: StepCosts, workload: Workload, pool_tokens: float, sessions: ArrayLike, *, fluctuation: bool = True
) -> ClosedCurve:
    """The curve at each n of `sessions` (at least 1, real values allowed)."""
    counts = np.atleast_1d(np.asarray(sessions, dtype=np.float64))
    if not (np.isfinite(counts).all() and (counts >= 1).all()):
        raise ValueError("every n must be a finite number of at least 1")
    if workload.turns.max_turns < 2:
        raise ValueError("sessions of one turn have no follow-ups to hit")
    if fluctuation:
        return _fluctuating(costs, workload, pool_tokens, counts)
    population = Population(costs, workload, turn_mix(costs, workload, stationary_weights(workload)), pool_tokens)
    (upper, high, kept), (_, low, _) = _branches(population, counts)
    turns = upper.turns_per_s
    lower = np.where(high - low < 1e-6, high, low)
    reuse = kept * population.mix.reusable / population.mix.followup_prompt
    return ClosedCurve(counts, turns, turns / mean_turns(workload.turns), high, lower, reuse)


def _fluctuating(costs: StepCosts, workload: Workload, pool_tokens: float, counts: Vector) -> ClosedCurve:
    demand = 1 + relative_spread(workload) * _DEVIATES / np.sqrt(counts)[:, None]
    weights = tilted_weights(workload, np.maximum(demand, _SMALLEST_DEMAND).ravel())
    population = Population(costs, workload, turn_mix(costs, workload, weights), pool_tokens)
    branches = _branches(population, np.repeat(counts, len(_DEVIATES)))
    seconds = np.mean([1 / state.turns_per_s for state, _, _ in branches], axis=0).reshape(demand.shape)
    hits = np.mean([full for _, full, _ in branches], axis=0).reshape(demand.shape)
    kept = np.mean([share for _, _, share in branches], axis=0) * population.mix.reusable
    followups = _CHANCES * population.mix.followups.reshape(demand.shape)
    hit = (followups * hits).sum(axis=1) / followups.sum(axis=1)
    turns = 1 / (seconds @ _CHANCES)
    prompts = population.mix.followup_prompt.reshape(demand.shape) @ _CHANCES
    reuse = kept.reshape(demand.shape) @ _CHANCES / prompts
    return ClosedCurve(counts, turns, turns / mean_turns(workload.turns), hit, hit, reuse)


def _branches(population: Population, sessions: Vector) -> list[tuple[EngineState, Vector, Vector]]:
    """(state, full-hit fraction, share of reusable tokens kept) of the upper
    and of the lower fixed point.
    """
    grid = np.linspace(0.0, 1.0, _GRID)
    gap = np.stack([_reuse(population, sessions, np.full(sessions.shape, h))[0] - h for h in grid])
    # The map begins at or above the diagonal and ends at or below it, so both exist.
    crossing = (gap[:-1] >= 0) & (gap[1:] <= 0)
    first = np.argmax(crossing, axis=0)
    last = _GRID - 2 - np.argmax(crossing[::-1], axis=0)
    return [_refine(population, sessions, grid[index], grid[index + 1]) for index in (last, first)]


def _refine(population: Population, sessions: Vector, low: Vector, high: Vector) -> tuple[EngineState, Vector, Vector]:
    for _ in range(_REFINEMENTS):
        middle = (low + high) / 2
        above = _reuse(population, sessions, middle)[0] >= middle
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    reuse = (low + high) / 2
    _, full, state = _reuse(population, sessions, reuse)
    return state, full, reuse


def _reuse(population: Population, sessions: Vector, reuse: Vector) -> tuple[Vector, Vector, EngineState]:
    """(reuse, full hits, state) that an engine at `reuse` gives its follow-ups."""
    state = engine_state(population, sessions, reuse)
    idle_tokens = population.pool_tokens - state.reserved_tokens
    idle = _IdleTime.of(population, state)
    partly = idle.survivors(_characteristic_time(population, state, idle, np.maximum(idle_tokens, 0.0)))
    whole_tokens = np.maximum(idle_tokens - population.mix.boundary_tokens, 0.0)
    return partly, idle.survivors(_characteristic_time(population, state, idle, whole_tokens)), state


@dataclass(frozen=True)
class _IdleTime:
    """Exponential tool time plus the wait: none, or (for the share `delayed`
    that finds a prefill under way) exponential with mean `delay_s`.
    """

    tool_s: float
    delayed: Vector
    delay_s: Vector

    @classmethod
    def of(cls, population: Population, state: EngineState) -> _IdleTime:
        tool_s = population.workload.mean_tool_s
        delayed = np.clip(state.busy, 1e-9, 1.0)
        delay_s = np.maximum(state.wait_s / delayed, 1e-9 * tool_s)
        # Equal means make the closed form 0/0; a hair's breadth apart is exact enough.
        delay_s = np.where(np.abs(delay_s / tool_s - 1) < 1e-6, tool_s * (1 + 1e-6), delay_s)
        return cls(tool_s, delayed, delay_s)

    def _mixed(self, tool_part: Vector, delay_part: Vector, power: int) -> Vector:
        tool, delay = self.tool_s, self.delay_s
        both = (tool**power * tool_part - delay**power * delay_part) / (tool - delay)
        return np.asarray((1 - self.delayed) * tool ** (power - 1) * tool_part + self.delayed * both)

    def survivors(self, age_s: Vector) -> Vector:
        """P(I < age): the share taken up again within that age."""
        return np.clip(1 - self._mixed(np.exp(-age_s / self.tool_s), np.exp(-age_s / self.delay_s), 1), 0.0, 1.0)

    def mean_within(self, age_s: Vector) -> Vector:
        """E[min(I, age)], seconds."""
        return self._mixed(-np.expm1(-age_s / self.tool_s), -np.expm1(-age_s / self.delay_s), 2)


def _characteristic_time(population: Population, state: EngineState, idle: _IdleTime, tokens: Vector) -> Vector:
    """The age below which contexts fill `tokens`, seconds."""
    live, dead = (state.turns_per_s * left for left in (population.mix.left_live, population.mix.left_dead))
    # Beyond a thousand mean idle times every context has been taken up again.
    latest = _LATEST * (idle.tool_s + idle.delay_s)
    low, high = np.zeros(tokens.shape), np.minimum(latest, tokens / np.maximum(dead, tokens / latest + 1e-300))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        fits = live * idle.mean_within(middle) + dead * middle < tokens
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.asarray((low + high) / 2)


def half_hit_sessions(costs: StepCosts, workload: Workload, pool_tokens: float, *, fluctuation: bool = True) -> float:
    """n_half: where the hit fraction falls through 0.5, between integers.

    NaN if it does not within 3 pools' worth of sessions. On a jump of the
    fluid curve, the n of the jump.
    """
    most = 3 * running_at_full_pool(workload, pool_tokens) + 10
    low, high = 1.0, most
    for _ in range(3):
        sessions = np.linspace(low, high, _SCAN)
        hit = closed_curve(costs, workload, pool_tokens, sessions, fluctuation=fluctuation).hit_fraction
        below = np.flatnonzero(hit < 0.5)
        if not len(below) or not below[0]:
            return float("nan")
        low, high = sessions[below[0] - 1], sessions[below[0]]
        above, under = hit[below[0] - 1], hit[below[0]]
    return float(low + (high - low) * (above - 0.5) / (above - under))


def onset_sessions(workload: Workload, pool_tokens: float, lambda_miss_per_s: float) -> float:
    """n_on = lambda_miss (E[T] - 1) mean tool time + pool / (mean prompt + output).

    The fewest sessions at which the all-miss state can exist: those in tool
    calls at the all-miss rate, and one pool's worth of running ones. 33.4 at
    the 300k cell, where the paper prints 32.7 without its formula.
    """
    in_tools = lambda_miss_per_s * (mean_turns(workload.turns) - 1) * workload.mean_tool_s
    return in_tools + running_at_full_pool(workload, pool_tokens)


def onset_of(costs: StepCosts, workload: Workload, pool_tokens: float) -> float:
    """The onset with the all-miss capacity of the same step costs."""
    return onset_sessions(workload, pool_tokens, all_miss_capacity(costs, workload, pool_tokens))
