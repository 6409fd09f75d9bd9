"""Averages over the turns that a closed population serves.

In a closed population every session runs to its end, so turns are served in
the mix q_k = S_k / E[T]. What a population holds at one time differs from
that mix by chance; `tilted` gives the mix whose mean context is any multiple
of the stationary one, q_k in proportion to S_k exp(t k).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelf.cells import StepCosts
from modelf.first_principles import prefill_costs
from modelf.turn_law import survivals
from modelf.workload import Workload

Vector = NDArray[np.float64]

_TILT_STEPS = 60


@dataclass(frozen=True)
class TurnMix:
    """Averages over a turn of the mix; one value a mix, shape (mixes,).

    Tokens: `held` is prompt + output, what a running turn reserves;
    `held_square` its second moment; `decode_kv` the KV it holds halfway
    through decoding; `left_live` and `left_dead` the context it leaves behind
    when its session goes on, or is over (0 otherwise). `goes_on` is the share
    of turns with a tool call after them, `ends` of those without,
    `followups` of all but first turns; `followup_prompt` and `reusable` are the
    prompt and reusable tokens of follow-ups, first turns counted as 0.

    Seconds of prefill, and each with the part that a hit of every follow-up
    would save: `miss_s`, `miss_square` (second moment), `miss_held` (times
    `held`).
    """

    held: Vector
    held_square: Vector
    decode_kv: Vector
    left_live: Vector
    left_dead: Vector
    goes_on: Vector
    ends: Vector
    followups: Vector
    followup_prompt: Vector
    reusable: Vector
    miss_s: Vector
    saved_s: Vector
    miss_square: Vector
    saved_square: Vector
    miss_held: Vector
    saved_held: Vector

    @property
    def boundary_tokens(self) -> Vector:
        """Half of a size-biased context: what of the pool is lost, on average,
        to the context that no longer fits whole.
        """
        return np.asarray(self.held_square / (2 * self.held))


def turn_mix(costs: StepCosts, workload: Workload, weights: Vector) -> TurnMix:
    """Averages under `weights`, shape (mixes, max_turns), rows summing to 1."""
    survival = np.asarray(survivals(workload.turns))
    ends = 1.0 - np.append(survival[1:], 0.0) / survival
    held = np.asarray(workload.prompts(), dtype=np.float64) + workload.output_tokens
    miss, hit = prefill_costs(costs, workload)
    prompts = held - workload.output_tokens
    reusable = np.asarray([workload.reusable_tokens(turn) for turn in range(1, len(held) + 1)], dtype=np.float64)
    return TurnMix(
        held=weights @ held,
        held_square=weights @ held**2,
        decode_kv=weights @ (held - workload.output_tokens / 2),
        left_live=weights @ ((1 - ends) * (held - 1)),
        left_dead=weights @ (ends * (held - 1)),
        goes_on=weights @ (1 - ends),
        ends=weights @ ends,
        followups=1.0 - weights[:, 0],
        followup_prompt=weights[:, 1:] @ prompts[1:],
        reusable=weights @ reusable,
        miss_s=weights @ miss,
        saved_s=weights @ (miss - hit),
        miss_square=weights @ miss**2,
        saved_square=weights @ (miss**2 - hit**2),
        miss_held=weights @ (miss * held),
        saved_held=weights @ ((miss - hit) * held),
    )


def stationary_weights(workload: Workload) -> Vector:
    """q_k = S_k / E[T], shape (1, max_turns)."""
    survival = np.asarray(survivals(workload.turns))
    return np.asarray((survival / survival.sum())[None, :])


def relative_spread(workload: Workload) -> float:
    """Standard deviation of what one session holds, over its mean."""
    weights = stationary_weights(workload)[0]
    held = np.asarray(workload.prompts(), dtype=np.float64) + workload.output_tokens
    mean = float(weights @ held)
    return float(np.sqrt(max(0.0, float(weights @ held**2) - mean**2))) / mean


def tilted_weights(workload: Workload, relative_demand: Vector) -> Vector:
    """Mixes whose mean prompt + output is `relative_demand` times the
    stationary one, shape (mixes, max_turns); the nearest within the law's range.
    """
    held = np.asarray(workload.prompts(), dtype=np.float64) + workload.output_tokens
    stationary = stationary_weights(workload)[0]
    wanted = np.atleast_1d(relative_demand) * float(stationary @ held)
    # Equal to the turn's place, from 0, where prompts grow evenly; of real sessions they do not.
    step = (held.max() - held.min()) / max(1, len(held) - 1)
    size = (held - held.min()) / step if step else np.zeros(len(held))
    low, high = np.full(wanted.shape, -30.0), np.full(wanted.shape, 30.0)
    for _ in range(_TILT_STEPS):
        middle = (low + high) / 2
        short = np.asarray(_tilt(stationary, middle, size) @ held < wanted)
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return _tilt(stationary, (low + high) / 2, size)


def _tilt(stationary: Vector, exponents: Vector, size: Vector) -> Vector:
    logs: Vector = np.log(stationary) + exponents[:, None] * size
    weights: Vector = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
