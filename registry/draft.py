"""A rule file: loaded strictly, checked, and turned into dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelf.cells import CELLS, Cell
from modelf.turn_law import TruncatedGeometric
from modelf.workload import Workload
from registry.canonical import digest
from registry.design import (
    Adaptation,
    Arm,
    Burst,
    Cut,
    Design,
    EnginePolicy,
    GateSetting,
    Seeds,
    Shed,
    ToolSlowdown,
    Window,
)
from registry.draft_checks import problems_of
from registry.errors import DraftError, ManyErrors
from registry.rule import RateRule, Rule, RunRule, compile_rate_rule, compile_run_rule
from registry.rule_constancy import check_run_rule
from registry.schema_check import check
from registry.strict_yaml import Document, load

NOMINAL_LAMBDA_REF_PER_S = 0.072


@dataclass(frozen=True)
class Predictor:
    """A prediction of one reading; a run hits within the tolerance.

    A `stated` one has its `value`, in the reading's unit or in multiples of
    the reference value `times`. The other kinds are computed on the drawn
    plans: `costs` says which costs model F takes; the fluid starts at
    `all_miss_from_s` with `sessions_present`.
    """

    name: str
    kind: str
    source: str
    arm: str
    rate: float
    window: str
    reading: str
    relative_tolerance: float
    value: float | None = None
    times: str | None = None
    predictor_version: int | None = None
    costs: str | None = None
    all_miss_from_s: float | None = None
    sessions_present: float | None = None

    @property
    def computed(self) -> bool:
        """Whether `trapkit predict` evaluates it."""
        return self.kind != "stated"


@dataclass(frozen=True)
class Measure:
    """A value that other registrations quote: a reading's median over runs."""

    name: str
    arm: str
    window: str
    reading: str


@dataclass(frozen=True)
class Draft:
    """Everything a rule file says. `source` is its plain JSON value."""

    id: str
    title: str
    question: str
    cell: Cell
    calibration: str | None
    design: Design
    rule: Rule
    measures: tuple[Measure, ...]
    predictors: tuple[Predictor, ...]
    claim: str | None
    source: dict[str, Any]

    @property
    def judged_window(self) -> str:
        """The window that the first run verdict reads: the one to show first."""
        return self.rule.runs[0].readings[0][0]

    @property
    def sha256(self) -> str:
        """Digest of the canonical rule file: what makes two drafts the same."""
        return digest(self.source)


def load_draft(text: bytes, name: str, cells: Mapping[str, Cell] = CELLS) -> Draft:
    """Load and check a rule file; `name` is its name for messages, `cells` the
    cells that it may name.

    Raises DraftError, or ManyErrors with every finding.
    """
    document = load(text, name)
    if not isinstance(document.value, dict):
        raise DraftError("a rule file is a mapping", where=name, remedy="start with `schema: trap-draft-1`")
    check(document, "draft")
    return build_draft(document, cells)


def build_draft(document: Document, cells: Mapping[str, Cell]) -> Draft:
    """A Draft from a document that satisfies the schema."""
    source = document.value
    design = _design(source["design"])
    if problems := problems_of(document, design, cells):
        raise ManyErrors(problems)
    return Draft(
        id=source["id"],
        title=source["title"],
        question=source["question"],
        cell=cells[source["cell"]],
        calibration=source.get("calibration"),
        design=design,
        rule=_rule(document, design, cells[source["cell"]].pool_tokens),
        measures=tuple(Measure(name, **m) for name, m in source.get("measures", {}).items()),
        predictors=tuple(_predictor(p) for p in source["predictors"]),
        claim=source.get("claim"),
        source=source,
    )


def _predictor(source: dict[str, Any]) -> Predictor:
    return Predictor(**{**source, "rate": float(source["rate"])})


def _design(source: dict[str, Any]) -> Design:
    workload = dict(source["workload"])
    turns = TruncatedGeometric(**workload.pop("turns"))
    return Design(
        horizon_s=float(source["horizon_s"]),
        workload=Workload(turns=turns, **workload),
        rates=tuple(float(rate) for rate in source["rates"]),
        arms=tuple(_arm(name, arm) for name, arm in source["arms"].items()),
        windows=tuple(Window(name, float(w["start_s"]), float(w["end_s"])) for name, w in source["windows"].items()),
        seeds=Seeds(tuple(source["seeds"]["values"]), source["seeds"]["binding"]),
    )


def _arm(name: str, source: dict[str, Any]) -> Arm:
    parts = {field: kind(**source[field]) for field, kind in _ARM_PARTS.items() if field in source}
    whole = {field: source[field] for field in ("population", "caching", "step_cap") if field in source}
    return Arm(name, **parts, **whole)


def _gate(**source: Any) -> GateSetting:
    adaptation = source.pop("adaptation", None)
    return GateSetting(
        cap=source.pop("cap", None), adaptation=Adaptation(**adaptation) if adaptation else None, **source
    )


_ARM_PARTS: dict[str, Any] = {
    "burst": Burst,
    "gate": _gate,
    "shed": Shed,
    "cut": Cut,
    "tool_slowdown": ToolSlowdown,
    "engine": EnginePolicy,
}


def _rule(document: Document, design: Design, pool_tokens: int) -> Rule:
    source = document.value["rule"]
    windows = {window.name for window in design.windows}
    arms = {arm.name: arm for arm in design.arms}

    def run_rules(section: str) -> tuple[RunRule, ...]:
        return tuple(
            compile_run_rule(arm, name, text, windows, arms[arm], document.where(("rule", section, arm, name)))
            for arm, verdicts in source.get(section, {}).items()
            for name, text in verdicts.items()
        )

    runs, reported = run_rules("runs"), run_rules("reported")
    for rule in (*runs, *reported):
        for reference in _nominal_references(pool_tokens, design, arms[rule.arm]):
            check_run_rule(rule, reference)
    lists = {f"{rule.arm}.{rule.name}" for rule in runs}
    rate: RateRule = compile_rate_rule(
        source["rate"], lists, len(design.seeds.values), document.where(("rule", "rate"))
    )
    return Rule(runs, reported, rate)


def _nominal_references(pool_tokens: int, design: Design, arm: Arm) -> list[dict[str, float]]:
    """Reference values of the right size, a set a rate.

    The measured ones are not known yet; whether a rule is constant does not
    hang on their exact size.
    """
    session_tokens = design.workload.expected_session_prompt_tokens()
    common: dict[str, float] = {
        "lambda_ref_per_s": NOMINAL_LAMBDA_REF_PER_S,
        "all_miss_prefill_tokens_per_s": NOMINAL_LAMBDA_REF_PER_S * session_tokens,
        "pool_tokens": float(pool_tokens),
        "cap": float(arm.gate.cap or 0) if arm.gate else 0.0,
    }
    return [
        {**common, "lambda_per_s": rate * NOMINAL_LAMBDA_REF_PER_S}
        for rate in (design.rates if arm.population is None else (0.0,))
    ]
