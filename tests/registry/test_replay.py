"""Replayed arrivals: the trace's order and spacing at the arm's rate, exact."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.design import Arm, Burst, Cut, Design, Seeds, Window
from registry.errors import RegistrationError
from registry.plan import Plan, cut_arrivals_us, make_plan, plan_key
from registry.plan_source import difference
from registry.replay import own_rate_per_s, replay_end_s, replayed_arrivals_us
from registry.scripted_workload import ScriptedWorkload
from registry.session_scripts import SessionScripts, read_scripts, write_scripts

FAR_US = 2**62
KEY, OTHER_KEY = plan_key("", 0, "", 1), plan_key("", 0, "", 2)


def arriving(*times_us: int) -> SessionScripts:
    """Scripts that arrive then; script i has i + 1 turns."""
    rows = [{"arrival_us": time, "turns": [[9, 2, 5, 0, []]] * (i + 1)} for i, time in enumerate(times_us)]
    return read_scripts(write_scripts(4, 0, rows), "by hand")


def workload(*times_us: int) -> ScriptedWorkload:
    return ScriptedWorkload.following(arriving(*times_us), replayed=True)


def design(of: ScriptedWorkload, *arms: Arm, horizon_s: float = 1000.0) -> Design:
    return Design(horizon_s, of, (1.0, 2.0), arms, (Window("all", 0.0, horizon_s),), Seeds((1, 2), "beacon"))


def plan_of(of: ScriptedWorkload, arm: Arm, lambda_per_s: float, rate: float = 1.0, key: bytes = KEY) -> Plan:
    return make_plan(key, design(of, arm), arm, lambda_per_s, rate)


times = st.lists(st.integers(0, 10**13), min_size=2, max_size=40).filter(lambda found: len(set(found)) > 1)
rates = st.floats(1e-4, 1e3)


@given(times, rates)
def test_arrivals_are_the_law_to_the_nearest_microsecond(times_us: list[int], lambda_per_s: float) -> None:
    found, own = replayed_arrivals_us(arriving(*times_us), lambda_per_s, FAR_US), sorted(times_us)
    assert len(found) == len(own) and all(type(time) is int for time in found)
    for arrival, time in zip(found, own, strict=True):
        exact = Fraction(time - own[0], own[-1] - own[0]) * (len(own) - 1) / Fraction(lambda_per_s) * 10**6
        assert -Fraction(1, 2) < arrival - exact <= Fraction(1, 2)


@given(times, rates)
def test_order_mean_rate_and_ratios_of_gaps_are_kept(times_us: list[int], lambda_per_s: float) -> None:
    found, own = replayed_arrivals_us(arriving(*times_us), lambda_per_s, FAR_US), sorted(times_us)
    assert found[0] == 0 and list(found) == sorted(found)
    assert abs(Fraction(found[-1]) - Fraction((len(own) - 1) * 10**6) / Fraction(lambda_per_s)) <= Fraction(1, 2)
    stretched = Fraction(found[-1], own[-1] - own[0])
    for (a, b), (own_a, own_b) in zip(pairwise(found), pairwise(own), strict=True):
        assert abs(b - a - (own_b - own_a) * stretched) <= 2
    # Twice the rate is the same in half the time.
    for slow, fast in zip(found, replayed_arrivals_us(arriving(*times_us), 2 * lambda_per_s, FAR_US), strict=True):
        assert abs(slow - 2 * fast) <= Fraction(3, 2)


@given(times, rates, st.integers(1, 10**9))
def test_a_horizon_only_cuts(times_us: list[int], lambda_per_s: float, horizon_us: int) -> None:
    scripts = arriving(*times_us)
    whole = replayed_arrivals_us(scripts, lambda_per_s, FAR_US)
    assert replayed_arrivals_us(scripts, lambda_per_s, horizon_us) == tuple(t for t in whole if t < horizon_us)


@given(times)
def test_its_own_rate_replays_a_trace_at_its_own_speed(times_us: list[int]) -> None:
    scripts = arriving(*times_us)
    found = replayed_arrivals_us(scripts, own_rate_per_s(scripts), FAR_US)
    # The rate is a double: of 10^13 microseconds it moves a few thousandths.
    assert all(abs(a - (b - min(times_us))) <= 1 for a, b in zip(found, sorted(times_us), strict=True))


def test_by_hand() -> None:
    # The clock goes from 2 to 10 s with four sessions: 3 / 8 a second. At 0.5 a second it lasts 6 s.
    plan = plan_of(workload(4_000_000, 2_000_000, 10_000_000, 2_000_000), Arm("A"), 0.5)
    assert plan.base_arrivals_us == (0, 0, 1_500_000, 6_000_000)
    assert plan.draws("base", 4).turns[:4].tolist() == [2, 4, 1, 3], "ties keep the scripts' order"
    assert [plan.session("base", i).tool_us for i in range(3)] == [(5,), (5, 5, 5), ()]
    assert own_rate_per_s(arriving(4_000_000, 2_000_000, 10_000_000)) == 0.25


def test_a_half_microsecond_is_rounded_up() -> None:
    assert replayed_arrivals_us(arriving(0, 1, 4), 500_000.0, FAR_US) == (0, 1, 4)
    assert replayed_arrivals_us(arriving(0, 1, 8), 500_000.0, FAR_US) == (0, 1, 4)


@given(times, st.integers(1, 600))
def test_base_session_i_follows_the_ith_that_arrives(times_us: list[int], count: int) -> None:
    of = workload(*times_us)
    order = sorted(range(len(times_us)), key=lambda script: times_us[script])
    draws = Plan(KEY, of, 1, (), (), 0).draws("base", count)
    assert draws.script is not None and len(draws.script) >= count
    expected = [order[i % len(order)] for i in range(count)]
    assert draws.script[:count].tolist() == of.scripts.first_turn[expected].tolist()
    assert draws.turns[:count].tolist() == [script + 1 for script in expected]


def test_burst_and_population_draw_their_scripts_as_without_a_replay() -> None:
    replayed = workload(*range(0, 50_000_000, 1_000_000))
    drawn = ScriptedWorkload.following(replayed.scripts)
    arm = Arm("A", burst=Burst(30, 5.0, 10.0))
    one, other = plan_of(replayed, arm, 0.5), plan_of(drawn, arm, 0.5)
    assert one.burst_arrivals_us == other.burst_arrivals_us
    for origin in ("burst", "population"):
        assert one.draws(origin, 60).turns.tolist() == other.draws(origin, 60).turns.tolist()
    assert one.draws("base", 60).turns.tolist() != other.draws("base", 60).turns.tolist()
    assert one.base_arrivals_us != other.base_arrivals_us
    # Seeds differ in the burst alone.
    another = plan_of(replayed, arm, 0.5, key=OTHER_KEY)
    assert another.base_arrivals_us == one.base_arrivals_us
    assert another.burst_arrivals_us != one.burst_arrivals_us
    assert another.draws("base", 60).turns.tolist() == one.draws("base", 60).turns.tolist()


@pytest.mark.parametrize("to_rate", [0.5, 2.0])
def test_a_cut_stretches_what_comes_after_it(to_rate: float) -> None:
    of, cut = workload(*range(0, 100_000_000, 1_000_000)), Cut(60.0, to_rate)
    whole = replayed_arrivals_us(of.scripts, 0.5, FAR_US)
    expected = cut_arrivals_us(whole, 60_000_000, 1.0 / to_rate, 1_000_000_000)
    assert plan_of(of, Arm("A", cut=cut), 0.5).base_arrivals_us == expected != whole
    assert replay_end_s(of.scripts, 0.5, 1.0, cut) == expected[-1] / 1e6
    assert replay_end_s(of.scripts, 0.5, 1.0, None) == whole[-1] / 1e6 == 198.0


def test_a_step_cap_holds() -> None:
    assert plan_of(workload(0, 1, 2), Arm("A", step_cap=2), 1.0).draws("base", 3).turns[:3].tolist() == [1, 2, 2]


def test_nothing_arrives_after_the_last_script() -> None:
    plan = plan_of(workload(0, 1_000_000, 5_000_000), Arm("A"), 2.0)
    assert plan.base_arrivals_us == (0, 200_000, 1_000_000) and plan.horizon_us == 1_000_000_000


def test_plans_of_other_arrivals_are_no_plans_of_these() -> None:
    replayed = design(workload(0, 1_000_000), Arm("A"))
    drawn = replace(replayed, workload=ScriptedWorkload.following(arriving(0, 1_000_000)))
    assert replayed.workload == workload(0, 1_000_000) != drawn.workload
    assert difference(replayed, 1.0, drawn, 1.0) == "its sessions have another workload"
    assert difference(replayed, 1.0, replace(replayed), 1.0) is None


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(RegistrationError, match="must be positive"):
        replayed_arrivals_us(arriving(0, 1), rate, FAR_US)


@pytest.mark.parametrize("times_us", [(0,), (7, 7, 7)])
def test_scripts_without_arrival_times_are_refused(times_us: tuple[int, ...]) -> None:
    with pytest.raises(RegistrationError, match="no arrival times"):
        replayed_arrivals_us(arriving(*times_us), 1.0, FAR_US)


@pytest.mark.parametrize("rate", [5e-324, 1e-300, 1e300])
def test_any_positive_rate_has_arrivals(rate: float) -> None:
    found = replayed_arrivals_us(arriving(0, 2**53 - 1), rate, 1_000)
    assert found == ((0,) if rate < 1 else (0, 0))
    assert np.asarray(found, dtype=np.int64).tolist() == list(found)
