"""Every trap of YAML is read in one way, or refused with its file and line."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from registry.errors import CapExceeded, DraftError, TrapError
from registry.strict_yaml import MAX_BYTES, MAX_DEPTH, MAX_NODES, dotted, load

E2 = (Path(__file__).parents[2] / "rules" / "e2.yaml").read_bytes()
HIDDEN = "\x7f\x85\u061c\u200e\u200f\ufeff" + "".join(map(chr, (*range(0x80, 0xA0), *range(0x2028, 0x202F))))
HIDDEN += "".join(map(chr, range(0x2066, 0x206A)))

texts = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters=HIDDEN), max_size=12)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(allow_nan=False, allow_infinity=False), texts
)
values = st.recursive(
    scalars, lambda v: st.one_of(st.lists(v, max_size=4), st.dictionaries(texts, v, max_size=4)), max_leaves=12
)


class _NoAliases(yaml.SafeDumper):
    """PyYAML alone leaves the texts `N`, `1e3` and `012e3` unquoted."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_NoAliases.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def value_of(text: str | bytes) -> Any:
    return load(text if isinstance(text, bytes) else text.encode(), "rules/x.yaml").value


def refusal(text: str | bytes) -> TrapError:
    with pytest.raises(TrapError) as caught:
        value_of(text)
    return caught.value


