"""The rule language: what it says, what it refuses, what it leaves undecided."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import cel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.design import Arm, GateSetting
from registry.errors import RuleError
from registry.rule import RateRule, RunRule, compile_rate_rule, compile_run_rule, decide_rate, decide_run
from registry.rule_constancy import check_run_rule
from registry.rule_text import RUN_FUNCTIONS, names_of, tokenise

HIT = "run.judged.followup_hit_fraction"
REUSE = "run.judged.reuse_fraction"
SLOPE = "run.judged.backlog_slope_per_s"
PREFILL = "run.judged.uncached_prefill_tokens_per_s"
REFERENCE = {
    "lambda_ref_per_s": 0.072,
    "lambda_per_s": 0.0972,
    "all_miss_prefill_tokens_per_s": 11126.0,
    "pool_tokens": 300_000.0,
    "cap": 20.0,
}
OPEN = Arm("BURST")
CAPPED = Arm("CAPPED", gate=GateSetting(20, 0, None))
CLOSED = Arm("ALLMISS", population=32)
WHERE = "e2.yaml, line 40, field rule.runs.BURST.trapped"


def long(text: str) -> str:
    """HIT and the like written out."""
    for short, name in (("HIT", HIT), ("REUSE", REUSE), ("SLOPE", SLOPE), ("PREFILL", PREFILL)):
        text = text.replace(short, name)
    return text


def compiled(text: str, arm: Arm = OPEN) -> RunRule:
    return compile_run_rule(arm.name, "verdict", long(text), {"judged", "after_burst"}, arm, WHERE)


def run_refusal(text: str, arm: Arm = OPEN) -> RuleError:
    with pytest.raises(RuleError) as caught:
        check_run_rule(compiled(text, arm), REFERENCE)
    assert caught.value.where == WHERE
    return caught.value


def readings(**values: float) -> dict[str, dict[str, float]]:
    names = {"HIT": HIT, "REUSE": REUSE, "SLOPE": SLOPE, "PREFILL": PREFILL}
    return {"judged": {names[key].rsplit(".", 1)[1]: value for key, value in values.items()}}


def rate_rule(text: str, seeds: int = 3) -> RateRule:
    return compile_rate_rule(text, {"BURST.trapped", "NOBURST.good", "CAPPED.recovered"}, seeds, "rate")


def rate_refusal(text: str, seeds: int = 3) -> RuleError:
    with pytest.raises(RuleError) as caught:
        rate_rule(text, seeds)
    assert caught.value.where == "rate"
    return caught.value


# --- golden vectors ----------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("HIT >= 0.9", {"HIT": 0.9}, True),
        ("HIT >= 0.9", {"HIT": 0.8999999999999999}, False),
        ("HIT > 0.9", {"HIT": 0.9}, False),
        ("HIT <= 0.9", {"HIT": 0.9}, True),
        ("HIT == 0.0", {"HIT": 0.0}, True),
        ("HIT == 0.0", {"HIT": -0.0}, True),
        ("HIT == 0.0", {"HIT": 5e-324}, False),
        ("HIT != 0.0", {"HIT": 0.5}, True),
        ("0.1 + 0.2 == HIT", {"HIT": 0.3}, False),
        ("0.1 + 0.2 == HIT", {"HIT": 0.30000000000000004}, True),
        ("HIT - REUSE - 0.25 > 0.0", {"HIT": 1.0, "REUSE": 0.5}, True),
        ("HIT - (REUSE - 0.25) > 0.5", {"HIT": 0.5, "REUSE": 0.5}, False),
        ("HIT + REUSE * 2.0 > 1.9", {"HIT": 0.0, "REUSE": 1.0}, True),
        ("-SLOPE > 0.5", {"SLOPE": -1.0}, True),
        ("- -SLOPE > 0.5", {"SLOPE": -1.0}, False),
        ("abs(SLOPE) < 0.25 * (lambda_per_s - lambda_ref_per_s)", {"SLOPE": -0.0062}, True),
        ("abs(SLOPE) < 0.25 * (lambda_per_s - lambda_ref_per_s)", {"SLOPE": 0.0064}, False),
        ("min(HIT, REUSE) >= 0.5", {"HIT": 0.4, "REUSE": 0.9}, False),
        ("max(HIT, REUSE) >= 0.5", {"HIT": 0.4, "REUSE": 0.9}, True),
        ("max(HIT, max(REUSE, 0.5)) == 0.5", {"HIT": 0.4, "REUSE": 0.1}, True),
        ("!(HIT > 0.5)", {"HIT": 0.4}, True),
        ("!(HIT > 0.5) && !(REUSE > 0.5)", {"HIT": 0.4, "REUSE": 0.6}, False),
        ("HIT > 0.5 || REUSE > 0.5 && HIT > 2.0", {"HIT": 0.6, "REUSE": 0.0}, True),
        ("(HIT > 0.5 || REUSE > 0.5) && HIT > 2.0", {"HIT": 0.6, "REUSE": 0.0}, False),
        ("(HIT > 0.5) == (REUSE > 0.5)", {"HIT": 0.1, "REUSE": 0.2}, True),
        ("(HIT > 0.5) != (REUSE > 0.5)", {"HIT": 0.1, "REUSE": 0.2}, False),
        ("PREFILL > 0.85 * all_miss_prefill_tokens_per_s", {"PREFILL": 10_000.0}, True),
        ("PREFILL < 1e4", {"PREFILL": 9999.0}, True),
        ("PREFILL < 1.5e+1", {"PREFILL": 16.0}, False),
        ("HIT\n  >=\t0.9", {"HIT": 1.0}, True),
        ("HIT >= 0.9 && pool_tokens > 1.0", {"HIT": 1.0}, True),
    ],
)
def test_a_run_rule_says(text: str, values: dict[str, float], expected: bool) -> None:
    assert decide_run(compiled(text), readings(**values), REFERENCE).value is expected


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        (([True, True, False], [True] * 3, [True] * 3), True),
        (([True, False, False], [True] * 3, [True] * 3), False),
        (([True, True, True], [True, True, False], [True] * 3), False),
        (([True, True, True], [True] * 3, [False, True, True]), False),
        (([True, True], [True], [True]), True),
    ],
)
def test_the_rate_rule_of_the_paper_says(lists: tuple[list[bool], ...], expected: bool) -> None:
    rule = rate_rule("count(BURST.trapped) >= 2 && all(NOBURST.good) && all(CAPPED.recovered)")
    named = dict(zip(("BURST.trapped", "NOBURST.good", "CAPPED.recovered"), lists, strict=True))
    assert decide_rate(rule, named).value is expected


@pytest.mark.parametrize(
    ("text", "verdicts", "expected"),
    [
        ("any(BURST.trapped)", [False, True], True),
        ("any(BURST.trapped)", [False, False], False),
        ("!any(BURST.trapped)", [False, False], True),
        ("all(BURST.trapped)", [True, False], False),
        ("count(BURST.trapped) == 1", [True, False], True),
        ("2 * count(BURST.trapped) > 3", [True, True], True),
        ("2 * count(BURST.trapped) - 1 > 3", [True, True], False),
        ("any(BURST.trapped) != all(BURST.trapped)", [True, False], True),
    ],
)
def test_a_rate_rule_says(text: str, verdicts: list[bool], expected: bool) -> None:
    assert decide_rate(rate_rule(text), {"BURST.trapped": verdicts}).value is expected


# --- not decidable -----------------------------------------------------------


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("text", ["HIT >= 0.9 || REUSE > 0.5", "REUSE > 0.5 || HIT != 1.0", "HIT != 1.0"])
def test_a_reading_absent_or_not_finite_leaves_all_undecided(text: str, value: float | None) -> None:
    given_readings = readings(REUSE=1.0) if value is None else readings(REUSE=1.0, HIT=value)
    decision = decide_run(compiled(text), given_readings, REFERENCE)
    assert decision.value is None
    assert decision.reason == f"{HIT} is {'absent' if value is None else value}"


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_a_reference_absent_or_not_finite_leaves_all_undecided(value: float | None) -> None:
    reference = {**REFERENCE, "lambda_per_s": value}
    if value is None:
        del reference["lambda_per_s"]
    decision = decide_run(compiled("HIT > 0.1 || SLOPE > lambda_per_s"), readings(HIT=1.0, SLOPE=0.0), reference)  # type: ignore[arg-type]
    assert decision.value is None and decision.reason.startswith("lambda_per_s is ")


def test_a_window_without_readings_leaves_the_run_undecided() -> None:
    assert decide_run(compiled("HIT > 0.1"), {}, REFERENCE).value is None


def test_a_sum_that_leaves_the_numbers_is_undecided() -> None:
    rule = compiled("PREFILL * 1e308 * 1e308 - PREFILL * 1e308 * 1e308 < 1.0")
    assert decide_run(rule, readings(PREFILL=5.0), REFERENCE).value is None
    assert decide_run(rule, readings(PREFILL=0.0), REFERENCE).value is True


@pytest.mark.parametrize("verdicts", [{}, {"BURST.trapped": []}])
def test_a_rate_without_runs_is_undecided(verdicts: dict[str, list[bool]]) -> None:
    decision = decide_rate(rate_rule("all(BURST.trapped)"), verdicts)
    assert (decision.value, decision.reason) == (None, "BURST.trapped has no runs")


# --- outside the language ----------------------------------------------------


@pytest.mark.parametrize(
    ("text", "variables", "value"),
    [
        ("undefined || true", {}, True),
        ("x.all(i, i)", {"x": []}, True),
        ("x != 1.0", {"x": math.nan}, True),
        ("1.0/0.0 > 5.0", {}, True),
        ("3/2", {}, 1),
        ("1 == 1.0", {}, True),
        ("true == 1.0", {}, False),
    ],
)
def test_cel_alone_has_the_quirks_that_the_language_shuts_out(text: str, variables: dict[str, Any], value: Any) -> None:
    context = cel.Context()
    for name, variable in variables.items():
        context.add_variable(name, variable)
    assert cel.compile(text).execute(context) == value


@pytest.mark.parametrize(
    ("text", "words", "remedy"),
    [
        ("HIT > 0.5 || true", "not in the rule language", ""),
        ("undefined || HIT > 0.5", "unknown name in a rule", "run.<window>.<reading>"),
        ("HIT > 1.0/2.0", "leaves the rule language", "multiply by a decimal"),
        ("HIT > 3/2", "leaves the rule language", "3/2 is 1 in CEL"),
        ("HIT > 0.5 ? HIT > 0.6 : HIT > 0.1", "leaves the rule language", "no ternary"),
        ("has(run.judged)", "unknown function", "one of: abs, min, max"),
        ("HIT != null", "not in the rule language", ""),
        ("HIT in REUSE", "not in the rule language", ""),
        ('HIT > "0.5"', "leaves the rule language", "no text"),
        ("HIT > '0.5'", "leaves the rule language", "no text"),
        ("run['judged'] > 0.5", "leaves the rule language", "no lists"),
        ("HIT > [0.5][0]", "leaves the rule language", "no lists"),
        ("HIT > {1: 2}", "leaves the rule language", "no maps"),
        ("HIT % 2.0 > 0.5", "leaves the rule language", "no remainder"),
        ("HIT > 0.5 // x", "leaves the rule language", ""),
        ("HIT > 0.5; 1", "leaves the rule language", "allowed"),
        ("HIT = 0.5", "leaves the rule language", "allowed"),
        ("HIT & 1", "leaves the rule language", "allowed"),
        ("HIT > .5", "leaves the rule language", "allowed"),
        ("HIT > 0.5u", "unknown name in a rule", ""),
        ("HIT > 0x1F", "unknown name in a rule", ""),
        ("HIT > 1e999", "does not parse", ""),
        ("HIT > 2", "a decimal > a whole number is no comparison", "compare like with like"),
        ("2 * HIT > 0.5", "a whole number * a decimal has no value", "write 2.0 * x, not 2 * x"),
        ("HIT > 0.5 - 1", "has no value", "write 2.0 * x"),
        ("HIT == 0", "is no comparison", "compare like with like"),
        ("HIT", "gives no true or false", "compare"),
        ("HIT + 1.0", "gives no true or false", "compare"),
        ("-(HIT > 0.5)", "- before true or false", ""),
        ("!HIT", "! before a decimal", ""),
        ("!HIT > 0.5", "! before a decimal", ""),
        ("HIT > 0.5 && REUSE", "&& joins what is not true or false", ""),
        ("HIT > 0.9 || (HIT > 0.5 && 1 > 0.0)", "is no comparison", ""),
        ("HIT < 0.5 || (HIT < 0.2 && !5.0)", "! before a decimal", ""),
        ("HIT < 0.5 || (HIT < 0.2 && abs(HIT, REUSE) > 1.0)", "abs takes 1", ""),
        ("0.1 < HIT < 0.5", "comparisons do not chain", "x > 0.1 && x < 0.5"),
        ("HIT == 0.0 == 0.0 || HIT > 0.5", "comparisons do not chain", ""),
        ("(HIT > 0.5) > (REUSE > 0.5)", "is no comparison", ""),
        ("(HIT > 0.5) + (REUSE > 0.5) > 1.0", "has no value", ""),
        ("min(HIT) > 0.5", "min takes 2", ""),
        ("HIT > 0.5 && abs() > 0.5", "abs of nothing", ""),
        ("min(HIT, 1) > 0.5", "min of a decimal, a whole number", ""),
        ("abs(HIT > 0.5)", "abs of true or false", ""),
        ("count(HIT) > 1", "unknown function", "one of: abs, min, max"),
        ("sum(HIT) > 1.0", "unknown function", ""),
        ("run.judged.abs(HIT) > 1.0", "unknown function", ""),
        ("HIT > 0.5 &&", "does not parse", ""),
        ("(HIT > 0.5", "does not parse", ""),
        ("HIT > 0.5)", "does not parse", ""),
        ("HIT HIT", "does not parse", ""),
        ("HIT > 0.5, HIT > 0.1", "does not parse", ""),
        ("> 0.5 && HIT > 0.1", "does not parse", ""),
        ("(" * 900 + "HIT > 0.5" + ")" * 900, "too deeply nested", ""),
        ("!" * 900 + "(HIT > 0.5)", "too deeply nested", ""),
        ("lambda_per_s > 0.05", "reads nothing of the run", "use a reading"),
        ("1.0 > 0.5", "reads nothing of the run", ""),
        ("run.judged > 0.5", "unknown name in a rule", ""),
        ("run > 0.5", "unknown name in a rule", ""),
        ("HIT.x > 0.5", "unknown name in a rule", ""),
        ("run.other.followup_hit_fraction > 0.5", "unknown window in a rule", "one of: after_burst, judged"),
        ("run.judged.hits_fraction > 0.5", "unknown reading in a rule", "one of: followup_hit_fraction"),
        ("HIT > 0.5 && run.id > 0.5", "unknown name in a rule", ""),
        ("HIT > 0.5 && seed > 0.5", "unknown name in a rule", ""),
        ("HIT > 0.5 && cap > 1.0", "unknown name in a rule", ""),
    ],
)
def test_what_leaves_the_run_language_is_refused(text: str, words: str, remedy: str) -> None:
    error = run_refusal(text)
    assert words in error.what
    assert remedy in str(error.remedy)


def test_a_capped_arm_may_name_its_cap_and_a_closed_one_only_the_pool() -> None:
    assert compiled("HIT > 0.5 && cap > 1.0", CAPPED).names == (HIT, "cap")
    assert compiled("PREFILL < pool_tokens", CLOSED).names == (PREFILL, "pool_tokens")
    assert "unknown name" in run_refusal("PREFILL < all_miss_prefill_tokens_per_s", CLOSED).what


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("BURST.trapped", "gives no true or false"),
        ("count(BURST.trapped)", "gives no true or false"),
        ("count(BURST.trapped) >= 1.5", "is no comparison"),
        ("BURST.trapped == NOBURST.good", "is no comparison"),
        ("all(BURST.trapped + NOBURST.good)", "has no value"),
        ("count(3) > 1", "count of a whole number"),
        ("count(all(BURST.trapped)) > 1", "count of true or false"),
        ("all(BURST.trapped, NOBURST.good)", "all takes 1"),
        ("any()", "any of nothing"),
        ("abs(count(BURST.trapped)) > 1", "unknown function"),
        ("size(BURST.trapped) > 1", "unknown function"),
        ("count(BURST.trapped) / 2 > 1", "leaves the rule language"),
        ("BURST.trapped[0]", "leaves the rule language"),
        ("BURST.trapped.all(x, x)", "unknown function"),
        ("count(OTHER.trapped) > 1", "unknown run verdict"),
        ("count(run.judged.hits) > 1", "unknown run verdict"),
        ("true", "not in the rule language"),
        ("count(BURST.trapped) * 9223372036854775807 > 1", "cannot be evaluated"),
        ("1 > 0", "constant: it is always true"),
        ("count(BURST.trapped) >= 0", "constant: it is always true"),
        ("count(BURST.trapped) >= 4", "constant: it is always false"),
        ("all(BURST.trapped) && !any(BURST.trapped)", "constant: it is always false"),
        ("all(BURST.trapped) || !all(BURST.trapped)", "constant: it is always true"),
        ("count(BURST.trapped) + count(NOBURST.good) > 6", "constant: it is always false"),
    ],
)
def test_what_leaves_the_rate_language_or_decides_nothing_is_refused(text: str, words: str) -> None:
    assert words in rate_refusal(text).what


@pytest.mark.parametrize("seeds", [1, 3, 100, 10_000])
@pytest.mark.parametrize(
    "text",
    [
        "any(BURST.trapped) || any(NOBURST.good) || any(CAPPED.recovered)",
        "all(BURST.trapped) && all(NOBURST.good) && all(CAPPED.recovered)",
        "count(BURST.trapped) - count(NOBURST.good) >= 1",
        "count(BURST.trapped) == 1",
    ],
)
def test_a_rate_rule_that_decides_is_accepted_for_any_number_of_seeds(text: str, seeds: int) -> None:
    assert rate_rule(text, seeds).text == text


def test_a_constant_rate_rule_is_refused_for_many_seeds_too() -> None:
    text = "count(BURST.trapped) >= 0 && count(NOBURST.good) >= 0 && count(CAPPED.recovered) >= 0"
    assert "always true" in rate_refusal(text, 1000).what


# --- constancy ---------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "HIT >= 0.0",
        "HIT <= 1.0",
        "HIT > -0.5",
        "HIT < 1.5 && REUSE < 1.5",
        "HIT >= 0.5 || HIT < 0.5",
        "HIT > 0.5 || !(HIT > 0.5)",
        "abs(SLOPE) >= 0.0",
        "max(HIT, REUSE) >= min(HIT, REUSE)",
        "PREFILL + all_miss_prefill_tokens_per_s > 0.0",
        "HIT - HIT == 0.0",
    ],
)
def test_a_rule_that_is_always_true_is_refused(text: str) -> None:
    assert run_refusal(text).what == "the rule is constant: it is always true"


@pytest.mark.parametrize(
    "text",
    [
        "HIT > 1.0",
        "HIT > 0.5 && HIT < 0.4",
        "HIT == 2.0",
        "HIT > 0.5 && !(HIT > 0.5)",
        "SLOPE * SLOPE < 0.0",
        "abs(SLOPE) < 0.0 - lambda_per_s",
        "min(HIT, REUSE) > max(HIT, REUSE)",
    ],
)
def test_a_rule_that_is_always_false_is_refused(text: str) -> None:
    assert run_refusal(text).what == "the rule is constant: it is always false"


@pytest.mark.parametrize(
    "text",
    [
        "HIT == 0.0",
        "HIT != 0.0",
        "HIT == 0.3",
        "0.3 == HIT",
        "HIT == 0.7 && REUSE == 0.1",
        "SLOPE == 0.0",
        "0.015 == abs(SLOPE)",
        "HIT > 0.0 && HIT < 1e-13",
        "HIT > 0.999999999999 && HIT < 1.0",
        "abs(SLOPE) < 1e-7",
        "SLOPE > 0.5 * (lambda_per_s - lambda_ref_per_s)",
        "HIT * HIT == 0.25",
        "HIT == REUSE",
        "HIT > REUSE",
        "max(HIT, REUSE) == min(HIT, REUSE)",
        "HIT >= 0.9 && abs(SLOPE) < 0.25 * (lambda_per_s - lambda_ref_per_s)",
        "abs(PREFILL - all_miss_prefill_tokens_per_s) <= 0.15 * all_miss_prefill_tokens_per_s && SLOPE > 0.0126",
        "PREFILL * lambda_per_s > HIT * all_miss_prefill_tokens_per_s",
        "(HIT > 0.5) == (REUSE > 0.5)",
        "HIT > 0.4 && HIT < 0.40001 && REUSE > 0.7 && REUSE < 0.70001",
    ],
)
def test_a_rule_that_decides_is_accepted(text: str) -> None:
    check_run_rule(compiled(text), REFERENCE)


@given(st.floats(0.001, 0.999), st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_any_threshold_inside_the_bounds_decides(threshold: float, sign: str, turned: bool) -> None:
    text = f"{threshold!r} {sign} HIT" if turned else f"HIT {sign} {threshold!r}"
    check_run_rule(compiled(text), REFERENCE)


# --- names and tokens --------------------------------------------------------


def test_a_rule_knows_the_readings_it_needs() -> None:
    rule = compiled("HIT > 0.5 && run.after_burst.hits > 3.0 && HIT < lambda_per_s")
    assert rule.readings == (("judged", "followup_hit_fraction"), ("after_burst", "hits"))
    assert rule.names == (HIT, "run.after_burst.hits", "lambda_per_s")


def test_tokens_keep_names_functions_numbers_and_operators_apart() -> None:
    tokens = tokenise("abs ( a.b ) >= 1.5e-3 || !(c<2)", RUN_FUNCTIONS, "x")
    assert [(t.kind, t.text) for t in tokens[:6]] == [
        ("function", "abs"),
        ("operator", "("),
        ("name", "a.b"),
        ("operator", ")"),
        ("operator", ">="),
        ("number", "1.5e-3"),
    ]
    assert names_of(tokens) == ("a.b", "c")


@given(st.text("HIT.run judged&|!<>=()+-*/01.eE,?:[]\"' \n\t_abs", max_size=30))
@settings(max_examples=300, deadline=None)
def test_an_arbitrary_text_is_a_rule_or_refused(text: str) -> None:
    try:
        check_run_rule(compiled(text), REFERENCE)
    except RuleError as error:
        error.diagnostics()


# --- against an independent evaluator ---------------------------------------

NAMES = {"HIT": HIT, "REUSE": REUSE, "SLOPE": SLOPE}
NUMBERS = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0, 2.0])
Tree = tuple[Any, ...]

sums = st.recursive(
    st.one_of(st.tuples(st.just("number"), NUMBERS), st.tuples(st.just("name"), st.sampled_from(sorted(NAMES)))),
    lambda s: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*"]), s, s),
        st.tuples(st.sampled_from(["min", "max"]), s, s),
        st.tuples(st.sampled_from(["abs", "neg"]), s),
    ),
    max_leaves=5,
)
comparisons = st.tuples(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), sums, sums)
trees = st.recursive(
    comparisons,
    lambda v: st.one_of(st.tuples(st.sampled_from(["&&", "||", "==", "!="]), v, v), st.tuples(st.just("!"), v)),
    max_leaves=4,
)
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "min": min,
    "max": max,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "&&": lambda a, b: a and b,
    "||": lambda a, b: a or b,
}
UNARY: dict[str, Callable[[Any], Any]] = {"abs": abs, "neg": operator.neg, "!": operator.not_}


def written(tree: Tree) -> str:
    head, *parts = tree
    if head in ("number", "name"):
        return str(parts[0])
    inner = [written(part) for part in parts]
    if head in ("min", "max", "abs"):
        return f"{head}({', '.join(inner)})"
    if len(inner) == 1:
        return f"{'-' if head == 'neg' else '!'}({inner[0]})"
    return f"({inner[0]}) {head} ({inner[1]})"


def worth(tree: Tree, values: dict[str, float]) -> Any:
    head, *parts = tree
    if head == "number":
        return parts[0]
    if head == "name":
        return values[parts[0]]
    inner = [worth(part, values) for part in parts]
    return UNARY[head](inner[0]) if len(inner) == 1 else BINARY[head](*inner)


points = st.fixed_dictionaries(
    {"HIT": st.floats(0, 1) | NUMBERS, "REUSE": st.floats(0, 1) | NUMBERS, "SLOPE": st.floats(-3, 3) | NUMBERS}
)


@given(trees, st.lists(points, min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_a_random_rule_says_what_an_independent_evaluator_says(tree: Tree, values: list[dict[str, float]]) -> None:
    text = written(tree)
    if not any(name in text for name in NAMES):
        text, tree = f"({text}) || HIT > 2.0", ("||", tree, (">", ("name", "HIT"), ("number", 2.0)))
    rule = compiled(text)
    for point in values:
        assert decide_run(rule, readings(**point), REFERENCE).value is worth(tree, point)


@given(trees)
@settings(max_examples=60, deadline=None)
def test_a_rule_accepted_takes_both_values_and_one_called_constant_is_so_on_a_grid(tree: Tree) -> None:
    text = written(tree)
    if not any(name in text for name in NAMES):
        return
    try:
        check_run_rule(compiled(text), REFERENCE)
    except RuleError as error:
        said = "always true" in error.what
        grid = itertools.product((0.0, 0.3, 1.0), (0.0, 0.6, 1.0), (-2.0, 0.7))
        assert {worth(tree, dict(zip(("HIT", "REUSE", "SLOPE"), point, strict=True))) for point in grid} == {said}


@pytest.mark.parametrize("middle", [3.0, 57.0, 1_234.0, 11_854.0, 31_700.0, 987_654.0])
@pytest.mark.parametrize("width", [0.15, 0.001])
def test_a_band_around_a_value_is_not_constant_wherever_it_lies(middle: float, width: float) -> None:
    name = "all_miss_prefill_tokens_per_s"
    for text in ("<= WIDTH && HIT < 0.1", "> WIDTH"):
        band = f"abs(PREFILL - {name}) {text}".replace("WIDTH", f"{width} * {name}")
        check_run_rule(compiled(band), {**REFERENCE, name: middle})
