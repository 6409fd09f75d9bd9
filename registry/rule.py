"""Rules: run verdicts over readings, then a rate rule over lists of them.

Every dotted name must be a known reading or reference value; all values must
be present and finite, or the verdict is "not decidable" and nothing is
evaluated; the result must be a bool. No part of a rule lives in Python.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from registry.design import Arm
from registry.errors import RuleError
from registry.reading_catalogue import READING_KINDS
from registry.rule_text import RATE_FUNCTIONS, RUN_FUNCTIONS, evaluate, names_of, program, tokenise
from registry.rule_types import DECIMAL, LIST, check_types

REFERENCE_VALUES: dict[str, str] = {
    "lambda_ref_per_s": "all-miss session rate of the cell, frozen from its calibration",
    "lambda_per_s": "the run's arrival rate: its rate times lambda_ref_per_s",
    "all_miss_prefill_tokens_per_s": "the cell's all-miss prefill rate, frozen from its calibration",
    "pool_tokens": "the cell's KV pool",
    "cap": "the cap of the arm's gate",
}


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


def compile_run_rule(arm: str, name: str, text: str, windows: set[str], setting: Arm, where: str) -> RunRule:
    """A run verdict whose names are all known; RuleError otherwise."""
    tokens = tokenise(text, RUN_FUNCTIONS, where)
    names = names_of(tokens)
    for dotted in names:
        _check_run_name(dotted, windows, setting, where)
    if not any(dotted.startswith("run.") for dotted in names):
        raise RuleError(
            "the rule reads nothing of the run", where=where, value=text, remedy="use a reading: run.<window>.<reading>"
        )
    check_types(tokens, DECIMAL, RUN_FUNCTIONS, where)
    program(text, where)
    return RunRule(arm, name, text, names, where)


def _check_run_name(dotted: str, windows: set[str], setting: Arm, where: str) -> None:
    parts = dotted.split(".")
    if parts[0] == "run" and len(parts) == 3:
        if parts[1] not in windows:
            raise RuleError(
                "unknown window in a rule", where=where, value=dotted, remedy=f"one of: {', '.join(sorted(windows))}"
            )
        if parts[2] not in READING_KINDS:
            raise RuleError(
                "unknown reading in a rule", where=where, value=dotted, remedy=f"one of: {', '.join(READING_KINDS)}"
            )
        return
    allowed = [name for name in REFERENCE_VALUES if name != "cap" or (setting.gate and setting.gate.cap)]
    if setting.population is not None:
        allowed = ["pool_tokens"]
    if dotted not in allowed:
        raise RuleError(
            "unknown name in a rule",
            where=where,
            value=dotted,
            remedy=f"run.<window>.<reading>, or one of: {', '.join(allowed)}",
        )


def compile_rate_rule(text: str, lists: set[str], seeds: int, where: str) -> RateRule:
    """The rate rule; its names must be `ARM.verdict` of the run rules."""
    from registry.rule_constancy import check_rate_rule

    tokens = tokenise(text, RATE_FUNCTIONS, where)
    names = names_of(tokens)
    for dotted in names:
        if dotted not in lists:
            raise RuleError(
                "unknown run verdict in the rate rule",
                where=where,
                value=dotted,
                remedy=f"one of: {', '.join(sorted(lists))}",
            )
    check_types(tokens, LIST, RATE_FUNCTIONS, where)
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
    return _decide(rule, values)


def decide_rate(rule: RateRule, verdicts: Mapping[str, list[bool]]) -> Decision:
    """The rate's verdict from complete lists of run verdicts, one a seed."""
    for dotted in rule.names:
        if not verdicts.get(dotted):
            return Decision(None, f"{dotted} has no runs")
    return _decide(rule, {name: verdicts[name] for name in rule.names})


def _decide(rule: RunRule | RateRule, values: Mapping[str, Any]) -> Decision:
    """Not decidable, too, where a product or sum left the range of numbers."""
    try:
        return Decision(evaluate(rule.text, values, rule.where))
    except RuleError as error:
        return Decision(None, error.what)
