"""Rules: run verdicts over readings, then a rate rule over lists of them.

Every dotted name must be a known reading, prediction or reference value; all
values must be present and finite, or the verdict is "not decidable" and
nothing is evaluated; the result must be a bool. No part of a rule lives in
Python.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from registry.design import Arm
from registry.errors import RuleError
from registry.reading_catalogue import READING_KINDS
from registry.rule_text import RATE_FUNCTIONS, RUN_FUNCTIONS, evaluate, names_of, program, tokenise
from registry.rule_types import DECIMAL, LIST, check_types
from registry.rule_work import Work

REFERENCE_VALUES: dict[str, str] = {
    "lambda_ref_per_s": "all-miss session rate of the cell, frozen from its calibration",
    "lambda_per_s": "the run's arrival rate: its rate times lambda_ref_per_s",
    "all_miss_prefill_tokens_per_s": "the cell's all-miss prefill rate, frozen from its calibration",
    "pool_tokens": "the KV pool of the run: the cell's, or the arm's where that is capped",
    "session_prompt_tokens": "expected prompt tokens of a whole session of the design's workload",
    "cap": "the cap of the arm's gate",
}


CLOSED_REFERENCES = ("pool_tokens", "session_prompt_tokens")
"""The reference values that a closed population has."""


@dataclass(frozen=True)
class Beside:
    """What a run rule may name beside its own run: `arms` whose run of the
    same rate and seed may be read, each with its windows, and `predicted`
    names with the reading that each predicts.
    """

    arms: Mapping[str, Collection[str]] = field(default_factory=dict)
    predicted: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RunRule:
    """A run verdict: an arm's rule over readings and reference values.

    `reading_of` maps each name that varies from run to run to the reading
    whose values it takes.
    """

    arm: str
    name: str
    text: str
    names: tuple[str, ...]
    where: str
    reading_of: Mapping[str, str]

    @property
    def readings(self) -> tuple[tuple[str, str], ...]:
        """The (window, reading) pairs of the own run that the rule needs."""
        dotted = [name.split(".") for name in self.names if name.startswith("run.")]
        return tuple((window, reading) for _, window, reading in dotted)

    @property
    def predicted(self) -> tuple[str, ...]:
        """The predictions that the rule needs, as they are named in rules."""
        return tuple(n.partition(".")[2] for n in self.names if n.startswith("predicted."))


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


def compile_run_rule(
    arm: str,
    name: str,
    text: str,
    windows: Collection[str],
    setting: Arm,
    where: str,
    beside: Beside | None = None,
) -> RunRule:
    """A run verdict whose names are all known; RuleError otherwise."""
    tokens = tokenise(text, RUN_FUNCTIONS, where)
    names = names_of(tokens)
    known = {"run": windows, **(beside or Beside()).arms}
    reading_of = {}
    for dotted in names:
        head = dotted.partition(".")[0]
        if dotted.count(".") == 2 and head in known:
            reading_of[dotted] = _reading_in(dotted, known[head], where)
        elif head == "predicted":
            reading_of[dotted] = _prediction_in(dotted, (beside or Beside()).predicted, where)
        else:
            _check_reference(dotted, setting, [*known][1:], where)
    if not any(dotted.startswith("run.") for dotted in names):
        raise RuleError(
            "the rule reads nothing of the run", where=where, value=text, remedy="use a reading: run.<window>.<reading>"
        )
    check_types(tokens, DECIMAL, RUN_FUNCTIONS, where)
    program(text, where)
    return RunRule(arm, name, text, names, where, reading_of)


def _reading_in(dotted: str, windows: Collection[str], where: str) -> str:
    _, window, reading = dotted.split(".")
    for what, value, known in (("window", window, sorted(windows)), ("reading", reading, list(READING_KINDS))):
        if value not in known:
            raise RuleError(
                f"unknown {what} in a rule", where=where, value=dotted, remedy=f"one of: {', '.join(known)}"
            )
    return reading


def _prediction_in(dotted: str, predicted: Mapping[str, str], where: str) -> str:
    name = dotted.partition(".")[2]
    if name not in predicted:
        known = ", ".join(f"predicted.{other}" for other in predicted) or "none yet"
        raise RuleError(
            "no such prediction for this arm at every rate",
            where=where,
            value=dotted,
            remedy=f"a computed predictor of this arm, without a rate where there are several; here: {known}",
        )
    return predicted[name]


def _check_reference(dotted: str, setting: Arm, arms: list[str], where: str) -> None:
    allowed = [name for name in REFERENCE_VALUES if name != "cap" or (setting.gate and setting.gate.cap)]
    if setting.population is not None:
        allowed = list(CLOSED_REFERENCES)
    if dotted not in allowed:
        pairs = f"{'|'.join(arms)}.<window>.<reading>, " if arms else ""
        raise RuleError(
            "unknown name in a rule",
            where=where,
            value=dotted,
            remedy=f"run.<window>.<reading>, {pairs}or one of: {', '.join(allowed)}",
        )


def compile_rate_rule(text: str, lists: set[str], seeds: int, where: str, work: Work | None = None) -> RateRule:
    """The rate rule; its names must be `ARM.verdict` of the run rules."""
    from registry.rule_constancy import check_rate_rule

    work = work or Work()
    work.read(text, where)
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
    check_rate_rule(rule, seeds, work)
    return rule


@dataclass(frozen=True)
class Known:
    """What is known beside a run's own readings: those of the arms of its
    rate and seed, by arm, window and name, and predictions by name.
    """

    arms: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    predicted: Mapping[str, float] = field(default_factory=dict)


def decide_run(
    rule: RunRule,
    readings: Mapping[str, Mapping[str, float]],
    reference: Mapping[str, float],
    known: Known | None = None,
) -> Decision:
    """A run verdict from readings by window and name, and reference values.

    Not decidable where a needed value is absent or not finite.
    """
    known = known or Known()
    values: dict[str, float] = {}
    for dotted in rule.names:
        head, *rest = dotted.split(".")
        if not rest:
            value = reference.get(dotted)
        elif head == "predicted":
            value = known.predicted.get(rest[0])
        else:
            window, reading = rest
            value = (readings if head == "run" else known.arms.get(head, {})).get(window, {}).get(reading)
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
