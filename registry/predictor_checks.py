"""What each kind of predictor needs, and what it can predict."""

from __future__ import annotations

from typing import Any

from modelf.costs import COSTS
from registry.design import Design, Window
from registry.errors import DraftError, TrapError
from registry.strict_yaml import Document

_FLUID = ("all_miss_from_s", "sessions_present")
NEEDS: dict[str, tuple[str, ...]] = {
    "stated": ("value",),
    "model-f-asymptotic": ("predictor_version", "costs"),
    "model-f-fluid": ("predictor_version", "costs", *_FLUID),
    "simulator": ("predictor_version",),
}
ALLOWS = {kind: {*needs, *(("times",) if kind == "stated" else ())} for kind, needs in NEEDS.items()}
_OWN = set().union(*ALLOWS.values())
ASYMPTOTIC_READINGS = ("mean_prompt_tokens", "completions_per_s", "backlog_slope_per_s", "sojourn_slope")
PREDICTS: dict[str, tuple[str, ...]] = {
    "model-f-asymptotic": ASYMPTOTIC_READINGS,
    "model-f-fluid": (*ASYMPTOTIC_READINGS, "outstanding"),
}


def predictor_problems(document: Document, design: Design) -> list[TrapError]:
    """Every finding about the predictors of a rule file."""
    problems: list[TrapError] = []
    predictors: list[dict[str, Any]] = document.value["predictors"]
    names = [predictor["name"] for predictor in predictors]
    for index, predictor in enumerate(predictors):
        for field, what, remedy in _findings(document, design, predictor, names[:index]):
            where = document.where(("predictors", index, field))
            problems.append(DraftError(what, where=where, value=predictor.get(field), remedy=remedy))
    return problems


def _findings(
    document: Document, design: Design, predictor: dict[str, Any], earlier: list[str]
) -> list[tuple[str, str, str]]:
    """(field, what, remedy) of everything wrong with one predictor."""
    kind, found = predictor["kind"], []
    if predictor["name"] in earlier:
        found.append(("name", "two predictors share a name", "name each differently"))
    for field in NEEDS[kind]:
        if field not in predictor:
            found.append((field, f"a {kind} predictor needs {field}", f"add {field}"))
    for field in sorted(_OWN & set(predictor) - ALLOWS[kind]):
        found.append((field, f"a {kind} predictor takes no {field}", "leave it out"))
    if predictor["reading"] not in PREDICTS.get(kind, (predictor["reading"],)):
        found.append(("reading", f"{kind} does not predict this reading", f"one of: {', '.join(PREDICTS[kind])}"))
    arm = {a.name: a for a in design.arms}.get(predictor["arm"])
    if kind in PREDICTS and arm and (arm.gate or not arm.caching or arm.population):
        found.append(("arm", "model F speaks of arms that are left alone in the trap", "name an arm without a gate"))
    for field in ("rate", "times") if arm and arm.population else ():
        if field in predictor:
            found.append((field, f"a closed population has no {field}", "leave it out"))
    if predictor.get("costs") == "fitted" and document.value["cell"] not in COSTS:
        found.append(("costs", "no fitted costs are known for this cell", f"cells: {', '.join(COSTS)}"))
    window = {w.name: w for w in design.windows}.get(predictor["window"])
    if isinstance(window, Window) and predictor.get("all_miss_from_s", 0) > window.start_s:
        found.append(("all_miss_from_s", "it starts after its window", f"at most {window.start_s:g}"))
    return found