def same(left: Any, right: Any) -> bool:
    """Equal, and of the same kinds: 1 is not true, 1 is not 1.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


@given(values)
@settings(max_examples=150, deadline=None)
def test_what_pyyaml_writes_is_read_back(value: Any) -> None:
    text = yaml.dump(value, Dumper=_NoAliases, allow_unicode=True, sort_keys=False)
    assert same(value_of(text), value)


@given(values)
@settings(max_examples=150, deadline=None)
def test_json_is_read_as_json(value: Any) -> None:
    assert same(value_of(json.dumps(value, ensure_ascii=False)), value)


@given(st.one_of(st.text(), st.text("-:?,[]{}#&*!|>'\"%@` \n\tab10._\\"), st.binary()))
@settings(max_examples=400, deadline=None)
@example('"\\U00110000"')
@example("a: " + "1" * 5000)
@example("%YAML 1." + "1" * 5000 + "\n---\na: 1")
def test_arbitrary_input_gives_a_value_or_a_refusal_with_its_place(text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    try:
        value_of(data)
    except TrapError as error:
        assert re.match(r"rules/x\.yaml, line [0-9]+", error.where or "")
        error.diagnostics().encode()


@given(
    st.integers(0, len(E2) - 1), st.integers(0, 40), st.one_of(st.binary(max_size=3), st.sampled_from([b": ", b"&"]))
)
@settings(max_examples=60, deadline=None)
def test_a_random_edit_of_a_rule_file_gives_a_value_or_a_refusal(start: int, length: int, put: bytes) -> None:
    try:
        value_of(E2[:start] + put + E2[start + length :])
    except TrapError as error:
        assert (error.where or "").startswith("rules/x.yaml, line ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e3", 1000.0),
        ("1E3", 1000.0),
        ("-1.5e-3", -0.0015),
        ("1.", 1.0),
        (".5", 0.5),
        ("+3", 3),
        ("-0", 0),
        ("8700", 8700),
        ("8700.0", 8700.0),
        ("true", True),
        ("null", None),
        ("", None),
        ("nan", "nan"),
        ("Infinity", "Infinity"),
        ("1.2.3", "1.2.3"),
        ("trapped", "trapped"),
        ("'on'", "on"),
        ('"010"', "010"),
        ("'12:30:45'", "12:30:45"),
    ],
)
def test_a_plain_value_is_read_as_yaml_1_2_reads_it(text: str, expected: object) -> None:
    assert same(value_of(f"a: {text}\n"), {"a": expected})


AMBIGUOUS = [
    "on", "off", "yes", "no", "On", "OFF", "Yes", "NO", "y", "n",
    "True", "FALSE", "~", "Null", "NULL", "010", "08", "-017", "010.5", "012e3",
    "0x1F", "0o17", "0b11", "1_000", "1_0.0e+5", "1.0_0", ".5_0", "12:30:45", "190:20:30.5", "1:30",
    "1_2:30", "2026-01-01", "2026-01-01T00:00:00Z", ".nan", ".NaN", ".inf", "-.INF", "+.inf", "<<", "=",
]  # fmt: skip


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_a_value_that_yaml_versions_read_differently_is_refused(text: str) -> None:
    for written in (f"b: 1\na: {text}\n", f"b: 1\n{text}: 1\n", f"b: 1\na: [1, {text}]\n"):
        error = refusal(written)
        assert "ambiguous" in error.what and error.where == "rules/x.yaml, line 2"
        assert error.value == text and f"quote it: '{text}'" in str(error.remedy)


@given(st.text("0123456789_.:+-eExobnaifINF~yYTtruefalsOoN", min_size=1, max_size=8))
@settings(max_examples=500, deadline=None)
def test_what_is_read_as_text_is_text_in_yaml_1_1_too(text: str) -> None:
    try:
        value = value_of(f"a: {text}")
    except TrapError:
        return
    if isinstance(value, dict) and isinstance(value["a"], str):
        assert yaml.safe_load(f"a: {text}") == value


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ("a: 1\na: 2\n", "the key stands twice", 2),
        ("x:\n  z: {b: 1,\n   b: 1}\n", "the key stands twice", 3),
        ("a: 1\n'a': 2\n", "the key stands twice", 2),
        ("a: &x 1\n", "anchors and aliases", 1),
        ("b: 1\n&x a: 1\n", "anchors", 2),
        ("a: &x [1]\nb: *x\n", "anchors and aliases", 1),
        ("a: 1\nb: *x\n", "anchors and aliases", 2),
        ("*x : 1\n", "a key must be plain text", 1),
        ("a:\n  <<: {b: 1}\n", "merge keys", 2),
        ("a: !!str 1\n", "tags are not allowed", 1),
        ("a: !!python/object/apply:os.system [x]\n", "tags are not allowed", 1),
        ("a: ! 1\n", "tags are not allowed", 1),
        ("!!str a: 1\n", "anchors and tags", 1),
        ("a: 1\n---\nb: 1\n", "a second document", 2),
        ("a: 1\n...\n---\nb: 1\n", "a second document", 3),
        ("? [a]\n: 1\n", "a key must be plain text", 1),
        ("? {a: 1}\n: 1\n", "a key must be plain text", 1),
        ("b: 1\n1: a\n", "a key must be text", 2),
        ("1.5: a\n", "a key must be text", 1),
        ("true: a\n", "a key must be text", 1),
        ("null: a\n", "a key must be text", 1),
        ("", "the file is empty", 1),
        ("# only a comment\n", "the file is empty", 1),
        (b"a: 1\nb: \xff\n", "not UTF-8", 2),
        ("a: 1".encode("utf-16"), "not UTF-8", 1),
        ("a: b\n\tc: d\n", "not YAML", 2),
        ("a:\t1\n", "not YAML", 1),
        ("a:\n\t- 1\n", "not YAML", 2),
        ("a: x\ty\n", "not YAML", 1),
        ("a: 1\nb: \x07\n", "control characters", 2),
        ("a: 1\nb: \x1b[31m\n", "control characters", 2),
        ('a: "\\e[31m"\n', "control or direction characters", 1),
        ('a: "x\\ry"\n', "control or direction characters", 1),
        ("a: 1\nb: \u202ex\n", "control or direction characters", 2),
        ("a: x\u2066y\n", "control or direction characters", 1),
        ("a: x\u200fy\n", "control or direction characters", 1),
        ("a: x\u061cy\n", "control or direction characters", 1),
        ("a: x\ufeffy\n", "control or direction characters", 1),
        ('"\u202ea": 1\n', "control or direction characters", 1),
        ('a: "\\ud800"\n', "control or direction characters", 1),
        ('a: 1\nb: "\\U00110000"\n', "out of range", 2),
        ("a: 1\nb: " + "9" * 5000, "out of range", 2),
        ("a: 1e400\n", "too large", 1),
        ("a: [1\n", "not YAML", 2),
        ("a: 'x\n", "not YAML", 2),
        ("%YAML 2.0\n---\na: 1\n", "not YAML", 1),
    ],
)
def test_a_trap_is_refused_with_its_file_and_line(text: str | bytes, words: str, line: int) -> None:
    error = refusal(text)
    assert isinstance(error, DraftError)
    assert words in error.what
    assert re.fullmatch(rf"rules/x\.yaml, line {line}(, byte [0-9]+)?", str(error.where))


def test_a_tab_inside_quotes_and_tabs_in_comments_are_text() -> None:
    assert value_of("a: 'x\ty' #\tz\n") == {"a": "x\ty"}


def test_a_byte_order_mark_at_the_start_changes_nothing() -> None:
    assert value_of(b"\xef\xbb\xbf" + E2) == value_of(E2)


def test_crlf_line_ends_give_the_same_values() -> None:
    crlf = E2.replace(b"\n", b"\r\n")
    assert value_of(crlf) == value_of(E2)
    assert load(crlf, "x").lines == load(E2, "x").lines
    assert value_of("a: |\r\n  x\r\n  y\r\n") == {"a": "x\ny\n"}


def test_comments_and_the_order_of_keys_do_not_matter() -> None:
    assert value_of("# c\na: 1 # d\nb: 2\n") == value_of("b: 2\na: 1\n")


def test_a_file_over_the_size_cap_is_refused() -> None:
    assert value_of(b"a: 1 #" + b"x" * (MAX_BYTES - 6)) == {"a": 1}
    error = refusal(b"a: 1 #" + b"x" * (MAX_BYTES - 5))
    assert isinstance(error, CapExceeded) and error.where == "rules/x.yaml"


@pytest.mark.parametrize("open_", ["[", "- ", "{a: "])
def test_nesting_over_the_depth_cap_is_refused(open_: str) -> None:
    close = {"[": "]", "- ": "1", "{a: ": "}"}[open_]
    ends = 1 if close == "1" else MAX_DEPTH
    value_of(open_ * MAX_DEPTH + close * ends)
    error = refusal(open_ * 60_000)
    assert isinstance(error, CapExceeded) and error.where == "rules/x.yaml, line 1"


def test_more_values_than_the_node_cap_are_refused() -> None:
    assert len(value_of("[" + "1," * (MAX_NODES - 1) + "]")) == MAX_NODES - 1
    assert isinstance(refusal("[" + "1," * MAX_NODES + "]"), CapExceeded)


def test_a_document_knows_the_line_of_every_field() -> None:
    document = load(b"a: 1\nb:\n  - x\n  - {c: 2}\n", "f")
    assert document.where(("b", 1, "c")) == "f, line 4, field b[1].c"
    assert document.where(("b", 1, "missing")) == "f, line 4, field b[1].missing"
    assert document.where(()) == "f, line 1"
    assert dotted(("design", "rates", 0)) == "design.rates[0]"


def test_no_value_is_ever_infinite_or_not_a_number() -> None:
    assert math.isfinite(value_of("a: 1.7976931348623157e308\n")["a"])
    refusal("a: 1.8e308\n")
