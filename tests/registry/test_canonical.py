"""RFC 8785 bytes, and a JSON reader that refuses what they cannot carry."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.canonical import MAX_JSON_BYTES, canonical_bytes, digest, load_json, sha256_hex
from registry.errors import CapExceeded, DraftError, TrapError

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53) + 1, 2**53 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        texts,
    ),
    lambda v: st.one_of(st.lists(v, max_size=4), st.dictionaries(texts, v, max_size=4)),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (10.0, "10"),
        (0.0, "0"),
        (-0.0, "0"),
        (1e-7, "1e-7"),
        (0.000001, "0.000001"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (1e23, "1e+23"),
        (5e-324, "5e-324"),
        (-5e-324, "-5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (9007199254740992.0, "9007199254740992"),
        (295147905179352830000.0, "295147905179352830000"),
        (9.999999999999997e22, "9.999999999999997e+22"),
        (999999999999999700000.0, "999999999999999700000"),
        (333333333.3333332, "333333333.3333332"),
        (0.0000033333333333333333, "0.0000033333333333333333"),
        (1424953923781206.2, "1424953923781206.2"),
        (4.35, "4.35"),
        (2**53 - 1, "9007199254740991"),
        (-(2**53) + 1, "-9007199254740991"),
    ],
)
def test_a_number_is_written_as_rfc_8785_writes_it(number: float, written: str) -> None:
    assert canonical_bytes(number).decode() == written


@pytest.mark.parametrize(
    "value",
    [2**53, -(2**53), 10**400, float("nan"), float("inf"), -float("inf"), {1: 2}, {None: 1}, b"x", {1}, "\ud800"],
)
def test_what_has_no_canonical_form_is_refused(value: Any) -> None:
    for wrapped in (value, [value], {"a": value}):
        with pytest.raises(DraftError, match="no canonical form"):
            canonical_bytes(wrapped)


def test_half_a_surrogate_pair_as_a_key_is_refused() -> None:
    with pytest.raises(DraftError, match="no canonical form"):
        canonical_bytes({"\ud800": 1, "a": 2})


def test_keys_are_sorted_by_utf_16_code_units() -> None:
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    written = load_json(canonical_bytes(dict.fromkeys(keys, 0)), "x")
    assert list(written) == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


def test_text_is_escaped_no_more_than_rfc_8785_says() -> None:
    assert canonical_bytes('\u20ac$\x0f\nA\'B"\\\\"/\x7f').decode() == '"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/\x7f"'


def test_the_digest_is_the_sha_256_of_the_canonical_bytes() -> None:
    assert digest({"b": 1.0, "a": []}) == sha256_hex(b'{"a":[],"b":1}')
    assert sha256_hex(b"x") == hashlib.sha256(b"x").hexdigest()


@given(values)
@settings(max_examples=200, deadline=None)
def test_canonical_bytes_are_read_back_to_the_same_bytes(value: Any) -> None:
    data = canonical_bytes(value)
    assert canonical_bytes(load_json(data, "x")) == data


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=200, deadline=None)
def test_a_double_survives_its_canonical_form(number: float) -> None:
    assert load_json(canonical_bytes(number), "x") == number


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"a":1,"a":1}', "a key stands twice"),
        (b'[{"x":{"a":1,"a":2}}]', "a key stands twice"),
        (b'{"a":1,"\\u0061":2}', "a key stands twice"),
        (b"[NaN]", "NaN is not JSON"),
        (b"Infinity", "Infinity is not JSON"),
        (b"-Infinity", "-Infinity is not JSON"),
        (b"[1e400]", "1e400 is too large"),
        (b"1" * 400, "too large"),
        (b"1" * 5000, "not strict JSON"),
        (b'"\\ud800"', "not strict JSON"),
        (b'"\xed\xa0\x80"', "not strict JSON"),
        (b'"\xff"', "not strict JSON"),
        (b"\xef\xbb\xbf{}", "BOM"),
        ('{"a":1}'.encode("utf-16"), "not strict JSON"),
        (b"", "not strict JSON"),
        (b"[1] x", "Extra data"),
        (b"[01]", "not strict JSON"),
        (b"{'a': 1}", "not strict JSON"),
        (b"[1,]", "not strict JSON"),
        (b'"a\nb"', "not strict JSON"),
    ],
)
def test_json_that_is_not_strict_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(DraftError, match=words) as caught:
        load_json(data, "a.json")
    assert caught.value.where == "a.json"


@pytest.mark.parametrize("depth", [66, 5000, 200_000])
def test_json_over_the_depth_cap_is_refused(depth: int) -> None:
    with pytest.raises(CapExceeded, match="deeply nested"):
        load_json(b"[" * depth + b"]" * depth, "x")
    load_json(b"[" * 60 + b"]" * 60, "x")


def test_json_over_the_size_cap_is_refused() -> None:
    with pytest.raises(CapExceeded, match="too large"):
        load_json(b'"' + b"x" * MAX_JSON_BYTES + b'"', "x")


def test_an_integer_from_2_to_the_53_is_read_as_the_double_it_stands_for() -> None:
    assert load_json(b"9007199254740991", "x") == 2**53 - 1
    assert isinstance(load_json(b"9007199254740991", "x"), int)
    assert isinstance(load_json(b"9007199254740992", "x"), float)
    assert canonical_bytes(load_json(b"9007199254740993", "x")) != b"9007199254740993"


@given(st.binary(max_size=30))
@settings(max_examples=200, deadline=None)
def test_arbitrary_bytes_give_a_value_or_a_refusal(data: bytes) -> None:
    with suppress(TrapError):
        load_json(data, "x")
