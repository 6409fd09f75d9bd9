"""What each kind of predictor needs, and what it can predict."""

from __future__ import annotations

from typing import Any

from modelf.costs import COSTS
from registry.design import Arm, Design, ReleaseWindow, Window
from registry.errors import DraftError, RuleError, TrapError
from registry.rule_text import RUN_FUNCTIONS, names_of, tokenise
from registry.strict_yaml import Document

Finding = tuple[str, str, str]
"""(field, what, remedy)."""

_FLUID = ("all_miss_from_s", "sessions_present")
NEEDS: dict[str, tuple[str, ...]] = {
    "stated": ("value",),
    "model-f-asymptotic": ("predictor_version", "costs"),
    "model-f-fluid": ("predictor_version", "costs", *_FLUID),
    "simulator": ("predictor_version",),
    "closed-population": ("predictor_version", "costs"),
    "first-principles-trap": ("predictor_version",),
}
ALLOWS = {kind: {*needs, *(("times",) if kind == "stated" else ())} for kind, needs in NEEDS.items()}
_OWN = set().union(*ALLOWS.values())
ASYMPTOTIC_READINGS = ("mean_prompt_tokens", "completions_per_s", "backlog_slope_per_s", "sojourn_slope")
PREDICTS: dict[str, tuple[str, ...]] = {
    "model-f-asymptotic": ASYMPTOTIC_READINGS,
    "model-f-fluid": (*ASYMPTOTIC_READINGS, "outstanding"),
    "closed-population": ("followup_hit_fraction", "reuse_fraction", "turns_per_s", "completions_per_s"),
}
VERDICT_KINDS = ("stated", "simulator", "first-principles-trap")
_OF_A_READING = ("window", "reading", "relative_tolerance")


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


def _findings(document: Document, design: Design, predictor: dict[str, Any], earlier: list[str]) -> list[Finding]:
    """Everything wrong with one predictor."""
    kind = predictor["kind"]
    found: list[Finding] = []
    if predictor["name"] in earlier:
        found.append(("name", "two predictors share a name", "name each differently"))
    for field in NEEDS[kind]:
        if field not in predictor:
            found.append((field, f"a {kind} predictor needs {field}", f"add {field}"))
    for field in sorted(_OWN & set(predictor) - ALLOWS[kind]):
        found.append((field, f"a {kind} predictor takes no {field}", "leave it out"))
    arm = {a.name: a for a in design.arms}.get(predictor["arm"])
    found += _arm_findings(kind, predictor, arm)
    costs = predictor.get("costs")
    if costs == "fitted" and kind == "closed-population":
        found.append(("costs", "the fitted costs say what a miss costs, no more", "step-costs or first-principles"))
    elif costs == "fitted" and document.value["cell"] not in COSTS:
        found.append(("costs", "no fitted costs are known for this cell", f"cells: {', '.join(COSTS)}"))
    if "verdict" in predictor:
        return found + _verdict_findings(document, design, predictor)
    return found + _reading_findings(design, predictor)


def _arm_findings(kind: str, predictor: dict[str, Any], arm: Arm | None) -> list[Finding]:
    """What the arm does not have, or has and the kind cannot see."""
    if arm is None:
        return []
    found: list[Finding] = []
    alone = not arm.gate and arm.caching and not arm.population
    if kind.startswith("model-f") and not alone:
        found.append(("arm", "model F speaks of arms that are left alone in the trap", "name an arm without a gate"))
    if kind == "first-principles-trap" and not alone:
        found.append(("arm", "the forecast is for arrivals that no gate holds back", "name an arm without a gate"))
    if kind == "closed-population" and not (arm.population and arm.caching):
        found.append(("arm", "this kind speaks of closed populations", "name an arm with a population, caching on"))
    for field in ("rate", "times") if arm.population else ():
        if field in predictor:
            found.append((field, f"a closed population has no {field}", "leave it out"))
    return found


def _reading_findings(design: Design, predictor: dict[str, Any]) -> list[Finding]:
    kind = predictor["kind"]
    if kind == "first-principles-trap":
        return [("verdict", f"a {kind} predictor needs verdict", "add verdict: a run verdict of its arm")]
    found: list[Finding] = [
        (field, f"a predicted reading needs {field}", f"add {field}, or predict a verdict instead")
        for field in _OF_A_READING
        if field not in predictor
    ]
    reading, window = predictor.get("reading"), {w.name: w for w in design.windows}.get(predictor.get("window", ""))
    if reading and reading not in PREDICTS.get(kind, (reading,)):
        found.append(("reading", f"{kind} does not predict this reading", f"one of: {', '.join(PREDICTS[kind])}"))
    if isinstance(predictor.get("value"), bool):
        found.append(("value", "a reading is a number", "write a number, or predict a verdict"))
    if isinstance(window, Window) and predictor.get("all_miss_from_s", 0) > window.start_s:
        found.append(("all_miss_from_s", "it starts after its window", f"at most {window.start_s:g}"))
    return found


def _verdict_findings(document: Document, design: Design, predictor: dict[str, Any]) -> list[Finding]:
    kind, verdict = predictor["kind"], predictor["verdict"]
    found: list[Finding] = [
        (field, f"a predicted verdict takes no {field}", "leave it out")
        for field in (*_OF_A_READING, "times")
        if field in predictor
    ]
    if kind not in VERDICT_KINDS:
        found.append(("verdict", f"{kind} predicts no verdict", f"kinds: {', '.join(VERDICT_KINDS)}"))
    if kind == "stated" and not isinstance(predictor.get("value", True), bool):
        found.append(("value", "a verdict is true or false", "write true or false"))
    rule = document.value["rule"]
    known = {**rule["runs"].get(predictor["arm"], {}), **rule.get("reported", {}).get(predictor["arm"], {})}
    if verdict not in known:
        remedy = f"one of: {', '.join(known)}" if known else "give the arm a run verdict"
        found.append(("verdict", "the arm has no such run verdict", remedy))
    elif kind == "simulator" and _reads_more(known[verdict], design):
        remedy = "predict a verdict over windows with a start_s of its own run"
        found.append(("verdict", "the verdict reads more than its own run", remedy))
    return found


def _reads_more(text: str, design: Design) -> bool:
    """Whether a verdict needs other runs, predictions or a release."""
    try:
        names = [name.split(".") for name in names_of(tokenise(text, RUN_FUNCTIONS, ""))]
    except RuleError:
        return False  # said where the rule is compiled
    opened = {window.name for window in design.windows if isinstance(window, ReleaseWindow)}
    beside = {"predicted", *(arm.name for arm in design.arms)}
    return any(name[0] in beside or (name[0] == "run" and name[1] in opened) for name in names if len(name) > 1)
