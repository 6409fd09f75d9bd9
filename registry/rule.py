"""The rule language: CEL, fenced in until every rule is total.

CEL alone is not: an undefined name beside `|| true`, an empty list's `all`,
and `NaN != 1.0` are all true, and 3/2 is 1. So the text is tokenised against
an allow-list first; every dotted name must be a known reading or reference
value; all values must be present and finite, or the verdict is "not
decidable" and nothing is evaluated; the result must be a bool. No part of a
rule lives in Python.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cel

from registry.design import Arm
from registry.errors import RuleError
from registry.reading_catalogue import READING_KINDS

REFERENCE_VALUES: dict[str, str] = {
    "lambda_ref_per_s": "all-miss session rate of the cell, frozen from its calibration",
    "lambda_per_s": "the run's arrival rate: its rate times lambda_ref_per_s",
    "all_miss_prefill_tokens_per_s": "the cell's all-miss prefill rate, frozen from its calibration",
    "pool_tokens": "the cell's KV pool",
    "cap": "the cap of the arm's gate",
}
RUN_FUNCTIONS = {"abs": 1, "min": 2, "max": 2}
RATE_FUNCTIONS = {"count": 1, "all": 1, "any": 1}

_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)"
    r"|(?P<number>(?:[0-9]+\.[0-9]+|[0-9]+)(?:[eE][-+]?[0-9]+)?)"
    r"|(?P<operator>&&|\|\||<=|>=|==|!=|[-+*(),!<>]))"
)
_HINTS = {
    "/": "rules do not divide (3/2 is 1 in CEL): multiply by a decimal, 0.5 * x",
    "?": "rules have no ternary: use && and ||",
    '"': "rules have no text values",
    "'": "rules have no text values",
    "[": "rules have no lists of their own",
    "{": "rules have no maps of their own",
    "%": "rules have no remainder",
}
_WORDS = ("true", "false", "null", "in", "has")


@dataclass(frozen=True)
class Token:
    """One token of a rule; `kind` is name, function, number or operator."""

    kind: str
    text: str


@dataclass(frozen=True)
class RunRule:
    """A run verdict: an arm's rule over readings and reference values."""

    arm: str
    name: str
    text: str
    names: tuple[str, ...]
    where: str

    @property
    def readings(self) -> tuple[tuple[str, str], ...]:
        """The (window, reading) pairs that the rule needs."""
        dotted = [name.split(".") for name in self.names if name.startswith("run.")]
        return tuple((window, reading) for _, window, reading in dotted)


@dataclass(frozen=True)
class RateRule:
    """The rule of one rate, over lists of run verdicts, one entry a seed."""

    text: str
    names: tuple[str, ...]
    where: str


@dataclass(frozen=True)
class Rule:
    """All that decides: run verdicts, reported ones, and the rate rule."""

    runs: tuple[RunRule, ...]
    reported: tuple[RunRule, ...]
    rate: RateRule


@dataclass(frozen=True)
class Decision:
    """`value` is True, False, or None: not decidable, for `reason`."""

    value: bool | None
    reason: str = ""


def tokenise(text: str, functions: Mapping[str, int], where: str) -> list[Token]:
    """The rule's tokens; RuleError at the first one outside the language."""
    tokens: list[Token] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if not match:
            rest = text[position:].lstrip()
            raise RuleError(
                "the rule leaves the rule language", where=where, value=rest[:30],
                remedy=_HINTS.get(rest[0], "allowed: names, numbers, + - * ( ) , ! && || < <= > >= == !="),
            )  # fmt: skip
        position = match.end()
        kind = str(match.lastgroup)
        called = kind == "name" and text[position:].lstrip().startswith("(")
        tokens.append(Token("function" if called else kind, match[kind]))
    _check_calls(tokens, functions, where)
    return tokens


def _check_calls(tokens: list[Token], functions: Mapping[str, int], where: str) -> None:
    for token in tokens:
        if token.kind == "function" and token.text not in functions:
            raise RuleError("unknown function", where=where, value=token.text, remedy=f"one of: {', '.join(functions)}")
        if token.kind == "name" and token.text in _WORDS:
            raise RuleError("not in the rule language", where=where, value=token.text,
                            remedy="compare readings with numbers")  # fmt: skip


def names_of(tokens: list[Token]) -> tuple[str, ...]:
    """The dotted names of a rule, each once, in order of appearance."""
    return tuple(dict.fromkeys(token.text for token in tokens if token.kind == "name"))


@lru_cache(maxsize=512)
def program(text: str, where: str) -> Any:
    """The compiled CEL program of an already tokenised text."""
    try:
        return cel.compile(text)
    except Exception as error:
        first = str(error).splitlines()[0]
        raise RuleError(f"the rule does not parse: {first}", where=where, value=text) from None


