"""Rules in plain words, and as trees: nothing of a rule is lost on the way."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.draft import load_draft
from registry.errors import RuleError
from registry.reading_catalogue import READING_KINDS
from registry.rule_text import compute
from registry.rule_tree import COMPARISONS, Node, tree
from registry.rule_words import plain_words, reading_words
from tests.made_traces import made_scripts

READINGS = ("hits", "refused", "idle_s", "backlog_slope_per_s")
NAMES = st.one_of(
    st.builds("run.{}.{}".format, st.sampled_from(("judged", "late")), st.sampled_from(READINGS)),
    st.builds("BURST.judged.{}".format, st.sampled_from(READINGS)),
    st.sampled_from(("predicted.drain", "lambda_per_s", "lambda_ref_per_s", "pool_tokens")),
).map(lambda text: Node("name", text))
NUMBERS = st.sampled_from(("0.15", "0.5", "2.0", "13.0", "1e3")).map(lambda text: Node("number", text))


def between(signs: tuple[str, ...], parts: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.builds(lambda sign, *two: Node("between", sign, two), st.sampled_from(signs), parts, parts)


def call(names: tuple[str, ...], count: int, parts: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.builds(lambda name, *some: Node("call", name, some), st.sampled_from(names), *[parts] * count)


VALUES = st.recursive(
    NAMES | NUMBERS,
    lambda inner: (
        between(("+", "-", "*"), inner)
        | call(("abs",), 1, inner)
        | call(("min", "max"), 2, inner)
        | inner.map(lambda part: Node("before", "-", (part,)))
    ),
    max_leaves=5,
)
RULES = st.recursive(
    between(COMPARISONS, VALUES),
    lambda inner: between(("&&", "||"), inner) | inner.map(lambda part: Node("before", "!", (part,))),
    max_leaves=5,
)


@given(RULES)
def test_a_tree_is_read_back_from_its_text(rule: Node) -> None:
    assert tree(str(rule)) == rule


@given(RULES, RULES)
def test_different_rules_have_different_words(one: Node, other: Node) -> None:
    assert (plain_words(str(one)) == plain_words(str(other))) is (one == other)


@given(RULES)
def test_words_hold_every_name_and_no_sign_of_the_language(rule: Node) -> None:
    words = plain_words(str(rule))
    assert not re.search(r"[&|<>=!*+]|abs|run\.", words)
    for name in re.findall(r"run\.(\w+)\.(\w+)", str(rule)):
        assert f"the {reading_words(name[1])} in the window {name[0]}" in words


@given(VALUES)
def test_brackets_are_kept_where_the_value_needs_them(value: Node) -> None:
    names = set(re.findall(r"[A-Za-z_]+(?:\.[A-Za-z_]+)*(?![A-Za-z_.(]|\()", str(value)))
    values = {name: 1.5 + 0.25 * place for place, name in enumerate(sorted(names - {"e"}))}
    assert compute(str(value), values, "test") == pytest.approx(_slow(value, values))


def _slow(node: Node, values: dict[str, float]) -> float:
    """The value by the tree itself."""
    if not node.parts:
        return values[node.text] if node.kind == "name" else float(node.text)
    parts = [_slow(part, values) for part in node.parts]
    if node.kind == "before":
        return -parts[0]
    if node.kind == "call":
        return {"abs": abs, "min": min, "max": max}[node.text](*parts)
    left, right = parts
    return {"+": left + right, "-": left - right, "*": left * right}[node.text]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("count(BURST.trapped) >= 2", "at least 2 BURST runs are “trapped”"),
        ("all(NOBURST.good) && any(CUT.stuck)", "every NOBURST run is “good”, and some CUT run is “stuck”"),
        ("!any(A.b)", "it is not so that some A run is “b”"),
        (
            "run.judged.followup_hit_fraction >= 0.9",
            "the follow-up hit fraction in the window judged is at least 0.9",
        ),
        ("abs(run.w.hits - cap) <= 0.15 * cap", "the hits in the window w differs from the cap of the arm's gate by "
         "at most 15%"),
        ("run.w.idle_s > 0.5 * (lambda_per_s - lambda_ref_per_s)",
         "the idle in seconds in the window w is above 0.5 times (lambda minus lambda_ref)"),
        ("A.w.ttft_s_p99 < 1.0", "the ttft in seconds (percentile 99) of the A run of the same rate and seed in the "
         "window w is below 1.0"),
    ],
)  # fmt: skip
def test_words_as_people_read_them(text: str, words: str) -> None:
    assert plain_words(text) == words


@pytest.mark.parametrize("text", ["", "a <", "a b", "(a", "abs(a", "a < b < c", "a ? b"])
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(RuleError):
        plain_words(text)


def test_every_shipped_rule_has_words() -> None:
    seen = 0
    for file in sorted(Path(str(resources.files("rules"))).glob("*.yaml")):
        rule = load_draft(file.read_bytes(), file.name, scripts_for=made_scripts).rule
        for one in (*rule.runs, *rule.reported, rule.rate):
            assert plain_words(one.text)
            assert tree(str(tree(one.text))) == tree(one.text)
            seen += 1
    assert seen > 60


def test_readings_have_words_of_their_own() -> None:
    assert len({reading_words(name) for name in READING_KINDS}) == len(READING_KINDS)
