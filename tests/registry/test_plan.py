"""Plans: the same everywhere, shared where promised, checked by hand-made code."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelf.turn_law import TruncatedGeometric, mean_turns
from modelf.workload import STANDARD_WORKLOAD
from registry.design import Arm, Burst, Design, GateSetting, Seeds, Window
from registry.errors import CapExceeded, RegistrationError
from registry.philox import many_words, natural_log, top_53_bits, uniform, unit_exponential, words
from registry.plan import (
    MAX_ARRIVALS,
    Plan,
    SessionDraw,
    base_arrivals_us,
    burst_arrivals_us,
    draw_sessions,
    make_plan,
    plan_key,
    turn_table,
)

GOLDEN = json.loads((Path(__file__).parent / "golden_plans.json").read_text())
BURST = Burst(sessions=200, start_s=1200, spread_s=60)
DESIGN = Design(
    horizon_s=8700.0,
    workload=STANDARD_WORKLOAD,
    rates=(1.35, 1.65),
    arms=(Arm("BURST", BURST), Arm("NOBURST"), Arm("CAPPED", BURST, GateSetting(20, 0, None))),
    windows=(Window("judged", 5700.0, 8700.0),),
    seeds=Seeds((0, 1, 2), "beacon"),
)
ROUND, SIGNATURE = 657413, "b713718a38ae728d"

keys = st.binary(min_size=32, max_size=32)


# --- an independent, slow implementation ------------------------------------


def slow_key(digest: str, round_number: int, signature: str, seed: int) -> bytes:
    text = f'["trap-plan-1","{digest}",{round_number},"{signature}",{seed}]'
    return hashlib.sha256(text.encode()).digest()


def slow_words(key: bytes, name: str, count: int) -> list[int]:
    """Philox4x64-10 from its definition (Salmon et al., 2011).

    numpy raises the counter before each block of four, so the first block is
    that of counter 1.
    """
    mask = 2**64 - 1
    digest = hashlib.sha256(key + name.encode()).digest()
    start = [int.from_bytes(digest[i : i + 8], "little") for i in (0, 8)]
    found: list[int] = []
    counter = 0
    while len(found) < count:
        counter += 1
        block = [counter & mask, counter >> 64, 0, 0]
        k0, k1 = start
        for _ in range(10):
            low0 = block[0] * 0xD2E7470EE14C6C93
            low1 = block[2] * 0xCA5A826395121157
            block = [(low1 >> 64) ^ block[1] ^ k0, low1 & mask, (low0 >> 64) ^ block[3] ^ k1, low0 & mask]
            k0, k1 = (k0 + 0x9E3779B97F4A7C15) & mask, (k1 + 0xBB67AE8584CAA73B) & mask
        found += block
    return found[:count]


def slow_exponential(word: int) -> Decimal:
    """-ln u to 30 digits, u being the double that the word stands for."""
    u = ((word >> 11) + 0.5) / 2**53
    with localcontext() as context:
        context.prec = 40
        return -Decimal(u).ln()


def slow_base(key: bytes, lambda_per_s: float, count: int) -> list[int]:
    """Arrivals, each gap rounded to a whole microsecond before the sum."""
    time, found = 0, []
    for word in slow_words(key, "base", count):
        time += round(slow_exponential(word) / Decimal(lambda_per_s) * 1_000_000)
        found.append(time)
    return found


def slow_burst(key: bytes, burst: Burst) -> list[int]:
    found = []
    for word in slow_words(key, "burst", burst.sessions):
        u = Fraction(2 * (word >> 11) + 1, 2**54)
        found.append(int(burst.start_s * 1_000_000) + math.floor(u * int(burst.spread_s * 1_000_000)))
    return sorted(found)


def slow_session(key: bytes, origin: str, index: int, law: TruncatedGeometric, mean_s: float) -> tuple[int, list[int]]:
    """Turn count by exact fractions, tool times by the slow logarithm."""
    raw = slow_words(key, f"session/{origin}/{index}", law.max_turns)
    u = Fraction(raw[0] >> 11, 2**53)
    stay = 1 - Fraction(1, law.mean_turns)
    turns = 1
    while turns < law.max_turns and u >= Fraction(math.floor((1 - stay**turns) * 2**53), 2**53):
        turns += 1
    return turns, [round(slow_exponential(word) * Decimal(mean_s) * 1_000_000) for word in raw[1:turns]]


# --- golden vectors ----------------------------------------------------------


def golden_case(case: dict[str, Any]) -> dict[str, Any]:
    """What the code gives for the inputs of a golden case."""
    key = plan_key(case["digest"], case["round"], case["signature"], case["seed"])
    plan = make_plan(key, DESIGN, DESIGN.arm("BURST"), case["lambda_per_s"])
    sessions = [("base", 0), ("base", 1), ("base", 300), ("burst", 0), ("population", 0)]
    return {
        "key": key.hex(),
        "base_count": len(plan.base_arrivals_us),
        "base_first": list(plan.base_arrivals_us[:8]),
        "base_last": plan.base_arrivals_us[-1],
        "burst_first": list(plan.burst_arrivals_us[:8]),
        "burst_last": plan.burst_arrivals_us[-1],
        "sessions": {f"{o}-{i}": [plan.session(o, i).turns, list(plan.session(o, i).tool_us[:4])] for o, i in sessions},
        "plan_sha256": hashlib.sha256(
            repr(
                (
                    plan.base_arrivals_us,
                    plan.burst_arrivals_us,
                    [(s.turns, s.tool_us) for s in (plan.session("base", i) for i in range(40))],
                )
            ).encode()
        ).hexdigest(),
    }


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_plans_are_the_golden_ones(case: dict[str, Any]) -> None:
    assert golden_case(case) == case["plan"]


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_the_slow_implementation_gives_the_golden_plans(case: dict[str, Any]) -> None:
    plan = case["plan"]
    key = slow_key(case["digest"], case["round"], case["signature"], case["seed"])
    assert key.hex() == plan["key"]
    base = slow_base(key, case["lambda_per_s"], plan["base_count"] + 1)
    assert base[:8] == plan["base_first"]
    assert base[-2] == plan["base_last"] < 8_700_000_000 <= base[-1]
    burst = slow_burst(key, BURST)
    assert (burst[:8], burst[-1]) == (plan["burst_first"], plan["burst_last"])
    for name, (turns, tool_us) in plan["sessions"].items():
        origin, _, index = name.partition("-")
        slow_turns, slow_tool_us = slow_session(key, origin, int(index), STANDARD_WORKLOAD.turns, 5.0)
        assert (slow_turns, slow_tool_us[:4]) == (turns, tool_us)


def test_the_key_is_the_sha_256_of_its_parts() -> None:
    expected = hashlib.sha256(b'["trap-plan-1","",0,"",7]').digest()
    assert plan_key("", 0, "", 7) == expected


@given(keys, st.sampled_from(["base", "burst", "session/base/0", "session/burst/17"]))
@settings(max_examples=30, deadline=None)
def test_the_word_stream_is_philox_4x64_10(key: bytes, name: str) -> None:
    assert words(key, name, 11).tolist() == slow_words(key, name, 11)


def test_a_stream_is_a_prefix_of_its_longer_self() -> None:
    key = bytes(32)
    assert words(key, "base", 300)[:7].tolist() == words(key, "base", 7).tolist()


def test_uniforms_are_above_0_and_at_most_1() -> None:
    assert uniform(np.asarray([0, 2**63, 2**64 - 1], dtype=np.uint64)).tolist() == [2.0**-54, 0.5, 1.0]
    assert top_53_bits(np.asarray([2**64 - 1], dtype=np.uint64)).tolist() == [2**53 - 1]
    assert np.all(unit_exponential(np.asarray([0, 2**63, 2**64 - 1], dtype=np.uint64)) >= 0)


# --- the logarithm -----------------------------------------------------------


def _ulps(x: float) -> float:
    ours = float(natural_log(np.asarray([x]))[0])
    exact = math.log(x)
    return 0.0 if ours == exact else abs(ours - exact) / math.ulp(exact)


@given(st.floats(min_value=2.0**-60, max_value=1.0))
@settings(max_examples=500, deadline=None)
def test_the_logarithm_is_right_to_4_ulp(x: float) -> None:
    assert _ulps(x) <= 4


@given(st.integers(1, 2**53))
@settings(max_examples=500, deadline=None)
def test_the_logarithm_is_right_to_4_ulp_on_the_uniforms(top: int) -> None:
    assert _ulps((top - 0.5) / 2**53) <= 4


@given(st.integers(1, 2**30), st.sampled_from([1.0, 0.5, 0.25, math.sqrt(0.5), math.sqrt(0.125)]))
@settings(max_examples=500, deadline=None)
def test_the_logarithm_is_right_near_1_and_at_its_seams(steps: int, seam: float) -> None:
    for x in (seam - steps * math.ulp(seam) / 2, seam + steps * math.ulp(seam)):
        if x <= 1:
            assert _ulps(x) <= 4


def test_the_logarithm_of_1_is_0() -> None:
    assert natural_log(np.asarray([1.0])).tolist() == [0.0]


# --- turn counts -------------------------------------------------------------


@given(st.integers(1, 200), st.integers(1, 80))
@settings(max_examples=60, deadline=None)
def test_the_turn_table_is_exact(mean_turns: int, max_turns: int) -> None:
    stay = Fraction(mean_turns - 1, mean_turns)
    table = turn_table(TruncatedGeometric(mean_turns, max_turns))
    assert list(table) == [(2**53 * (1 - stay**k)).__floor__() for k in range(1, max_turns)]
    assert list(table) == sorted(table)


@pytest.mark.parametrize(("mean_turns", "max_turns"), [(1, 60), (15, 1), (1, 1)])
def test_a_law_of_one_turn_gives_one_turn_and_no_tool_times(mean_turns: int, max_turns: int) -> None:
    workload = replace(STANDARD_WORKLOAD, turns=TruncatedGeometric(mean_turns, max_turns))
    draws = draw_sessions(bytes(32), workload, "base", 50)
    assert {draws.session(i) for i in range(50)} == {SessionDraw(1, ())}


@pytest.mark.parametrize(("mean_turns", "max_turns"), [(0, 5), (-1, 5), (5, 0)])
def test_a_law_without_turns_is_refused(mean_turns: int, max_turns: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        TruncatedGeometric(mean_turns, max_turns)


def test_turn_counts_and_tool_times_follow_their_laws() -> None:
    count = 6000
    drawn = draw_sessions(bytes(range(32)), STANDARD_WORKLOAD, "base", count)
    draws = [drawn.session(i) for i in range(count)]
    law = STANDARD_WORKLOAD.turns
    assert {d.turns for d in draws} <= set(range(1, 61))
    assert all(len(d.tool_us) == d.turns - 1 for d in draws)
    chi_square, cells = 0.0, [*range(1, 31), 60]
    for k in cells:
        share = float(law.survival(k) - law.survival(k + 1))
        seen = sum(d.turns == k for d in draws)
        chi_square += (seen - count * share) ** 2 / (count * share)
    assert chi_square < len(cells) + 5 * math.sqrt(2 * len(cells))
    assert sum(d.turns for d in draws) / count == pytest.approx(mean_turns(law), rel=0.03)
    tool_s = [us / 1e6 for d in draws for us in d.tool_us]
    assert sum(tool_s) / len(tool_s) == pytest.approx(5.0, rel=0.03)
    assert sum(t > 5.0 for t in tool_s) / len(tool_s) == pytest.approx(math.exp(-1), rel=0.03)


def test_session_draws_do_not_depend_on_how_they_are_asked_for() -> None:
    key = bytes(32)
    few, many = (draw_sessions(key, STANDARD_WORKLOAD, "base", count) for count in (12, 700))
    assert [few.session(i) for i in range(12)] == [many.session(i) for i in range(12)]
    plan = make_plan(key, DESIGN, DESIGN.arm("NOBURST"), 0.1)
    assert [plan.session("base", i) for i in (11, 0, 700)] == [*map(few.session, (11, 0)), plan.session("base", 700)]


@given(keys, st.lists(st.integers(1, 20), min_size=1, max_size=6))
@settings(max_examples=30, deadline=None)
def test_many_streams_at_once_give_the_words_of_each(key: bytes, blocks: list[int]) -> None:
    names = [f"stream {i}" for i in range(len(blocks))]
    expected = np.concatenate([words(key, name, 4 * count) for name, count in zip(names, blocks, strict=True)])
    assert np.array_equal(many_words(key, names, np.array(blocks)), expected)


def test_a_step_cap_cuts_sessions_and_changes_nothing_else() -> None:
    key = plan_key("ab" * 32, ROUND, SIGNATURE, 0)
    free, capped = (make_plan(key, DESIGN, Arm("A", step_cap=cap), 0.1) for cap in (None, 5))
    assert capped.base_arrivals_us == free.base_arrivals_us
    for index in range(200):
        longer, shorter = free.session("base", index), capped.session("base", index)
        assert shorter.turns == min(longer.turns, 5)
        assert shorter.tool_us == longer.tool_us[: shorter.turns - 1]


# --- plans -------------------------------------------------------------------


def _plan(arm: str, rate: float, seed: int = 0) -> Plan:
    key = plan_key("ab" * 32, ROUND, SIGNATURE, seed)
    return make_plan(key, DESIGN, DESIGN.arm(arm), rate * 0.072)


def test_the_same_inputs_give_the_same_plan() -> None:
    draw_sessions.cache_clear()
    first = _plan("BURST", 1.35)
    turns = [first.session("base", i) for i in range(5)]
    draw_sessions.cache_clear()
    second = _plan("BURST", 1.35)
    assert first == second
    assert turns == [second.session("base", i) for i in range(5)]


def test_the_arms_of_a_seed_share_arrivals_turn_counts_and_tool_times() -> None:
    burst, none, capped = (_plan(arm, 1.35) for arm in ("BURST", "NOBURST", "CAPPED"))
    assert burst.base_arrivals_us == none.base_arrivals_us == capped.base_arrivals_us
    assert burst.burst_arrivals_us == capped.burst_arrivals_us
    assert none.burst_arrivals_us == ()
    for origin, index in (("base", 0), ("base", 700), ("burst", 3)):
        assert burst.session(origin, index) == none.session(origin, index) == capped.session(origin, index)


def test_the_rates_of_a_seed_share_sessions_and_unit_gaps() -> None:
    slow, fast = _plan("BURST", 1.35), _plan("BURST", 1.65)
    assert slow.burst_arrivals_us == fast.burst_arrivals_us
    assert slow.session("base", 2) == fast.session("base", 2)
    for i, (late, early) in enumerate(zip(slow.base_arrivals_us, fast.base_arrivals_us, strict=False)):
        assert abs(late * 1.35 - early * 1.65) <= (i + 1) * 1.5 + 1e-6


@given(keys, st.floats(0.01, 3.0), st.floats(0.01, 3.0))
@settings(max_examples=25, deadline=None)
def test_arrivals_scale_with_the_rate_to_within_rounding(key: bytes, one: float, other: float) -> None:
    first, second = (base_arrivals_us(key, rate, 2_000_000_000) for rate in (one, other))
    for i, (a, b) in enumerate(zip(first, second, strict=False)):
        assert abs(a * one - b * other) <= (i + 1) * (one + other) / 2 + 1e-3


@given(keys, st.floats(1e-4, 2.0), st.integers(1, 5_000_000_000))
@settings(max_examples=40, deadline=None)
def test_arrivals_ascend_below_the_horizon(key: bytes, rate: float, horizon_us: int) -> None:
    times = base_arrivals_us(key, rate, horizon_us)
    assert list(times) == sorted(times)
    assert all(type(t) is int and 0 <= t < horizon_us for t in times)


@given(keys, st.integers(1_000_000, 1_000_000_000))
@settings(max_examples=20, deadline=None)
def test_a_shorter_horizon_only_cuts(key: bytes, horizon_us: int) -> None:
    whole = base_arrivals_us(key, 0.5, 1_000_000_000)
    assert base_arrivals_us(key, 0.5, horizon_us) == tuple(t for t in whole if t < horizon_us)


def test_arrivals_have_the_rate_they_are_asked_for() -> None:
    times = base_arrivals_us(bytes(32), 2.0, 5_000_000_000)
    assert len(times) == pytest.approx(10_000, abs=500)


@given(keys, st.integers(1, 300), st.floats(0, 8000), st.floats(1e-6, 500))
@settings(max_examples=40, deadline=None)
def test_the_burst_lies_within_its_spread(key: bytes, sessions: int, start_s: float, spread_s: float) -> None:
    burst = Burst(sessions, start_s, spread_s)
    times = burst_arrivals_us(key, burst)
    assert len(times) == sessions and list(times) == sorted(times)
    start = round(start_s * 1_000_000)
    assert start <= times[0] and times[-1] <= start + spread_s * 1_000_000


def test_burst_sessions_after_the_horizon_are_left_out() -> None:
    arm = Arm("LATE", Burst(sessions=100, start_s=8690, spread_s=20))
    plan = make_plan(bytes(32), DESIGN, arm, 0.1)
    assert 0 < len(plan.burst_arrivals_us) < 100
    assert max(plan.burst_arrivals_us) < plan.horizon_us


def test_a_closed_population_has_no_arrivals() -> None:
    plan = make_plan(bytes(32), DESIGN, Arm("ALLMISS", population=32, caching=False), None)
    assert (plan.population, plan.arrivals()) == (32, [])
    assert plan.session("population", 31).turns >= 1


def test_arrivals_come_in_time_order_base_before_burst() -> None:
    plan = replace(_plan("NOBURST", 1.35), base_arrivals_us=(5, 9), burst_arrivals_us=(5, 7))
    assert plan.arrivals() == [(5, "base", 0), (5, "burst", 0), (7, "burst", 1), (9, "base", 1)]


KEY_PARTS = ("ab" * 32, ROUND, SIGNATURE, 0)


@pytest.mark.parametrize("changed", [("ac" * 32, None, None, None), (None, 1, None, None), (None, None, "b7", None)])
def test_another_digest_round_or_signature_gives_another_plan(changed: tuple[Any, ...]) -> None:
    other = tuple(old if new is None else new for old, new in zip(KEY_PARTS, changed, strict=True))
    assert plan_key(*KEY_PARTS) != plan_key(*other)  # type: ignore[arg-type]
    arm = DESIGN.arm("BURST")
    one, two = (make_plan(plan_key(*parts), DESIGN, arm, 0.1) for parts in (KEY_PARTS, other))
    assert one.base_arrivals_us != two.base_arrivals_us and one.burst_arrivals_us != two.burst_arrivals_us


@given(st.sets(st.integers(0, 2**53 - 1), min_size=2, max_size=20))
@settings(max_examples=20, deadline=None)
def test_every_seed_has_a_key_of_its_own(seeds: set[int]) -> None:
    assert len({plan_key(*KEY_PARTS[:3], seed) for seed in seeds}) == len(seeds)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan")])
def test_a_rate_that_is_not_positive_is_refused(rate: float) -> None:
    with pytest.raises(RegistrationError, match="must be positive"):
        base_arrivals_us(bytes(32), rate, 1_000_000)


@pytest.mark.parametrize("rate", [1e300, float("inf"), MAX_ARRIVALS * 1.1])
def test_a_rate_of_too_many_arrivals_is_refused(rate: float) -> None:
    with pytest.raises(CapExceeded, match="too many arrivals"):
        base_arrivals_us(bytes(32), rate, 1_000_000)


@pytest.mark.parametrize("rate", [1e-9, 1e-200, 1e-299])
def test_a_tiny_rate_gives_no_arrivals(rate: float) -> None:
    assert base_arrivals_us(bytes(32), rate, 8_700_000_000) == ()
