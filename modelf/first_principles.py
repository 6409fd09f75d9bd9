"""Costs from a model's shape and a GPU's data sheet, nothing measured.

Flop counts (a multiply-add is 2 flops, forward pass only): 2 a parameter and
token for the matrix products; for each causal pair of tokens 2 hidden for the
score and 2 hidden for the weighted value, so 4 hidden a layer. A prefill is
taken as bound by compute, a decode step as bound by memory: it reads every
weight once and the KV of its batch once. Times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelf.cells import StepCosts
from modelf.costs import session_cost
from modelf.hardware import GPU, ModelShape
from modelf.renewal import mean_stationary_prompt_tokens
from modelf.workload import Workload

Vector = NDArray[np.float64]

CHUNK_TOKENS = 8192
"""Prefill budget of an engine step, tokens: the simulated cells' own."""


def prefill_flops_per_token(shape: ModelShape) -> float:
    """Matrix-product flops of one new token: 2 a parameter."""
    return 2.0 * shape.parameters


def attention_flops_per_pair(shape: ModelShape) -> float:
    """Attention flops of one causal pair over all layers: 4 layers hidden."""
    return 4.0 * shape.layers * shape.hidden


def step_costs(shape: ModelShape, gpu: GPU, chunk_tokens: int = CHUNK_TOKENS) -> StepCosts:
    """What one engine step costs, from first principles; seconds and tokens."""
    bandwidth = gpu.bandwidth * gpu.bandwidth_efficiency
    return StepCosts(
        prefill_request_s=gpu.prefill_request_s,
        prefill_token_s=prefill_flops_per_token(shape) / (gpu.peak_flops * gpu.prefill_efficiency),
        prefill_pair_s=attention_flops_per_pair(shape) / (gpu.peak_flops * gpu.attention_efficiency),
        decode_step_s=shape.weight_bytes / bandwidth + gpu.decode_overhead_s,
        decode_kv_token_s=shape.kv_bytes_per_token / bandwidth,
        chunk_tokens=chunk_tokens,
    )


def largest_pool_tokens(shape: ModelShape, gpu: GPU) -> int:
    """Tokens of KV that fit beside the weights, activations left out."""
    return max(0, int((gpu.memory_bytes - shape.weight_bytes) // shape.kv_bytes_per_token))


@dataclass(frozen=True)
class TurnCosts:
    """GPU seconds of turns 1 .. max_turns, shape (max_turns,).

    `miss_s` and `hit_s` are the prefill alone (turn 1 never hits: there the
    two agree); `decode_share_s` is a turn's share of the decode steps.
    """

    miss_s: Vector
    hit_s: Vector
    decode_share_s: float

    @property
    def all_miss_s(self) -> Vector:
        """c_k of model F: the prefill of a miss and the decode share."""
        return self.miss_s + self.decode_share_s


def running_at_full_pool(workload: Workload, pool_tokens: float) -> float:
    """Sessions whose prompt and output fill the pool: pool / (mean prompt +
    output), the mean over turns.
    """
    return pool_tokens / (mean_stationary_prompt_tokens(workload) + workload.output_tokens)


def turn_costs(costs: StepCosts, workload: Workload, pool_tokens: float) -> TurnCosts:
    """Costs by turn; the decode share is that of the all-miss batch, the one
    that fills the pool (at least 1 request).
    """
    miss, hit = prefill_costs(costs, workload)
    batch = max(1.0, running_at_full_pool(workload, pool_tokens))
    kv_tokens = mean_stationary_prompt_tokens(workload) + workload.output_tokens / 2
    per_step = costs.decode_step_s / batch + costs.decode_kv_token_s * kv_tokens
    return TurnCosts(miss, hit, (workload.output_tokens - 1) * per_step)


def prefill_costs(costs: StepCosts, workload: Workload) -> tuple[Vector, Vector]:
    """Prefill seconds by turn: with nothing cached, with all that can be."""
    prompts = np.asarray(workload.prompts(), dtype=np.float64)
    turns = range(1, workload.turns.max_turns + 1)
    reusable = np.asarray([workload.reusable_tokens(turn) for turn in turns], dtype=np.float64)
    return _prefill_s(costs, prompts, 0.0 * prompts), _prefill_s(costs, prompts - reusable, reusable)


def _prefill_s(costs: StepCosts, new: Vector, cached: Vector) -> Vector:
    pairs = new * cached + new * new / 2
    return np.asarray(costs.prefill_request_s + costs.prefill_token_s * new + costs.prefill_pair_s * pairs)


def all_miss_capacity(costs: StepCosts, workload: Workload, pool_tokens: float) -> float:
    """lambda_miss: sessions/s the engine completes when every turn misses."""
    return 1.0 / session_cost(workload, turn_costs(costs, workload, pool_tokens).all_miss_s)
