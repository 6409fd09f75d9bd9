"""What an engine does with n sessions kept running, at a given hit fraction.

Prefill goes before decode: a station of its own, first come first served,
that takes the share phi of the GPU; decode gets the rest, shared by its
batch. A turn waits, prefills, decodes, and (where its session goes on) its
tool runs: by Little's law n = X (think + wait + prefill + decode), X turns/s.

- wait: mean value analysis of the M/G/1 queue; an arrival sees the stationary
  population of the other n - 1 sessions.
- decode: output - 1 steps, each `decode_step_s` + `decode_kv_token_s` times
  the batch's KV, slowed by 1 / (1 - phi).
- memory: if running turns would reserve more than the pool (less half a
  context, lost to the head that does not fit), the pool is full instead and
  the rest of n waits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelf.cells import StepCosts
from modelf.turn_mix import TurnMix
from modelf.workload import Workload

Vector = NDArray[np.float64]

_BISECTIONS = 34
_TINY = 1e-12


@dataclass(frozen=True)
class Population:
    """A closed population: costs, workload, averages of its mix and pool."""

    costs: StepCosts
    workload: Workload
    mix: TurnMix
    pool_tokens: float

    @property
    def decode_steps(self) -> int:
        """Decode steps of a turn: the prefill yields the first token."""
        return self.workload.output_tokens - 1

    @property
    def think_s(self) -> Vector:
        """Tool time a turn, seconds: the last turn of a session has none."""
        return self.mix.goes_on * self.workload.mean_tool_s


@dataclass(frozen=True)
class EngineState:
    """Steady state; arrays of one shape. `wait_s` is from ready to admitted,
    `busy` the GPU's share in prefill, `reserved_tokens` of running turns.
    """

    turns_per_s: Vector
    wait_s: Vector
    busy: Vector
    reserved_tokens: Vector


def engine_state(population: Population, sessions: Vector, reuse: Vector) -> EngineState:
    """Steady state of `sessions` at the reuse fraction `reuse` of follow-ups'
    prefixes; both broadcast with the mix.
    """
    mix = population.mix
    prefill_s = mix.miss_s - reuse * mix.saved_s
    prefill_held = mix.miss_held - reuse * mix.saved_held
    free = _unlimited(population, sessions, reuse, prefill_s)
    reserved = free * (_decode_s(population, free, sessions, prefill_s) * mix.held + prefill_held)
    room = np.maximum(population.pool_tokens - mix.boundary_tokens, mix.held)
    full = _full_pool(population, prefill_s, prefill_held, room)
    limited = (reserved > room) & (full < free)
    turns_per_s = np.where(limited, full, free)
    batch = np.where(limited, (room - full * prefill_held) / mix.held, 0.0)
    decode_s = np.where(limited, batch / full, _decode_s(population, turns_per_s, sessions, prefill_s))
    wait_s = np.maximum(0.0, sessions / turns_per_s - population.think_s - prefill_s - decode_s)
    return EngineState(turns_per_s, wait_s, np.minimum(1.0, turns_per_s * prefill_s), np.minimum(reserved, room))


def _decode_s(population: Population, turns_per_s: Vector, sessions: Vector, prefill_s: Vector) -> Vector:
    """Seconds from first to last token where memory does not limit."""
    costs, kv_tokens, steps = population.costs, population.mix.decode_kv, population.decode_steps
    others = np.maximum(0.0, 1 - 1 / sessions)
    share = 1 - turns_per_s * (prefill_s + steps * costs.decode_kv_token_s * kv_tokens * others)
    return steps * (costs.decode_step_s + costs.decode_kv_token_s * kv_tokens) / np.maximum(share, _TINY)


def _unlimited(population: Population, sessions: Vector, reuse: Vector, prefill_s: Vector) -> Vector:
    """Turns/s where memory does not limit: the root of Little's law."""
    mix = population.mix
    square = mix.miss_square - reuse * mix.saved_square
    others = np.maximum(0.0, 1 - 1 / sessions)
    low = np.zeros(np.broadcast(sessions, prefill_s).shape)
    high = low + 1 / prefill_s
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        wait_s = others * middle * square / 2 / np.maximum(1 - others * middle * prefill_s, _TINY)
        decode_s = _decode_s(population, middle, sessions, prefill_s)
        below = middle * (population.think_s + wait_s + prefill_s + decode_s) < sessions
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)


def _full_pool(population: Population, prefill_s: Vector, prefill_held: Vector, room: Vector) -> Vector:
    """Turns/s with `room` tokens reserved throughout: the busy GPU's balance."""
    costs, mix, steps = population.costs, population.mix, population.decode_steps
    low = np.zeros(np.broadcast(prefill_s, room).shape)
    high = np.minimum(1 / prefill_s, room / prefill_held)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        batch = np.maximum((room - middle * prefill_held) / mix.held, _TINY)
        step_share_s = costs.decode_step_s / batch + costs.decode_kv_token_s * mix.decode_kv
        spare = middle * (prefill_s + steps * step_share_s) < 1
        low, high = np.where(spare, middle, low), np.where(spare, high, middle)
    return np.asarray((low + high) / 2)
