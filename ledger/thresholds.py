"""Every comparison of a run's rule, its two sides computed: readings beside thresholds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from registry.design import RunId
from registry.errors import RuleError
from registry.rule import RunRule
from registry.rule_text import RUN_FUNCTIONS, compute, names_of, tokenise
from registry.rule_tree import Node, tree
from verifier.report import Proof
from verifier.verdict import Readings


def thresholds_of(proof: Proof) -> dict[RunId, dict[str, list[dict[str, Any]]]]:
    """By run and verdict, the comparisons of the rule from left to right.

    Each has the two sides as text of the rule and as numbers, and whether it
    holds; null where a value is absent or not finite. They explain a verdict and
    do not make it.
    """
    if proof.registration is None:
        return {}
    rule = proof.registration.draft.rule
    readings = {run.run: run.readings for run in proof.runs if run.readings}
    predicted = _predicted(proof)
    found = {}
    for run in readings:
        values = _values(proof, run, readings, predicted.get(run, {}))
        own = [r for r in (*rule.runs, *rule.reported) if r.arm == run.arm]
        found[run] = {r.name: [_compared(node, values) for node in _comparisons(r)] for r in own}
    return found


def _comparisons(rule: RunRule) -> list[Node]:
    return list(tree(rule.text, rule.where).comparisons())


def _predicted(proof: Proof) -> dict[RunId, dict[str, float]]:
    """Frozen predictions by run, under the names that rules have for them."""
    assert proof.registration is not None
    names = {p.name: p.rule_name for p in proof.registration.draft.predictors}
    found: dict[RunId, dict[str, float]] = {}
    for score in proof.scores:
        for seed, value in score.predicted.items():
            found.setdefault(RunId(score.arm, score.rate, seed), {})[f"predicted.{names[score.name]}"] = float(value)
    return found


def _values(
    proof: Proof, run: RunId, readings: Mapping[RunId, Readings], predicted: Mapping[str, float]
) -> dict[str, float]:
    """Everything that a rule of the run may name and that is there."""
    assert proof.registration is not None
    design = proof.registration.draft.design
    beside = {arm.name: design.run_of(arm.name, run.rate, run.seed) for arm in design.arms}
    values = {**proof.registration.references(run), **predicted}
    for head, other in (("run", run), *beside.items()):
        for window, read in readings.get(other, {}).items():
            values |= {f"{head}.{window}.{name}": value for name, value in read.items()}
    return {name: float(value) for name, value in values.items() if math.isfinite(value)}


def _compared(node: Node, values: Mapping[str, float]) -> dict[str, Any]:
    left, right = map(str, node.parts)
    return {
        "left": left,
        "sign": node.text,
        "right": right,
        "left_value": _value(left, values),
        "right_value": _value(right, values),
        "holds": _value(str(node), values),
    }


def _value(text: str, values: Mapping[str, float]) -> float | bool | None:
    names = names_of(tokenise(text, RUN_FUNCTIONS, text))
    if not all(name in values for name in names):
        return None
    try:
        value = compute(text, {name: values[name] for name in names}, text)
    except RuleError:
        return None
    return value if isinstance(value, bool) or math.isfinite(value) else None
