"""Costs from shape and data sheet: flop counts, laws, and printed figures."""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import gpu_costs
from modelf.cells import CELLS
from modelf.costs import COSTS
from modelf.first_principles import (
    all_miss_capacity,
    attention_flops_per_pair,
    largest_pool_tokens,
    prefill_costs,
    step_costs,
    turn_costs,
)
from modelf.hardware import GPUS, MODELS
from modelf.published import published
from modelf.workload import MIRROR_WORKLOAD, STANDARD_WORKLOAD

QWEN, LLAMA = MODELS["Qwen2.5-7B-Instruct"], MODELS["Llama-3.1-8B-Instruct"]
A100, H200 = GPUS["A100 80GB PCIe"], GPUS["H200 NVL"]


def test_kv_bytes_of_a_token() -> None:
    assert QWEN.kv_bytes_per_token == 57_344
    assert LLAMA.kv_bytes_per_token == 131_072


@pytest.mark.parametrize("shape", MODELS.values(), ids=list(MODELS))
def test_attention_flops_head_by_head(shape: object) -> None:
    assert shape is QWEN or shape is LLAMA
    score_and_value = 2 * shape.head_dimension + 2 * shape.head_dimension
    assert attention_flops_per_pair(shape) == shape.layers * shape.heads * score_and_value


def test_every_figure_says_where_it_comes_from() -> None:
    for entry in (*MODELS.values(), *GPUS.values()):
        named = {name for constant in entry.constants for name in constant.name.split(", ")}
        fields = set(entry.__dataclass_fields__) - {"name", "constants"}
        assert fields == named
        assert {constant.origin for constant in entry.constants} <= {"printed", "estimated"}
        assert all(constant.note for constant in entry.constants)


@given(st.floats(0.1, 10), st.floats(0.1, 10))
def test_costs_scale_with_the_gpu(compute: float, memory: float) -> None:
    faster = replace(A100, peak_flops=compute * A100.peak_flops, bandwidth=memory * A100.bandwidth)
    before, after = step_costs(QWEN, A100), step_costs(QWEN, faster)
    assert after.prefill_token_s * compute == pytest.approx(before.prefill_token_s)
    assert after.prefill_pair_s * compute == pytest.approx(before.prefill_pair_s)
    assert after.decode_kv_token_s * memory == pytest.approx(before.decode_kv_token_s)
    streamed = before.decode_step_s - A100.decode_overhead_s
    assert (after.decode_step_s - A100.decode_overhead_s) * memory == pytest.approx(streamed)


def test_a_hit_prefills_551_tokens_and_the_first_turn_never_hits() -> None:
    costs = replace(step_costs(QWEN, A100), prefill_request_s=0.0, prefill_pair_s=0.0, prefill_token_s=1.0)
    miss, hit = prefill_costs(costs, STANDARD_WORKLOAD)
    assert miss.tolist() == STANDARD_WORKLOAD.prompts()
    assert hit.tolist() == [2000.0] + [551.0] * 59


@pytest.mark.parametrize("workload", [STANDARD_WORKLOAD, MIRROR_WORKLOAD])
def test_a_miss_is_never_cheaper_than_a_hit(workload: object) -> None:
    assert workload is STANDARD_WORKLOAD or workload is MIRROR_WORKLOAD
    costs = turn_costs(step_costs(LLAMA, H200), workload, 600_000)
    assert costs.hit_s[0] == costs.miss_s[0]
    assert (costs.hit_s[1:] < costs.miss_s[1:]).all()
    assert (np.diff(costs.all_miss_s) > 0).all()


@given(st.floats(2e4, 2e6), st.floats(1.01, 5))
def test_a_larger_pool_shares_the_decode_step_among_more(pool: float, times: float) -> None:
    costs = step_costs(QWEN, A100)
    assert all_miss_capacity(costs, STANDARD_WORKLOAD, pool * times) >= all_miss_capacity(
        costs, STANDARD_WORKLOAD, pool
    )


def test_capacity_is_close_to_what_the_printed_figures_give() -> None:
    fitted = COSTS["sglang-300k"].lambda_miss(STANDARD_WORKLOAD)
    assert all_miss_capacity(step_costs(QWEN, A100), STANDARD_WORKLOAD, 300_000) == pytest.approx(fitted, rel=0.04)


def test_decode_share_of_the_300k_cell_is_close_to_the_printed_one() -> None:
    costs = CELLS["sglang-300k"].step_costs
    assert costs is not None
    assert turn_costs(costs, STANDARD_WORKLOAD, 300_000).decode_share_s == pytest.approx(0.0797, rel=0.06)


def test_an_h200_gains_about_as_much_as_the_paper_measured() -> None:
    printed = published()["h200_vs_a100_at_300k"]["all_miss_capacity_ratio"]
    slow, fast = (all_miss_capacity(step_costs(QWEN, gpu), STANDARD_WORKLOAD, 300_000) for gpu in (A100, H200))
    assert fast / slow == pytest.approx(printed, rel=0.05)


def test_the_native_pool_fits_its_gpu_and_a_larger_model_has_less_room() -> None:
    assert 955_757 < largest_pool_tokens(QWEN, A100) < 80e9 / 57_344
    assert largest_pool_tokens(LLAMA, A100) < largest_pool_tokens(QWEN, A100)


def test_gpu_costs_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr("sys.argv", ["gpu_costs.py"])
    assert gpu_costs.main() == 2
    assert "torch and transformers not installed" in capsys.readouterr().err


def test_gpu_costs_fits_what_it_measured() -> None:
    tokens = np.array([512.0, 2048.0, 8192.0])
    columns = np.stack([np.ones(3), tokens, tokens**2 / 2], axis=1)
    wanted = [0.005, 6e-5, 2e-9]
    assert gpu_costs.fit(columns, (columns @ wanted).tolist()) == pytest.approx(wanted)