def compile_run_rule(arm: str, name: str, text: str, windows: set[str], setting: Arm, where: str) -> RunRule:
    """A run verdict whose names are all known; RuleError otherwise."""
    names = names_of(tokenise(text, RUN_FUNCTIONS, where))
    for dotted in names:
        _check_run_name(dotted, windows, setting, where)
    if not any(dotted.startswith("run.") for dotted in names):
        raise RuleError("the rule reads nothing of the run", where=where, value=text,
                        remedy="use a reading: run.<window>.<reading>")  # fmt: skip
    program(text, where)
    return RunRule(arm, name, text, names, where)


def _check_run_name(dotted: str, windows: set[str], setting: Arm, where: str) -> None:
    parts = dotted.split(".")
    if parts[0] == "run" and len(parts) == 3:
        if parts[1] not in windows:
            raise RuleError("unknown window in a rule", where=where, value=dotted,
                            remedy=f"one of: {', '.join(sorted(windows))}")  # fmt: skip
        if parts[2] not in READING_KINDS:
            raise RuleError("unknown reading in a rule", where=where, value=dotted,
                            remedy=f"one of: {', '.join(READING_KINDS)}")  # fmt: skip
        return
    allowed = [name for name in REFERENCE_VALUES if name != "cap" or setting.gate]
    if setting.population is not None:
        allowed = ["pool_tokens"]
    if dotted not in allowed:
        raise RuleError("unknown name in a rule", where=where, value=dotted,
                        remedy=f"run.<window>.<reading>, or one of: {', '.join(allowed)}")  # fmt: skip


def compile_rate_rule(text: str, lists: set[str], seeds: int, where: str) -> RateRule:
    """The rate rule; its names must be `ARM.verdict` of the run rules."""
    from registry.rule_constancy import check_rate_rule

    names = names_of(tokenise(text, RATE_FUNCTIONS, where))
    for dotted in names:
        if dotted not in lists:
            raise RuleError("unknown run verdict in the rate rule", where=where, value=dotted,
                            remedy=f"one of: {', '.join(sorted(lists))}")  # fmt: skip
    rule = RateRule(text, names, where)
    program(text, where)
    check_rate_rule(rule, seeds)
    return rule


def decide_run(rule: RunRule, readings: Mapping[str, Mapping[str, float]], reference: Mapping[str, float]) -> Decision:
    """A run verdict from readings by window and name, and reference values.

    Not decidable where a needed value is absent or not finite.
    """
    values: dict[str, float] = {}
    for dotted in rule.names:
        if dotted.startswith("run."):
            _, window, reading = dotted.split(".")
            value = readings.get(window, {}).get(reading)
        else:
            value = reference.get(dotted)
        if value is None or not math.isfinite(value):
            return Decision(None, f"{dotted} is {'absent' if value is None else value}")
        values[dotted] = float(value)
    return Decision(evaluate(rule.text, values, rule.where))


def decide_rate(rule: RateRule, verdicts: Mapping[str, list[bool]]) -> Decision:
    """The rate's verdict from complete lists of run verdicts, one a seed."""
    for dotted in rule.names:
        if not verdicts.get(dotted):
            return Decision(None, f"{dotted} has no runs")
    return Decision(evaluate(rule.text, {name: verdicts[name] for name in rule.names}, rule.where))


def evaluate(text: str, values: Mapping[str, Any], where: str) -> bool:
    """Evaluate a checked rule; RuleError unless the result is a bool."""
    result = compute(text, values, where)
    if not isinstance(result, bool):
        raise RuleError("the rule gives no true or false", where=where, value=text,
                        remedy="compare: ... >= ...")  # fmt: skip
    return result


def compute(text: str, values: Mapping[str, Any], where: str) -> Any:
    """The value of a CEL text over dotted names; RuleError where it has none."""
    context = cel.Context()
    for name, variable in _nested(values).items():
        context.add_variable(name, variable)
    for name, function in _FUNCTIONS.items():
        context.add_function(name, function)
    try:
        return program(text, where).execute(context)
    except Exception as error:
        raise RuleError(
            f"the rule cannot be evaluated: {str(error).split(':')[0]}", where=where, value=text,
            remedy="readings are decimals: write 2.0 * x, not 2 * x; compare like with like",
        ) from None  # fmt: skip


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for dotted, value in values.items():
        *parents, last = dotted.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[last] = value
    return tree


_FUNCTIONS = {
    "abs": lambda x: abs(x),
    "min": lambda x, y: min(x, y),
    "max": lambda x, y: max(x, y),
    "count": lambda verdicts: sum(1 for verdict in verdicts if verdict),
    "all": lambda verdicts: all(verdicts),
    "any": lambda verdicts: any(verdicts),
}
