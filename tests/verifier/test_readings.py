"""Readings against the slow reference, on generated records of every shape."""

from __future__ import annotations

import math
import random
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_readings import Row, Tables, slow_readings

from registry.design import Window
from registry.reading_catalogue import READING_KINDS
from verifier.exact_statistics import nearest_ranks, slope
from verifier.golden import frames_of, golden_document
from verifier.readings import RunFrames, compute_readings

OPEN = "open at horizon"
STAGES = ("ready_s", "admitted_s", "submit_s", "start_s", "first_token_s", "done_s")

# Quarter seconds, often zero, so that spans touch each other and the window's bounds.
STEP = st.sampled_from([0, 0, 0, 1, 2, 8, 39, 160, 700]).map(lambda quarters: quarters / 4)
ARRIVAL = st.integers(0, 200).map(lambda quarters: quarters / 4)
WINDOW_BOUND = st.sampled_from([0.0, 5.0, 20.0, 40.25, 320.0, 650.0, 700.25, 1000.0])


@st.composite
def turn_row(draw: st.DrawFn) -> Row:
    """A turn whose times are still steps from one stage to the next."""
    prompt = draw(st.integers(1, 90))
    return {
        "steps": draw(st.tuples(*[STEP] * len(STAGES))),
        "tool_s": draw(STEP),
        "silent_start": draw(st.booleans()),
        "prompt_tokens": prompt,
        "reusable_tokens": draw(st.sampled_from([0, prompt // 2, prompt - 1, prompt, 90])),
        "cached_tokens": draw(st.sampled_from([0, prompt // 2, prompt - 1, prompt, prompt])),
        "output_tokens": draw(st.integers(0, 4)),
        "outcome": draw(st.sampled_from(["ok"] * 12 + [OPEN, "refused", "error"])),
        "stages_reached": draw(st.sampled_from([0, 1, 2, 3, 4, 5, 6, 6, 6, 6])),
        "forgotten": draw(st.sampled_from([None] * 30 + ["cached_tokens", "first_token_s"])),
    }


def _lived(session: str, turns: list[Row], arrival_s: float) -> tuple[list[Row], Row]:
    """Turns one after the other until one does not end well, and their session."""
    rows: list[Row] = []
    now = arrival_s
    for number, sketch in enumerate(turns, start=1):
        row: Row = {"session": session, "turn": number, "origin": "base", "planned_s": now}
        row |= {k: sketch[k] for k in sketch if k.endswith("_tokens") or k == "outcome"}
        for stage, step in zip(STAGES, sketch["steps"], strict=True):
            now += step
            row[stage] = now
        if sketch["silent_start"]:
            row["start_s"] = None
        if row["outcome"] != "ok":
            row |= dict.fromkeys(STAGES[sketch["stages_reached"] :])
        if row["outcome"] == OPEN:
            row["done_s"] = None
        if sketch["forgotten"]:
            row[sketch["forgotten"]] = None
        rows.append(row | {"retractions": 0, "detail": None})
        if row["outcome"] != "ok":
            break
        now += sketch["tool_s"]
    outcome = rows[-1]["outcome"]
    summary = {"session": session, "origin": "base", "arrival_s": arrival_s}
    summary |= {"planned_turns": len(turns), "turns_done": len(rows)}
    return rows, summary | {"end_s": rows[-1]["done_s"], "outcome": outcome}


GATE_ROW = st.fixed_dictionaries(
    {
        "time_s": st.one_of(WINDOW_BOUND, ARRIVAL),
        "event": st.sampled_from(["engaged", "paused", "released", "refused", "resumed"]),
        "session": st.sampled_from(["s0", "s1", "s2"]),
    }
)


@st.composite
def records(draw: st.DrawFn) -> Tables:
    """The four tables of a run of up to five sessions, rows in no order."""
    tables: Tables = {"turns": [], "sessions": [], "gate": [], "engine": []}
    lives = st.tuples(ARRIVAL, st.lists(turn_row(), min_size=1, max_size=5))
    count = draw(st.integers(0, 6))
    for index, (arrival_s, turns) in enumerate(draw(st.tuples(*[lives] * count))):
        rows, session = _lived(f"s{index}", turns, arrival_s)
        # A row lost now and then: the next turn's idle time is then untold.
        lost = draw(st.sampled_from([None] * 10 + [1, 2]))
        tables["turns"] += [row for row in rows if row["turn"] != lost]
        tables["sessions"].append(session)
    tables["gate"] = draw(st.lists(GATE_ROW, max_size=6))
    return tables


def _readings(frames: RunFrames, start_s: float, end_s: float, block: int) -> dict[str, float]:
    window = Window("any", start_s, end_s)
    return compute_readings(frames, window, pool_tokens=1000, cache_block_tokens=block)


def _bits(computed: dict[str, float]) -> dict[str, bytes]:
    return {name: struct.pack("<d", value) for name, value in computed.items()}


@settings(max_examples=250, deadline=None, derandomize=True)
@given(records(), WINDOW_BOUND, WINDOW_BOUND, st.sampled_from([1, 3, 16]))
def test_every_reading_agrees_with_the_slow_reference(
    tables: Tables, one_bound: float, other_bound: float, block: int
) -> None:
    start_s, end_s = sorted((one_bound, other_bound))
    computed = _readings(frames_of(tables), start_s, end_s, block)
    expected = slow_readings(tables, start_s, end_s, pool_tokens=1000, cache_block_tokens=block)
    assert set(computed) == set(expected)
    for name, value in expected.items():
        assert computed[name] == pytest.approx(value, rel=1e-9, abs=1e-9, nan_ok=True), name


@settings(max_examples=40, deadline=None, derandomize=True)
@given(records(), st.integers(0, 2**32))
def test_the_order_of_rows_changes_no_bit(tables: Tables, seed: int) -> None:
    shuffler = random.Random(seed)
    shuffled = {name: shuffler.sample(rows, len(rows)) for name, rows in tables.items()}
    before = _readings(frames_of(tables), 50.0, 950.0, 16)
    assert _bits(_readings(frames_of(shuffled), 50.0, 950.0, 16)) == _bits(before)


def test_the_order_of_rows_changes_no_bit_where_sums_round() -> None:
    rng = random.Random(7)
    rows = [_ok_turn(f"s{i}", 1, rng.uniform(0, 900), rng.uniform(0, 90)) for i in range(500)]
    tables: Tables = {"turns": rows, "sessions": [], "gate": [], "engine": []}
    before = _bits(_readings(frames_of(tables), 50.0, 950.0, 1))
    for _ in range(3):
        rng.shuffle(rows)
        assert _bits(_readings(frames_of(tables), 50.0, 950.0, 1)) == before


def test_catalogue_and_verifier_name_the_same_readings() -> None:
    computed = _readings(_no_records(), 0.0, 100.0, 1)
    assert list(computed) == list(READING_KINDS)
    assert all(type(value) is float for value in computed.values())


def test_catalogue_bounds_are_finite_and_wide() -> None:
    for name, kind in READING_KINDS.items():
        assert name == kind.name
        assert kind.unit
        assert kind.meaning
        assert -math.inf < kind.low < kind.high < math.inf


def test_without_records_counts_and_rates_are_zero_and_the_rest_undefined() -> None:
    computed = _readings(_no_records(), 0.0, 100.0, 1)
    zero = {name for name, value in computed.items() if value == 0.0}
    assert {name for name, value in computed.items() if math.isnan(value)} == set(computed) - zero
    assert zero == {
        *("followups_finished", "hits", "idle_from_first_token", "outstanding"),
        *("refused", "paused", "delayed", "delay_session_h", "relapses"),
        *("completions_per_s", "turns_per_s", "arrivals_per_s", "goodput_per_s"),
        *("uncached_prefill_tokens_per_s", "backlog_slope_per_s", "gate_backlog_slope_per_s"),
    }


def test_a_null_cached_tokens_makes_what_needs_it_undefined() -> None:
    row = _ok_turn("a", 2, 10.0, 5.0) | {"cached_tokens": None}
    tables: Tables = {"turns": [row], "sessions": [], "gate": [], "engine": []}
    computed = _readings(frames_of(tables), 0.0, 100.0, 1)
    for name in ("hits", "followup_hit_fraction", "reuse_fraction", "max_hit_300s"):
        assert math.isnan(computed[name])
    assert math.isnan(computed["uncached_prefill_tokens_per_s"])
    assert math.isnan(computed["turnover_s"])
    assert computed["followups_finished"] == 1.0
    assert computed["outstanding"] == 0.05


def test_bins_of_max_hit_are_half_open_and_the_last_one_is_cut() -> None:
    ends = {399.75: 0, 400.0: 2000, 699.75: 2000, 700.0: 0, 749.75: 2000, 750.0: 2000}
    rows = [_ok_turn("a", 2, 0.0, end) | {"cached_tokens": n} for end, n in ends.items()]
    rows = [row | {"reusable_tokens": 2000} for row in rows]
    tables: Tables = {"turns": rows, "sessions": [], "gate": [], "engine": []}
    assert _readings(frames_of(tables), 100.0, 750.0, 1)["max_hit_300s"] == 1.0
    tables["turns"] = rows[:1] + rows[3:]
    assert _readings(frames_of(tables), 100.0, 750.0, 1)["max_hit_300s"] == 0.5
    assert math.isnan(_readings(frames_of(tables), 0.0, 300.0, 1)["max_hit_300s"])


def test_an_ended_turn_without_its_end_makes_the_backlog_undefined() -> None:
    row = _ok_turn("a", 1, 10.0, 5.0) | {"done_s": None, "outcome": "error"}
    tables: Tables = {"turns": [row], "sessions": [], "gate": [], "engine": []}
    computed = _readings(frames_of(tables), 0.0, 100.0, 1)
    assert math.isnan(computed["backlog_slope_per_s"])
    assert math.isnan(computed["outstanding"])
    tables["turns"] = [row | {"outcome": OPEN}]
    computed = _readings(frames_of(tables), 0.0, 100.0, 1)
    assert computed["backlog_slope_per_s"] > 0
    assert computed["outstanding"] == 0.9


def test_model_f_slope_is_recovered_from_linear_sojourns() -> None:
    rows = [_ok_turn(f"s{i}", 1, 10.0 * i, 5.0 + 2.5 * i) for i in range(20)]
    tables: Tables = {"turns": rows, "sessions": [], "gate": [], "engine": []}
    computed = _readings(frames_of(tables), 0.0, 1000.0, 1)
    assert computed["sojourn_slope"] == pytest.approx(0.2, rel=1e-12)


@pytest.mark.parametrize("bounds", [(5.0, 1.0), (0.0, math.inf), (math.nan, 1.0)])
def test_a_window_without_ordered_finite_bounds_is_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="finite bounds"):
        _readings(_no_records(), *bounds, 1)


def test_a_block_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="cache_block_tokens"):
        _readings(_no_records(), 0.0, 1.0, 0)


def test_nearest_rank_and_slope_by_hand() -> None:
    assert nearest_ranks(np.array([15.0, 20.0, 35.0, 40.0, 50.0]), (5, 30, 50, 100)) == (*(15.0, 20.0, 35.0, 50.0),)
    assert slope(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0])) == 2.0
    assert math.isnan(slope(np.array([0.1] * 3), np.array([1.0, 2.0, 3.0])))


def test_idle_time_after_a_lost_turn_is_undefined() -> None:
    rows = [_ok_turn("a", 1, 10.0, 5.0), _ok_turn("a", 3, 40.0, 5.0)]
    tables: Tables = {"turns": rows, "sessions": [], "gate": [], "engine": []}
    assert math.isnan(_readings(frames_of(tables), 0.0, 100.0, 1)["idle_s"])
    tables["turns"] = [*rows, _ok_turn("a", 2, 20.0, 6.0)]
    assert _readings(frames_of(tables), 0.0, 100.0, 1)["idle_s"] == (5.0 + 14.0) / 2


def _ok_turn(session: str, turn: int, submit_s: float, sojourn_s: float) -> dict[str, Any]:
    template = dict(golden_document()["records"]["turns"][0])
    early = dict.fromkeys(("planned_s", "ready_s", "admitted_s", "submit_s"), submit_s)
    late = {"start_s": submit_s, "first_token_s": submit_s, "done_s": submit_s + sojourn_s}
    return template | early | late | {"session": session, "turn": turn}


def _no_records() -> RunFrames:
    return frames_of({"turns": [], "sessions": [], "gate": [], "engine": []})


def test_an_empty_window_has_counts_of_nothing_and_no_means() -> None:
    document = golden_document()
    frames = frames_of(document["records"])
    readings = compute_readings(frames, Window("empty", 700.0, 700.0), pool_tokens=300_000, cache_block_tokens=1)
    assert {readings[name] for name in ("followups_finished", "hits", "idle_from_first_token")} == {0.0}
    assert {name for name in ("refused", "paused", "relapses") if math.isnan(readings[name])} == set()
    for name in ("followup_hit_fraction", "max_hit_300s", "outstanding", "completions_per_s", "backlog_slope_per_s"):
        assert math.isnan(readings[name]), name
