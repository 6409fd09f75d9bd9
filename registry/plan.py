"""Arrival plans: from registration digest, beacon and seed to arrivals.

key = SHA-256(rfc8785(["trap-plan-1", digest, round, signature, seed])). One
stream for the base arrivals, one for the burst, one a session; unit
exponential gaps are shared by the rates of a seed. All times are integer
microseconds. No one can know a plan before the beacon is out, but for base
arrivals that a trace replays: those are the same for every seed.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import rfc8785
from numpy.typing import NDArray

from modelf.turn_law import TurnLaw
from modelf.workload import Workload
from registry.design import Arm, Burst, Design
from registry.errors import CapExceeded, RegistrationError
from registry.philox import WORDS_A_BLOCK, many_words, top_53_bits, uniform, unit_exponential, words
from registry.replay import replayed_arrivals_us
from registry.scripted_workload import ScriptedWorkload

PLAN_VERSION = "trap-plan-1"
MICROSECONDS = 1_000_000
MAX_ARRIVALS = 10_000_000
_BLOCK = 256


def plan_key(digest: str, round_number: int, signature: str, seed: int) -> bytes:
    """The 32-byte key of one seed's plan.

    `digest` and `signature` are lower-case hex; both are empty and
    `round_number` is 0 for literal seeds.
    """
    parts: list[Any] = [PLAN_VERSION, digest, round_number, signature, seed]
    return hashlib.sha256(rfc8785.dumps(parts)).digest()


@lru_cache
def turn_table(law: TurnLaw) -> tuple[int, ...]:
    """floor(2^53 P(T <= k)) for k = 1 .. max_turns - 1, exact integers."""
    scale = 2**53
    return tuple(int(scale * (1 - law.survival(k + 1))) for k in range(1, law.max_turns))


@dataclass(frozen=True)
class SessionDraw:
    """One session's own randomness.

    `turns`: its turn count; `tool_us`: the tool time after each turn but the
    last, integer microseconds, length turns - 1. `script_row`, where it follows a
    script: the row of that one's first turn.
    """

    turns: int
    tool_us: tuple[int, ...]
    script_row: int | None = None


@dataclass(frozen=True)
class Draws:
    """The randomness of sessions 0 .. n - 1 of one origin.

    `turns` and `first_tool`, shape (n,): session i's turn count, and where its
    tool times begin in `tool_us` (integer microseconds). `script`, where sessions follow
    scripts: the row of the first turn of session i's.
    """

    turns: NDArray[np.int64]
    first_tool: NDArray[np.int64]
    tool_us: NDArray[np.int64]
    script: NDArray[np.int64] | None = None

    def session(self, index: int) -> SessionDraw:
        """The draw of one session."""
        turns, first = int(self.turns[index]), int(self.first_tool[index])
        row = None if self.script is None else int(self.script[index])
        return SessionDraw(turns, tuple(self.tool_us[first : first + turns - 1].tolist()), row)


@dataclass(frozen=True)
class Plan:
    """What one (rate, arm, seed) is driven by.

    Arrivals are ascending integer microseconds; the sessions behind them are
    `base-0`, `base-1`, … and `burst-0`, …; a closed population has
    `population-0`, … without arrivals. No session has more than `step_cap`
    turns.
    """

    key: bytes
    workload: Workload
    horizon_us: int
    base_arrivals_us: tuple[int, ...]
    burst_arrivals_us: tuple[int, ...]
    population: int
    step_cap: int | None = None

    def draws(self, origin: str, count: int) -> Draws:
        """Turn counts and tool times of at least the first `count` sessions."""
        draws = draw_sessions(self.key, self.workload, origin, -(-count // _BLOCK) * _BLOCK)
        if self.step_cap is None:
            return draws
        return replace(draws, turns=np.minimum(draws.turns, self.step_cap))

    def session(self, origin: str, index: int) -> SessionDraw:
        """Turn count and tool times of session `<origin>-<index>`."""
        return self.draws(origin, index + 1).session(index)

    def arrivals(self) -> list[tuple[int, str, int]]:
        """All (arrival_us, origin, index), in time order; base before burst
        where two coincide.
        """
        rows = [(t, "base", i) for i, t in enumerate(self.base_arrivals_us)]
        rows += [(t, "burst", i) for i, t in enumerate(self.burst_arrivals_us)]
        return sorted(rows)


@lru_cache(maxsize=64)
def draw_sessions(key: bytes, workload: Workload, origin: str, count: int) -> Draws:
    """The first `count` sessions of an origin.

    Word 0 of stream `session/<origin>/<index>` gives the turn count, word k
    the tool time after turn k; where sessions follow scripts, word 0 gives the
    script and that all else; replayed base sessions follow them in order. Kept
    for the other arms and rates of the seed.
    """
    if isinstance(workload, ScriptedWorkload) and workload.replayed and origin == "base":
        return _following(workload, workload.in_order(count))
    names = [f"session/{origin}/{index}" for index in range(count)]
    heads = many_words(key, names, np.ones(count, dtype=np.int64)).reshape(count, WORDS_A_BLOCK)
    if isinstance(workload, ScriptedWorkload):
        return _following(workload, workload.drawn(top_53_bits(heads[:, 0])))
    table = np.asarray(turn_table(workload.turns), dtype=np.int64)
    turns = 1 + np.searchsorted(table, top_53_bits(heads[:, 0]), side="right").astype(np.int64)
    blocks = -(-turns // WORDS_A_BLOCK)
    raw = many_words(key, names, blocks)
    tool_us = np.rint(unit_exponential(raw) * workload.mean_tool_s * MICROSECONDS).astype(np.int64)
    return Draws(turns, (np.cumsum(blocks) - blocks) * WORDS_A_BLOCK + 1, tool_us)


def _following(workload: ScriptedWorkload, script: NDArray[np.int64]) -> Draws:
    first = workload.scripts.first_turn[script]
    return Draws(workload.scripts.turns[script], first + 1, workload.scripts.wait_us, first)


def base_arrivals_us(key: bytes, lambda_per_s: float, horizon_us: int) -> tuple[int, ...]:
    """Poisson arrivals before the horizon, integer microseconds, ascending.

    RegistrationError for a rate that is not positive, CapExceeded for one
    that means more than `MAX_ARRIVALS`.
    """
    if not lambda_per_s > 0:
        raise RegistrationError("an arrival rate must be positive", value=lambda_per_s)
    if lambda_per_s * horizon_us / MICROSECONDS > MAX_ARRIVALS:
        raise CapExceeded("too many arrivals", value=lambda_per_s, remedy=f"at most {MAX_ARRIVALS} a run")
    count = _BLOCK
    while True:
        unit_gaps = unit_exponential(words(key, "base", count))
        gaps = np.rint(unit_gaps / lambda_per_s * MICROSECONDS)
        times = np.cumsum(np.minimum(gaps, horizon_us).astype(np.int64))
        if times[-1] >= horizon_us:
            return tuple(times[times < horizon_us].tolist())
        count *= 2


def burst_arrivals_us(key: bytes, burst: Burst) -> tuple[int, ...]:
    """The burst's arrivals, uniform within its spread, ascending."""
    u = uniform(words(key, "burst", burst.sessions))
    offsets = np.sort(np.floor(u * (burst.spread_s * MICROSECONDS)).astype(np.int64))
    return tuple((offsets + round(burst.start_s * MICROSECONDS)).tolist())


