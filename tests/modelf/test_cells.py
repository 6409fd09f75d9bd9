"""The cells' step costs: where each number comes from, worked out again."""

from __future__ import annotations

import pytest

from modelf.cells import CELLS, Cell
from modelf.costs import COSTS
from modelf.first_principles import attention_flops_per_pair, prefill_flops_per_token, running_at_full_pool
from modelf.hardware import GPUS, MODELS
from modelf.published import published
from modelf.renewal import mean_stationary_prompt_tokens
from modelf.turn_law import mean_turns
from modelf.workload import STANDARD_WORKLOAD

A100 = CELLS["sglang-300k"]
PRINTED_DECODE_SHARE_S = 0.0797
KV_TOKENS = mean_stationary_prompt_tokens(STANDARD_WORKLOAD) + 50
# (Printed decode share / 99 steps - KV part) is decode_step_s over the all-miss batch.
BATCH = A100.step_costs.decode_step_s / (  # type: ignore[union-attr]
    PRINTED_DECODE_SHARE_S / 99 - A100.step_costs.decode_kv_token_s * KV_TOKENS  # type: ignore[union-attr]
)
BATCH_SHARE = BATCH / running_at_full_pool(STANDARD_WORKLOAD, A100.pool_tokens)
BANDWIDTH = MODELS[A100.model].kv_bytes_per_token / A100.step_costs.decode_kv_token_s  # type: ignore[union-attr]
NEW = ("vllm-300k", "h200-600k", "llama-300k")


def decode_share_s(cell: Cell, pool_tokens: int | None = None) -> float:
    """A turn's share of the decode steps in the all-miss state."""
    assert cell.step_costs
    batch = BATCH_SHARE * running_at_full_pool(STANDARD_WORKLOAD, pool_tokens or cell.pool_tokens)
    return 99 * (cell.step_costs.decode_step_s / batch + cell.step_costs.decode_kv_token_s * KV_TOKENS)


@pytest.mark.parametrize("cell", CELLS.values(), ids=lambda cell: cell.name)
def test_every_constant_says_where_it_comes_from(cell: Cell) -> None:
    assert cell.step_costs is not None
    wanted = {"pool_tokens", *cell.step_costs.__dataclass_fields__}
    assert {constant.name for constant in cell.constants} == wanted
    assert {constant.origin for constant in cell.constants} <= {"printed", "fitted", "estimated", "measured"}
    assert all(0 < len(constant.note) <= 200 for constant in cell.constants)


def test_the_all_miss_batch_is_0_915_of_a_full_pool() -> None:
    assert pytest.approx(0.915, abs=5e-4) == BATCH_SHARE


@pytest.mark.parametrize("name", NEW)
def test_prefill_follows_the_fitted_shape(name: str) -> None:
    cell, fit = CELLS[name], COSTS[name]
    assert cell.step_costs
    cbar_s = cell.step_costs.prefill_token_s * 1e4 / fit.linear
    assert cell.step_costs.prefill_pair_s == pytest.approx(2 * fit.quadratic * cbar_s / 1e8, rel=1e-3)
    request_s = fit.constant * cbar_s - decode_share_s(cell)
    assert cell.step_costs.prefill_request_s == pytest.approx(request_s, abs=1e-4)


def test_llama_scales_from_qwen_by_flops_and_bytes() -> None:
    llama, qwen = CELLS["llama-300k"].step_costs, A100.step_costs
    shape, before = MODELS[CELLS["llama-300k"].model], MODELS[A100.model]
    assert llama and qwen
    dense = prefill_flops_per_token(shape) / prefill_flops_per_token(before)
    assert llama.prefill_token_s / qwen.prefill_token_s == pytest.approx(dense, rel=1e-3)
    pairs = attention_flops_per_pair(shape) / attention_flops_per_pair(before)
    # The two fits and the two models' shapes know nothing of each other.
    assert llama.prefill_pair_s / qwen.prefill_pair_s == pytest.approx(pairs, rel=0.01)
    assert llama.decode_kv_token_s == pytest.approx(shape.kv_bytes_per_token / BANDWIDTH, rel=1e-3)
    overhead_s = qwen.decode_step_s - before.weight_bytes / BANDWIDTH
    assert llama.decode_step_s == pytest.approx(shape.weight_bytes / BANDWIDTH + overhead_s, rel=1e-3)


def test_the_h200_scale_is_the_printed_capacity_ratio() -> None:
    cell, fit = CELLS["h200-600k"], COSTS["h200-600k"]
    assert cell.step_costs and A100.step_costs
    a100_s = A100.step_costs.prefill_token_s * 1e4 / COSTS["sglang-300k"].linear
    at_300k_s = a100_s / published()["h200_vs_a100_at_300k"]["all_miss_capacity_ratio"]
    smaller_share_s = decode_share_s(cell, 300_000) - decode_share_s(cell)
    cbar_s = at_300k_s - smaller_share_s
    assert cell.step_costs.prefill_token_s == pytest.approx(fit.linear * cbar_s / 1e4, rel=1e-3)
    peaks = GPUS[A100.gpu].peak_flops / GPUS[cell.gpu].peak_flops
    # First principles, not used, would say 2% less.
    assert cell.step_costs.prefill_token_s / A100.step_costs.prefill_token_s == pytest.approx(peaks, rel=0.025)
    share = BANDWIDTH / GPUS[A100.gpu].bandwidth * GPUS[cell.gpu].bandwidth
    shape = MODELS[cell.model]
    assert cell.step_costs.decode_kv_token_s == pytest.approx(shape.kv_bytes_per_token / share, rel=1e-3)
    assert cell.step_costs.decode_step_s == pytest.approx(shape.weight_bytes / share, rel=1e-3)


def test_vllm_has_the_model_and_gpu_of_sglang() -> None:
    vllm, sglang = CELLS["vllm-300k"], A100
    assert (vllm.model, vllm.gpu, vllm.pool_tokens) == (sglang.model, sglang.gpu, sglang.pool_tokens)
    assert vllm.step_costs and sglang.step_costs
    for name in ("prefill_token_s", "decode_step_s", "decode_kv_token_s"):
        assert getattr(vllm.step_costs, name) == getattr(sglang.step_costs, name)


def test_a_turn_costs_its_cbar_on_average() -> None:
    assert mean_turns(STANDARD_WORKLOAD.turns) == pytest.approx(14.761, abs=1e-3)
    for name in NEW:
        fit = COSTS[name]
        assert fit.lambda_miss(STANDARD_WORKLOAD) * mean_turns(STANDARD_WORKLOAD.turns) == pytest.approx(1, abs=2e-3)
