"""Advice: the order of the caps, what a cut does, and measured figures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelf.advice import AdvisedEngine, advise, cuts, long_prompt_tokens, prevention_cap, rescue_cap, trapped_at
from modelf.closed_population import onset_sessions
from modelf.costs import COSTS
from modelf.first_principles import running_at_full_pool
from modelf.hardware import GPUS, MODELS
from modelf.published import published
from modelf.turn_law import TruncatedGeometric
from modelf.workload import MIRROR_WORKLOAD, STANDARD_WORKLOAD, Workload

QWEN, A100 = MODELS["Qwen2.5-7B-Instruct"], GPUS["A100 80GB PCIe"]
MINI = Workload(TruncatedGeometric(15, 60), 200, 10, 55, 0.25)
FITTED = COSTS["sglang-300k"]


@given(st.sampled_from([STANDARD_WORKLOAD, MIRROR_WORKLOAD, MINI]), st.floats(5, 400), st.floats(0.001, 10))
def test_rescue_below_prevention_below_onset(workload: Workload, contexts: float, lambda_miss: float) -> None:
    pool = contexts * (long_prompt_tokens(workload) + workload.output_tokens)
    onset = onset_sessions(workload, pool, lambda_miss)
    prevention = prevention_cap(onset)
    assert 1 <= rescue_cap(workload, pool, prevention) < prevention < onset


def test_caps_of_a_pool_of_one_context_are_one() -> None:
    assert prevention_cap(0.4) == 1
    assert rescue_cap(STANDARD_WORKLOAD, 1000, 1) == 1


def test_the_sizes_measured_on_a_real_engine() -> None:
    # 30k pool: prevention sized by pool / 1,057; prompts of 1,600-1,700 tokens while a trap drained, so pool / 1,700;
    # a cap of 16 rescued, 22 prevented, 32 lost hits. 48k pool: a cap of 26 rescued.
    assert running_at_full_pool(MINI, 30_000) == pytest.approx(30_000 / 1057, rel=1e-3)
    assert long_prompt_tokens(MINI) == pytest.approx(1700, rel=0.04)
    assert abs(rescue_cap(MINI, 30_000, 99) - 30_000 / 1700) < 1
    assert 16 <= rescue_cap(MINI, 30_000, 99) <= 20
    assert abs(rescue_cap(MINI, 48_000, 99) - 26) <= 1
    prevention = prevention_cap(onset_sessions(MINI, 30_000, 1.49))
    assert 20 <= prevention <= 24


@pytest.mark.parametrize(
    ("pool", "lambda_miss", "cap"), [(300e3, 0.0723, 20), (955_757, 0.0739, 64), (600e3, 0.19, 48)]
)
def test_prevention_is_close_to_the_papers_caps(pool: float, lambda_miss: float, cap: int) -> None:
    assert abs(prevention_cap(onset_sessions(STANDARD_WORKLOAD, pool, lambda_miss)) - cap) <= 2


def test_a_trap_overstates_the_threshold_and_more_so_at_higher_rates() -> None:
    costs, capacity = FITTED.turn_costs(STANDARD_WORKLOAD), FITTED.lambda_miss(STANDARD_WORKLOAD)
    assert trapped_at(costs, STANDARD_WORKLOAD, capacity) is None
    assert trapped_at(costs, STANDARD_WORKLOAD, 0.5 * capacity) is None
    states = [trapped_at(costs, STANDARD_WORKLOAD, load * capacity) for load in (1.1, 1.35, 1.65, 3.0)]
    over = [state.overstatement for state in states if state]
    assert over == sorted(over) and over[0] > 1 and len(over) == 4
    for state, load in zip(states, (1.1, 1.35, 1.65, 3.0), strict=True):
        assert state is not None
        assert state.completions_per_s + state.backlog_per_s == pytest.approx(load * capacity)


def test_printed_completions_of_the_300k_cell() -> None:
    costs, reference = FITTED.turn_costs(STANDARD_WORKLOAD), FITTED.lambda_ref()
    state = trapped_at(costs, STANDARD_WORKLOAD, 1.35 * reference)
    assert state is not None
    assert state.completions_per_s / reference == pytest.approx(1.13, abs=0.01)


def test_mirror_understates_instead() -> None:
    costs, capacity = FITTED.turn_costs(MIRROR_WORKLOAD), FITTED.lambda_miss(MIRROR_WORKLOAD)
    state = trapped_at(costs, MIRROR_WORKLOAD, 1.6 * capacity)
    assert state is not None and state.overstatement < 1


def test_a_cut_empties_in_the_printed_time() -> None:
    costs = FITTED.turn_costs(STANDARD_WORKLOAD)
    first, *_ = cuts(costs, STANDARD_WORKLOAD, 251, 1.65 * FITTED.lambda_ref())
    table = published()["table3_cut_at_5000s"]
    printed_s = table["rows"][-1]["empty_at_s"] - 5000
    assert first.rate_per_s == pytest.approx(0.9 * FITTED.lambda_miss(STANDARD_WORKLOAD))
    assert first.empty_after_s == pytest.approx(printed_s, rel=0.04)


@given(st.integers(0, 2000), st.floats(0.2, 3))
def test_emptying_takes_in_proportion_to_the_backlog(backlog: int, load: float) -> None:
    costs, rate = FITTED.turn_costs(STANDARD_WORKLOAD), load * FITTED.lambda_miss(STANDARD_WORKLOAD)
    one = cuts(costs, STANDARD_WORKLOAD, 1, rate)
    many = cuts(costs, STANDARD_WORKLOAD, backlog, rate)
    assert [cut.empty_after_s for cut in many] == pytest.approx([backlog * cut.empty_after_s for cut in one])
    slow, half, stopped = (cut.empty_after_s for cut in one)
    assert slow == pytest.approx(10 * stopped) and half == pytest.approx(2 * stopped)


@settings(max_examples=3, deadline=None)
@given(st.integers(200_000, 900_000))
def test_advice_is_of_one_piece(pool: int) -> None:
    advice = advise(AdvisedEngine.of_data_sheets(QWEN, A100, pool), STANDARD_WORKLOAD, backlog=100)
    assert advice.rescue_cap < advice.prevention_cap < advice.onset
    assert advice.prevention_cap < advice.half_hit
    assert advice.lambda_miss_per_s < advice.rescue_per_s <= advice.prevention_per_s
    assert advice.rate_per_s == pytest.approx(1.5 * advice.lambda_miss_per_s) and not advice.rate_given
    assert all(cut.rate_per_s < advice.lambda_miss_per_s for cut in advice.cuts)


def test_without_a_backlog_no_cuts_and_a_low_rate_no_trap() -> None:
    advice = advise(
        AdvisedEngine.of_data_sheets(QWEN, A100, 300_000), replace(STANDARD_WORKLOAD, mean_tool_s=15.0), rate_per_s=0.01
    )
    assert advice.cuts == () and advice.trapped is None and advice.rate_given