def _base(
    key: bytes, workload: Workload, arm: Arm, lambda_per_s: float, rate: float | None, horizon_us: int
) -> tuple[int, ...]:
    if arm.cut is None:
        return _uncut(key, workload, lambda_per_s, horizon_us)
    if rate is None:
        raise RegistrationError("an arm with a cut needs its rate", value=arm.name)
    slower, cut_us = rate / arm.cut.to_rate, round(arm.cut.at_s * MICROSECONDS)
    # A cut to a higher rate brings arrivals from beyond the horizon into the run.
    until_us = horizon_us if slower >= 1 else math.ceil(cut_us + (horizon_us - cut_us) / slower)
    return cut_arrivals_us(_uncut(key, workload, lambda_per_s, until_us), cut_us, slower, horizon_us)


def _uncut(key: bytes, workload: Workload, lambda_per_s: float, horizon_us: int) -> tuple[int, ...]:
    if isinstance(workload, ScriptedWorkload) and workload.replayed:
        return replayed_arrivals_us(workload.scripts, lambda_per_s, horizon_us)
    return base_arrivals_us(key, lambda_per_s, horizon_us)


def cut_arrivals_us(arrivals_us: tuple[int, ...], cut_us: int, slower: float, horizon_us: int) -> tuple[int, ...]:
    """The same arrivals with the time after `cut_us` stretched `slower` times,
    rounded to microseconds: Poisson arrivals at a rate that much smaller.
    """
    times = np.asarray(arrivals_us, dtype=np.int64)
    after = np.rint((times - cut_us) * slower)
    moved = np.where(times < cut_us, times, cut_us + np.minimum(after, horizon_us).astype(np.int64))
    return tuple(moved[moved < horizon_us].tolist())


def make_plan(key: bytes, design: Design, arm: Arm, lambda_per_s: float | None, rate: float | None = None) -> Plan:
    """The plan of one arm at one arrival rate (None for a closed population).

    `rate` is that rate as a multiple of lambda_ref; an arm with a cut needs it.
    """
    horizon_us = round(design.horizon_of(arm) * MICROSECONDS)
    base: tuple[int, ...] = ()
    if arm.population is None:
        assert lambda_per_s is not None
        base = _base(key, design.workload, arm, lambda_per_s, rate, horizon_us)
    burst = burst_arrivals_us(key, arm.burst) if arm.burst else ()
    return Plan(
        key=key,
        workload=design.workload,
        horizon_us=horizon_us,
        base_arrivals_us=base,
        burst_arrivals_us=tuple(t for t in burst if t < horizon_us),
        population=arm.population or 0,
        step_cap=arm.step_cap,
    )
