"""Axes as typed: what is accepted, and every way to be wrong."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.workflows.sweep_axes import AXES, MOST_VALUES, shown, values_of
from registry.design import EVICTIONS, ORDERS
from registry.errors import StudyError
from runners.simulated import setup

ROOT = Path(__file__).parents[2]


@given(first=st.integers(1, 10_000), step=st.integers(1, 500), count=st.integers(1, 200), short=st.booleans())
def test_a_range_is_its_decimals_both_ends_included(first: int, step: int, count: int, short: bool) -> None:
    last = Decimal(first + step * (count - 1)) / 1000
    # An end between two steps is not reached.
    end = last if short else last + Decimal(step) / 2000
    text = f"{Decimal(first) / 1000:f}:{end:f}:{Decimal(step) / 1000:f}"
    assert values_of(AXES["rate"], text) == tuple(float(Decimal(first + step * k) / 1000) for k in range(count))


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=50, unique=True))
def test_values_keep_the_order_in_which_they_are_typed(values: list[int]) -> None:
    assert values_of(AXES["burst_sessions"], ",".join(map(str, values))) == tuple(values)


@given(st.lists(st.floats(0.001, 1000).map(lambda x: round(x, 6)), min_size=1, max_size=20, unique=True))
def test_what_is_shown_can_be_typed_again(rates: list[float]) -> None:
    assert values_of(AXES["rate"], ",".join(map(shown, rates))) == tuple(rates)


def test_steps_add_no_error() -> None:
    assert values_of(AXES["rate"], "1.0:2.0:0.1") == (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0)


def test_every_kind_of_value() -> None:
    assert values_of(AXES["pool_tokens"], "150k, 0.3M,123456") == (150_000, 300_000, 123_456)
    assert values_of(AXES["cap"], "none,20,30:50:10") == (None, 20, 30, 40, 50)
    assert values_of(AXES["seed"], "7:7,0:2") == (7, 0, 1, 2)
    assert values_of(AXES["order"], "least-attained-service,fcfs") == ("least-attained-service", "fcfs")


@pytest.mark.parametrize(
    ("axis", "text", "word"),
    [
        ("rate", "", "not a number"),
        ("rate", "1.0,", "not a number"),
        ("rate", "fast", "not a number"),
        ("rate", "-1", "not a number"),
        ("rate", "nan", "not a number"),
        ("rate", "inf", "not a number"),
        ("rate", "1e3", "not a number"),
        ("rate", "1_0", "not a number"),
        ("rate", "\u0661", "not a number"),
        ("rate", "1:2:3:4", "not a number"),
        ("rate", "1::2", "not a number"),
        ("rate", "none", "not a number"),
        ("rate", "0", "out of bounds"),
        ("rate", "1000.5", "out of bounds"),
        ("rate", "2:1", "never gets"),
        ("rate", "1:2:0", "never gets"),
        ("rate", "1,1.0", "twice"),
        ("rate", "1.0:1.2:0.1,1.1", "twice"),
        ("cap", "0", "out of bounds"),
        ("cap", "none,none", "twice"),
        ("burst_sessions", "1.5", "out of bounds"),
        ("burst_sessions", "100001", "out of bounds"),
        ("pool_tokens", "0k", "out of bounds"),
        ("pool_tokens", "1.0001k", "out of bounds"),
        ("order", "lifo", "no such value"),
        ("eviction", "fcfs", "no such value"),
        ("seed", "9007199254740992", "out of bounds"),
        ("seed", "40", "seed or a count"),
    ],
)
def test_what_is_no_value_is_refused_in_words(axis: str, text: str, word: str) -> None:
    with pytest.raises(StudyError, match=word) as caught:
        values_of(AXES[axis], text)
    assert AXES[axis].option in caught.value.diagnostics()
    assert caught.value.remedy


@pytest.mark.parametrize(
    "text", ["0:999999999999", "0:100000:0.000000001", "0:60000,60001:120000", "1," * 600_000], ids=len
)
def test_too_much_is_refused_before_it_is_made(text: str) -> None:
    with pytest.raises(StudyError, match=r"too (many|long)"):
        values_of(AXES["seed"], text)
    assert len(values_of(AXES["seed"], f"1:{MOST_VALUES}")) == MOST_VALUES


def test_the_words_are_those_of_rule_files_and_of_the_simulator() -> None:
    schema = json.loads((ROOT / "registry" / "schema" / "draft.schema.json").read_text())
    arm = schema["properties"]["design"]["properties"]["arms"]["additionalProperties"]["properties"]
    assert arm["engine"]["properties"]["order"]["enum"] == list(ORDERS) == list(setup._ORDERS)
    assert arm["engine"]["properties"]["eviction"]["enum"] == list(EVICTIONS) == list(setup._EVICTIONS)
