"""The renewal law: printed numbers, identities, monotonicity, domain."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import iv
from scipy.optimize import brentq

from modelf.conformance import compare_all
from modelf.costs import COSTS, MissCosts, mirror_costs, session_cost
from modelf.renewal import (
    busy_period,
    load_of,
    mean_stationary_prompt_tokens,
    perron_root,
    remaining_work,
    solve,
    stationary_work,
    threshold_slope,
)
from modelf.turn_law import FixedTurns, TabledTurns, TruncatedGeometric, empirical_turns, mean_turns, survivals
from modelf.workload import MIRROR_WORKLOAD, STANDARD_WORKLOAD, Workload

CASES = compare_all()
LAWS = st.one_of(
    st.builds(TruncatedGeometric, st.integers(1, 40), st.integers(1, 40)),
    st.builds(FixedTurns, st.integers(1, 40)),
    st.lists(st.integers(0, 50), min_size=1, max_size=30)
    .filter(lambda w: w[-1] > 0)
    .map(lambda w: TabledTurns(tuple(w))),
)
WORKLOADS = st.builds(Workload, LAWS, st.integers(1, 5000), st.integers(1, 500), st.integers(1, 2000), st.floats(0, 60))
COEFFICIENTS = st.floats(0.0, 2.0)
LOADS = st.floats(1.001, 8.0)


def costs_of(workload: Workload, constant: float, linear: float, quadratic: float) -> np.ndarray:
    return MissCosts("drawn", constant + 0.01, linear, quadratic, 1.0, None, "drawn").turn_costs(workload)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.place}, {c.quantity}")
def test_every_printed_number_agrees(case: object) -> None:
    assert case.agrees, case  # type: ignore[attr-defined]


def test_the_printed_numbers_are_all_there() -> None:
    assert len(CASES) == 10 * 5 + 5 + 5 + 13


def test_the_workload_has_its_printed_checks() -> None:
    assert mean_turns(STANDARD_WORKLOAD.turns) == pytest.approx(14.761, abs=0.0005)
    assert mean_stationary_prompt_tokens(STANDARD_WORKLOAD) == pytest.approx(10_469, abs=0.5)
    assert STANDARD_WORKLOAD.expected_session_prompt_tokens() == pytest.approx(154_528.9, abs=0.05)
    follow = [(s, p) for s, p in zip(survivals(STANDARD_WORKLOAD.turns), STANDARD_WORKLOAD.prompts(), strict=True)][1:]
    assert sum(s * p for s, p in follow) / sum(s for s, _ in follow) == pytest.approx(11_084, abs=0.5)


@settings(max_examples=150, deadline=None)
@given(WORKLOADS, COEFFICIENTS, COEFFICIENTS, COEFFICIENTS, LOADS)
def test_the_identities_hold_for_any_workload(
    workload: Workload, constant: float, linear: float, quadratic: float, rho: float
) -> None:
    costs = costs_of(workload, constant, linear, quadratic)
    state = solve(costs, workload, rho)
    survival = np.array(survivals(workload.turns))
    a = rho * survival * costs / (survival @ costs)
    x = 1.0 / state.growth[0]
    assert a @ x ** np.arange(1, len(a) + 1) == pytest.approx(1.0, rel=1e-10)
    completions = float(state.completions_over_lambda_miss[0])
    product = float(state.turn_count_factor[0] * state.cost_growth_factor[0])
    assert completions == pytest.approx(product, rel=1e-9)
    sigma = float(state.backlog_slope_over_excess[0]) * (rho - 1)
    assert sigma == pytest.approx(rho - completions, rel=1e-6, abs=1e-9)
    assert state.mix[0].sum() == pytest.approx(1.0)
    assert 0 < completions <= rho


@settings(max_examples=60, deadline=None)
@given(WORKLOADS, COEFFICIENTS, COEFFICIENTS, COEFFICIENTS, LOADS)
def test_the_root_is_the_one_that_a_bracketing_solver_finds(
    workload: Workload, constant: float, linear: float, quadratic: float, rho: float
) -> None:
    costs = costs_of(workload, constant, linear, quadratic)
    survival = np.array(survivals(workload.turns))
    shares = survival * costs / (survival @ costs)
    powers = np.arange(1, len(shares) + 1)
    found = brentq(lambda x: rho * float(shares @ x**powers) - 1.0, 0.0, 1.0, xtol=1e-15, rtol=1e-14)
    assert perron_root(shares, np.array([rho]))[0] == pytest.approx(found, rel=1e-11)


@settings(max_examples=60, deadline=None)
@given(WORKLOADS, COEFFICIENTS, COEFFICIENTS, COEFFICIENTS, st.floats(0.1, 10))
def test_a_uniform_speed_up_at_equal_load_changes_nothing(
    workload: Workload, constant: float, linear: float, quadratic: float, factor: float
) -> None:
    costs = costs_of(workload, constant, linear, quadratic)
    slow, fast = solve(costs, workload, [1.2, 2.5]), solve(costs / factor, workload, [1.2, 2.5])
    assert np.allclose(slow.mix, fast.mix, rtol=1e-9, atol=1e-15)
    assert np.allclose(slow.completions_over_lambda_miss, fast.completions_over_lambda_miss, rtol=1e-9)


@settings(max_examples=60, deadline=None)
@given(WORKLOADS, COEFFICIENTS, COEFFICIENTS, COEFFICIENTS)
def test_where_costs_grow_the_cost_factor_grows_with_the_load(
    workload: Workload, constant: float, linear: float, quadratic: float
) -> None:
    state = solve(costs_of(workload, constant, linear, quadratic), workload, np.linspace(1.01, 6, 40))
    assert (np.diff(state.cost_growth_factor) >= -1e-9).all()
    assert (state.cost_growth_factor >= 1 - 1e-9).all()
    assert (np.diff(state.mean_prompt_tokens) <= 1e-6).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 2000))
def test_where_the_hazard_grows_the_turn_count_factor_falls_with_the_load(mean: int, most: int, growth: int) -> None:
    workload = Workload(TruncatedGeometric(mean, most), 2000, 100, growth, 5.0)
    state = solve(COSTS["sglang-300k"].turn_costs(workload), workload, np.linspace(1.01, 6, 40))
    assert (np.diff(state.turn_count_factor) <= 1e-9).all()
    assert (state.turn_count_factor <= 1 + 1e-9).all()


def test_constant_costs_and_a_nearly_untruncated_geometric_give_no_premium() -> None:
    workload = Workload(TruncatedGeometric(5, 400), 1, 1, 1, 5.0)
    state = solve(np.ones(400), workload, [1.1, 2.0, 5.0])
    assert np.allclose(state.completions_over_lambda_miss, 1.0, atol=1e-9)


@pytest.mark.parametrize("cell", COSTS)
def test_the_premium_is_positive_at_every_load_by_interval_arithmetic(cell: str) -> None:
    """D > lambda_miss for all rho > 1, where the paper has a bracket only.

    With q_k = S_k c_k / sum S c, D / lambda_miss > 1 means sum (f_k - q_k) x^k
    > 0 on (0, 1). The polynomial vanishes at 0 and 1; divided by x (1 - x) its
    coefficients are partial sums, and intervals show it positive on [0, 1].
    """
    fit, law = COSTS[cell], STANDARD_WORKLOAD.turns
    survival = [law.survival(k) for k in range(1, law.max_turns + 2)]
    number = {name: Fraction(str(getattr(fit, name))) for name in ("constant", "linear", "quadratic")}
    prompts = [Fraction(p, 10_000) for p in STANDARD_WORKLOAD.prompts()]
    costs = [number["constant"] + number["linear"] * p + number["quadratic"] * p * p for p in prompts]
    total = sum(s * c for s, c in zip(survival, costs, strict=False))
    partial, coefficients = Fraction(0), []
    for k, cost in enumerate(costs):
        partial += survival[k] - survival[k + 1] - survival[k] * cost / total
        coefficients.append(partial)
    assert coefficients[-1] == 0
    enclosed = [iv.mpf(c.numerator) / iv.mpf(c.denominator) for c in coefficients[:-1]]

    def shown_positive(low: int, high: int, scale: int, depth: int) -> bool:
        x = iv.mpf([low, high]) / scale
        value = iv.mpf(0)
        for coefficient in reversed(enclosed):
            value = value * x + coefficient
        if value.a > 0:
            return True
        halves = ((2 * low, low + high), (low + high, 2 * high))
        return depth < 24 and all(shown_positive(*half, 2 * scale, depth + 1) for half in halves)

    assert shown_positive(0, 1, 1, 0)


def test_the_premium_reverses_for_mirror() -> None:
    state = solve(mirror_costs().turn_costs(MIRROR_WORKLOAD), MIRROR_WORKLOAD, np.linspace(1.05, 4, 30))
    assert (state.completions_over_lambda_miss < 1).all()


@pytest.mark.parametrize("cell", COSTS)
def test_the_threshold_slope_is_the_limit(cell: str) -> None:
    costs = COSTS[cell].turn_costs(STANDARD_WORKLOAD)
    near = solve(costs, STANDARD_WORKLOAD, 1 + 1e-6)
    theta = threshold_slope(costs, STANDARD_WORKLOAD)
    assert near.backlog_slope_over_excess[0] == pytest.approx(theta, rel=1e-4)
    premium = (near.completions_over_lambda_miss[0] - 1) / 1e-6
    assert premium == pytest.approx(1 - theta, rel=1e-3)


def test_work_and_busy_period() -> None:
    costs = COSTS["sglang-300k"].turn_costs(STANDARD_WORKLOAD)
    whole = session_cost(STANDARD_WORKLOAD, costs)
    assert remaining_work(costs, STANDARD_WORKLOAD)[0] == pytest.approx(whole)
    assert stationary_work(costs, STANDARD_WORKLOAD, 10) > 0
    assert busy_period(100.0, 0.75) == 400.0
    assert busy_period(100.0, 0.0) == 100.0
    assert busy_period(100.0, 1.0) == float("inf")
    assert load_of(costs, STANDARD_WORKLOAD, 1.0 / whole) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="negative"):
        busy_period(-1.0, 0.5)


@pytest.mark.parametrize(
    ("costs", "rho", "words"),
    [
        (np.ones(60), 1.0, "the load 1 is not above 1"),
        (np.ones(60), float("nan"), "the load nan is not above 1"),
        (np.ones(59), 2.0, "59 turn costs for a law of 60 turns"),
        (np.zeros(60), 2.0, "every turn cost must be positive"),
    ],
)
def test_outside_the_model_it_says_what_is_wrong(costs: np.ndarray, rho: float, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        solve(costs, STANDARD_WORKLOAD, rho)


def test_laws_of_other_kinds() -> None:
    assert survivals(FixedTurns(3)) == [1.0, 1.0, 1.0]
    assert survivals(TabledTurns((1, 0, 3))) == [1.0, 0.75, 0.75]
    assert empirical_turns([1, 3, 3, 3]) == TabledTurns((1, 0, 3)) == empirical_turns({1: 1, 3: 3})
    for bad in ((), (1, 0), (-1, 2)):
        with pytest.raises(ValueError, match="weights"):
            TabledTurns(bad)
    with pytest.raises(ValueError, match="at least one"):
        empirical_turns([])
    with pytest.raises(ValueError, match="at least 1"):
        FixedTurns(0)
    assert solve(np.ones(1), Workload(FixedTurns(1), 10, 1, 1, 0.0), 2.0).growth[0] == pytest.approx(2.0)
