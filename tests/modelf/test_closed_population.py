"""The closed-population curve: limits, laws, and the frozen predictions."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmarks.half_hit_crossing import SETTINGS
from modelf.cells import CELLS, StepCosts
from modelf.closed_engine import EngineState, Population
from modelf.closed_population import _IdleTime, closed_curve, half_hit_sessions, onset_of, onset_sessions
from modelf.costs import COSTS
from modelf.first_principles import all_miss_capacity, prefill_costs, step_costs
from modelf.hardware import GPUS, MODELS
from modelf.published import published
from modelf.turn_law import FixedTurns, empirical_turns, mean_turns, survivals
from modelf.turn_mix import relative_spread, stationary_weights, tilted_weights, turn_mix
from modelf.workload import MIRROR_WORKLOAD, STANDARD_WORKLOAD, TabledWorkload

FROZEN = Path(__file__).parents[2] / "benchmarks" / "half_hit_predictions.json"
POOL = 300_000
LAYERS = pytest.mark.parametrize("fluctuation", [False, True], ids=["fluid", "fluctuation"])


def costs_of_a100() -> StepCosts:
    return step_costs(MODELS["Qwen2.5-7B-Instruct"], GPUS["A100 80GB PCIe"])


def test_the_frozen_predictions_are_untouched_and_are_what_the_theory_says() -> None:
    data = FROZEN.read_bytes()
    assert hashlib.sha256(data).hexdigest() == "ab78e6a93eec72f72e218d2f92481bbe0535e916c7aade6741999583dbefdafe"
    rows = json.loads(data)["predictions"]
    assert len(rows) == len(SETTINGS)
    for row, setting in ((rows[i], SETTINGS[i]) for i in (1, 10)):
        costs = setting.cell.step_costs
        assert costs is not None
        assert (row["model"], row["pool_tokens"]) == (setting.model, setting.pool_tokens)
        now = half_hit_sessions(costs, setting.workload, setting.pool_tokens)
        assert now == pytest.approx(row["n_half"], abs=0.01)


@LAYERS
def test_a_tiny_pool_misses_everything_and_a_huge_one_nothing(fluctuation: bool) -> None:
    sessions = [4, 16, 64]
    tiny = closed_curve(costs_of_a100(), STANDARD_WORKLOAD, 2_000, sessions, fluctuation=fluctuation)
    huge = closed_curve(costs_of_a100(), STANDARD_WORKLOAD, 1e8, sessions, fluctuation=fluctuation)
    assert (tiny.hit_fraction < 0.02).all()
    assert (huge.hit_fraction > 0.999).all()
    assert (huge.sessions_per_s > tiny.sessions_per_s).all()


@LAYERS
@pytest.mark.parametrize("workload", [STANDARD_WORKLOAD, MIRROR_WORKLOAD], ids=["standard", "mirror"])
def test_more_sessions_mean_fewer_hits(workload: object, fluctuation: bool) -> None:
    assert workload is STANDARD_WORKLOAD or workload is MIRROR_WORKLOAD
    curve = closed_curve(costs_of_a100(), workload, POOL, np.linspace(1, 70, 24), fluctuation=fluctuation)
    assert ((curve.hit_fraction >= 0) & (curve.hit_fraction <= 1)).all()
    # A Gaussian of one or two sessions' demand is cut off at its short end: 0.0005 of hits.
    assert (np.diff(curve.hit_fraction) < 1e-3).all()
    assert (curve.lower_hit_fraction <= curve.hit_fraction + 1e-9).all()


@settings(max_examples=6, deadline=None)
@given(st.floats(5e4, 9e5), st.floats(1.05, 3), st.floats(1, 90))
def test_a_larger_pool_hits_no_less(pool: float, times: float, sessions: float) -> None:
    small, large = (
        closed_curve(costs_of_a100(), STANDARD_WORKLOAD, size, sessions).hit_fraction[0]
        for size in (pool, pool * times)
    )
    assert large >= small - 1e-6


def test_the_crossing_moves_out_with_pool_and_tool_time() -> None:
    costs, slow = costs_of_a100(), replace(STANDARD_WORKLOAD, mean_tool_s=15)
    crossings = [half_hit_sessions(costs, STANDARD_WORKLOAD, pool, fluctuation=False) for pool in (150e3, 300e3, 600e3)]
    assert crossings == sorted(crossings)
    assert half_hit_sessions(costs, slow, 300e3, fluctuation=False) > crossings[1]


def test_the_crossing_is_where_the_curve_is_at_a_half() -> None:
    crossing = half_hit_sessions(costs_of_a100(), STANDARD_WORKLOAD, POOL)
    assert closed_curve(costs_of_a100(), STANDARD_WORKLOAD, POOL, crossing).hit_fraction[0] == pytest.approx(
        0.5, abs=0.01
    )
    assert np.isnan(half_hit_sessions(costs_of_a100(), STANDARD_WORKLOAD, 5000, fluctuation=False))


def test_peak_then_cliff_and_the_all_miss_capacity_beyond() -> None:
    costs = costs_of_a100()
    curve = closed_curve(costs, STANDARD_WORKLOAD, POOL, np.arange(1, 101, 2))
    assert curve.peak_sessions < curve.cliff_sessions < onset_of(costs, STANDARD_WORKLOAD, POOL) + 5
    assert curve.sessions_per_s[-1] == pytest.approx(all_miss_capacity(costs, STANDARD_WORKLOAD, POOL), rel=0.03)
    assert curve.turns_per_s == pytest.approx(curve.sessions_per_s * mean_turns(STANDARD_WORKLOAD.turns))


def test_one_session_by_hand() -> None:
    costs, workload = costs_of_a100(), STANDARD_WORKLOAD
    mix = stationary_weights(workload)[0]
    survival = survivals(workload.turns)
    think_s = 5.0 * (1 - 1 / sum(survival))
    kv_tokens = mix @ workload.prompts() + 50
    decode_s = 99 * (costs.decode_step_s + costs.decode_kv_token_s * kv_tokens)
    prefill_s = mix @ prefill_costs(costs, workload)[1]
    one = closed_curve(costs, workload, 1e7, 1, fluctuation=False).turns_per_s[0]
    # Its own prefill does not slow its decode; mean value analysis of a shared GPU says it does, a little.
    assert one == pytest.approx(1 / (think_s + prefill_s + decode_s), rel=0.01)


def test_all_at_once_is_one_by_one() -> None:
    sessions = [3.0, 20.0, 31.5, 45.0]
    together = closed_curve(costs_of_a100(), STANDARD_WORKLOAD, POOL, sessions)
    alone = [closed_curve(costs_of_a100(), STANDARD_WORKLOAD, POOL, n).hit_fraction[0] for n in sessions]
    assert together.hit_fraction == pytest.approx(alone)


@given(st.floats(0.5, 20), st.floats(0.01, 0.99), st.floats(0.001, 40), st.floats(0.01, 100))
def test_idle_time_against_numerical_integration(tool_s: float, busy: float, wait_s: float, age_s: float) -> None:
    workload = replace(STANDARD_WORKLOAD, mean_tool_s=tool_s)
    mix = turn_mix(costs_of_a100(), workload, stationary_weights(workload))
    state = EngineState(*(np.array([value]) for value in (1.0, wait_s, busy, 0.0)))
    idle = _IdleTime.of(Population(costs_of_a100(), workload, mix, POOL), state)
    ages = np.linspace(0, age_s, 20_001)
    alive = 1 - np.concatenate([idle.survivors(np.array([age])) for age in ages[::2000]])
    assert (np.diff(alive) <= 1e-12).all()
    tails = 1 - idle.survivors(ages)
    assert idle.mean_within(np.array([age_s]))[0] == pytest.approx(np.trapezoid(tails, ages), rel=1e-3, abs=1e-6)
    assert idle.mean_within(np.array([1e6]))[0] == pytest.approx(tool_s + wait_s, rel=1e-4)


@given(st.floats(0.3, 2.5))
def test_a_tilted_mix_has_the_wanted_demand(demand: float) -> None:
    held = np.asarray(STANDARD_WORKLOAD.prompts()) + 100
    mean = stationary_weights(STANDARD_WORKLOAD)[0] @ held
    (weights,) = tilted_weights(STANDARD_WORKLOAD, np.array([demand]))
    assert weights.sum() == pytest.approx(1)
    assert weights @ held == pytest.approx(demand * mean, rel=1e-6)


@given(st.lists(st.integers(100, 20_000), min_size=2, max_size=30), st.floats(0.7, 1.4))
def test_prompts_that_do_not_grow_evenly_are_tilted_by_their_size(prompts: list[int], demand: float) -> None:
    turns = empirical_turns(Counter(range(1, len(prompts) + 1)))
    workload = TabledWorkload.of(turns, prompts, [0] * len(prompts), output_tokens=100, mean_tool_s=5.0)
    held = np.asarray(prompts) + 100.0
    mean = stationary_weights(workload)[0] @ held
    (weights,) = tilted_weights(workload, np.array([demand]))
    assert weights.sum() == pytest.approx(1)
    low, high = held.min(), held.max()
    assume(0.1 < (demand * mean - low) / max(high - low, 1e-9) < 0.9)
    assert weights @ held == pytest.approx(demand * mean, rel=1e-6)


def test_no_spread_of_turns_no_tilt() -> None:
    assert tilted_weights(STANDARD_WORKLOAD, np.array([1.0])) == pytest.approx(stationary_weights(STANDARD_WORKLOAD))
    assert 0.7 < relative_spread(STANDARD_WORKLOAD) < 0.8


def test_the_onset_of_the_300k_cell() -> None:
    fitted = COSTS["sglang-300k"].lambda_miss(STANDARD_WORKLOAD)
    onset = onset_sessions(STANDARD_WORKLOAD, POOL, fitted)
    assert round(onset, 1) == 33.4
    assert onset == pytest.approx(published()["onset_300k"], abs=0.7)
    costs = CELLS["sglang-300k"].step_costs
    assert costs is not None
    assert onset_of(costs, STANDARD_WORKLOAD, POOL) == pytest.approx(onset, abs=0.1)


@pytest.mark.parametrize("sessions", [0.5, float("nan"), float("inf")])
def test_a_population_is_at_least_one(sessions: float) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        closed_curve(costs_of_a100(), STANDARD_WORKLOAD, POOL, sessions)


def test_sessions_of_one_turn_have_nothing_to_hit() -> None:
    with pytest.raises(ValueError, match="no follow-ups"):
        closed_curve(costs_of_a100(), replace(STANDARD_WORKLOAD, turns=FixedTurns(1)), POOL, 4)
