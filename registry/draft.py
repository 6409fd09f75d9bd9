"""A rule file: loaded strictly, checked, and turned into dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelf.cells import CELLS, Cell
from registry.canonical import digest
from registry.design import (
    Adaptation,
    Arm,
    Burst,
    Cut,
    Design,
    EnginePolicy,
    GateSetting,
    ReleaseWindow,
    Seeds,
    Shed,
    ToolSlowdown,
    Window,
)
from registry.draft_checks import cell_problems, problems_of
from registry.draft_rule import rule_of
from registry.draft_workload import Frozen, ScriptsFor, check_replay, check_trace, no_scripts, trace_source, workload_of
from registry.errors import DraftError, ManyErrors
from registry.predictor import Predictor
from registry.rule import Rule
from registry.schema_check import check
from registry.strict_yaml import Document, load
from registry.window_checks import start_problems

SIMULATOR = "simulator"
ENGINE = "engine"


@dataclass(frozen=True)
class Measure:
    """A value that other registrations quote: a reading's median over runs."""

    name: str
    arm: str
    window: str
    reading: str


@dataclass(frozen=True)
class Draft:
    """Everything a rule file says. `source` is its plain JSON value; `runs_on`
    is `SIMULATOR` or `ENGINE`: what kind of engine its runs are made on;
    `session_scripts` what its sessions do where its workload is a trace.
    """

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
    plan_from: str | None
    exclusions: tuple[str, ...]
    max_attempts: int
    runs_on: str
    source: dict[str, Any]
    session_scripts: Frozen | None = None

    @property
    def judged_window(self) -> str:
        """The window that the first run verdict reads: the one to show first."""
        return self.rule.runs[0].readings[0][0]

    @property
    def sha256(self) -> str:
        """Digest of the canonical rule file: what makes two drafts the same."""
        return digest(self.source)


def load_draft(
    text: bytes, name: str, cells: Mapping[str, Cell] = CELLS, scripts_for: ScriptsFor = no_scripts
) -> Draft:
    """Load and check a rule file; `name` is its name for messages, `cells` the
    cells that it may name, `scripts_for` what reads the trace that it may name.

    Raises DraftError, or ManyErrors with every finding.
    """
    document = load(text, name)
    if not isinstance(document.value, dict):
        raise DraftError("a rule file is a mapping", where=name, remedy="start with `schema: trap-draft-1`")
    check(document, "draft")
    return build_draft(document, cells, scripts_for)


def build_draft(document: Document, cells: Mapping[str, Cell], scripts_for: ScriptsFor = no_scripts) -> Draft:
    """A Draft from a document that satisfies the schema."""
    source = document.value
    if problems := start_problems(document):
        raise ManyErrors(problems)
    check_trace(document)
    trace, cell = trace_source(source["design"]["workload"]), cells.get(source["cell"])
    frozen = scripts_for(trace, cell) if trace and cell else None
    if trace and not cell:
        raise ManyErrors(cell_problems(document, cells))
    check_replay(document, trace, frozen)
    design = _design(source["design"], frozen)
    predictors = tuple(_predictor(p) for p in source["predictors"])
    if problems := problems_of(document, design, cells):
        raise ManyErrors(problems)
    return Draft(
        id=source["id"],
        title=source["title"],
        question=source["question"],
        cell=cells[source["cell"]],
        calibration=source.get("calibration"),
        design=design,
        rule=rule_of(document, design, cells[source["cell"]], predictors),
        measures=tuple(Measure(name, **m) for name, m in source.get("measures", {}).items()),
        predictors=predictors,
        claim=source.get("claim"),
        plan_from=source.get("plan_from"),
        exclusions=tuple(source.get("exclusions", ())),
        max_attempts=source.get("max_attempts", 1),
        runs_on=source.get("runs_on", SIMULATOR),
        source=source,
        session_scripts=frozen,
    )


def _predictor(source: dict[str, Any]) -> Predictor:
    rate = source.get("rate")
    return Predictor(**{**source, "rate": None if rate is None else float(rate)})


def _design(source: dict[str, Any], frozen: Frozen | None) -> Design:
    return Design(
        horizon_s=float(source["horizon_s"]),
        workload=workload_of(source["workload"], frozen),
        rates=tuple(float(rate) for rate in source["rates"]),
        arms=tuple(_arm(name, arm) for name, arm in source["arms"].items()),
        windows=tuple(_window(name, window) for name, window in source["windows"].items()),
        seeds=Seeds(tuple(source["seeds"]["values"]), source["seeds"]["binding"]),
    )


def _window(name: str, source: dict[str, Any]) -> Window | ReleaseWindow:
    if "from_release_of" in source:
        return ReleaseWindow(name, source["from_release_of"], float(source["end_s"]))
    return Window(name, float(source["start_s"]), float(source["end_s"]))


def _arm(name: str, source: dict[str, Any]) -> Arm:
    parts = {field: kind(**source[field]) for field, kind in _ARM_PARTS.items() if field in source}
    whole = {field: source[field] for field in _ARM_WHOLES if field in source}
    return Arm(name, **parts, **whole)


def _gate(**source: Any) -> GateSetting:
    adaptation = source.pop("adaptation", None)
    return GateSetting(
        cap=source.pop("cap", None), adaptation=Adaptation(**adaptation) if adaptation else None, **source
    )


_ARM_WHOLES = ("population", "caching", "pool_tokens", "step_cap", "horizon_s")
_ARM_PARTS: dict[str, Any] = {
    "burst": Burst,
    "gate": _gate,
    "shed": Shed,
    "cut": Cut,
    "tool_slowdown": ToolSlowdown,
    "engine": EnginePolicy,
}
