"""A hostile draft cannot make its reader work for long, and says so the same everywhere."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from modelf.cells import CELLS
from registry import draft_rule
from registry.draft import build_draft, load_draft
from registry.errors import CapExceeded, RuleError
from registry.reading_catalogue import READING_KINDS
from registry.rule import compile_rate_rule
from registry.rule_text import RUN_FUNCTIONS, tokenise
from registry.rule_work import MAX_WORK, Work, evaluation_cost
from registry.strict_yaml import Document, load
from tests.made_traces import made_scripts

RULES = Path(__file__).parents[2] / "rules"
E2 = load((RULES / "e2.yaml").read_bytes(), "e2").value
READINGS = [f"run.judged.{name}" for name in READING_KINDS]
NEVER = " && ".join(f"{name} > {name} + 1.0" for name in READINGS[:20])


def read(texts: list[str], rate: str = "all(BURST.r0)", **design: Any) -> None:
    """Build E2 with these rules in place of its own."""
    value = copy.deepcopy(E2)
    value["rule"] = {"runs": {"BURST": {f"r{i}": text for i, text in enumerate(texts)}}, "rate": rate}
    value["design"].update(design)
    build_draft(Document("hostile", value), CELLS)


@pytest.mark.parametrize("path", sorted(RULES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_shipped_rule_files_need_a_fiftieth_at_most(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft_rule, "Work", lambda: Work(MAX_WORK // 50))
    load_draft(path.read_bytes(), path.name, scripts_for=made_scripts)


@pytest.mark.parametrize(
    ("texts", "rate", "design"),
    [
        ([NEVER], "all(BURST.r0)", {}),
        ([NEVER] * 2000, "all(BURST.r0)", {}),
        ([f"{READINGS[0]} > 0.5"] * 50, " && ".join(f"all(BURST.r{i}) && !all(BURST.r{i})" for i in range(50)), {}),
    ],
)
def test_rules_that_would_take_minutes_are_left_with_words(texts: list[str], rate: str, design: Any) -> None:
    with pytest.raises(CapExceeded, match="too much work") as caught:
        read(texts, rate, **design)
    assert str(caught.value.where).startswith("hostile")


def test_many_easy_rules_share_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft_rule, "Work", lambda: Work(MAX_WORK // 100))
    with pytest.raises(CapExceeded, match="too much work"):
        read([f"{READINGS[0]} > 0.5"] * 200, rates=[1.35, 1.5, 1.65])


def test_the_budget_is_counted_and_not_timed() -> None:
    spent = []
    for _ in range(2):
        work = Work()
        compile_rate_rule("count(B.a) >= 2 && all(B.b)", {"B.a", "B.b"}, 40, "rate", work)
        spent.append(work.spent)
    assert spent[0] == spent[1] > 0


def test_work_is_refused_before_it_is_done() -> None:
    work = Work(10)
    work.spend(10, "x")
    with pytest.raises(CapExceeded, match="too much work"):
        work.spend(1, "x")


def test_the_work_of_an_evaluation_grows_with_tokens_names_and_entries() -> None:
    def cost(text: str, **values: Any) -> int:
        return evaluation_cost(tokenise(text, RUN_FUNCTIONS, "x"), values)

    small = cost("a > 1.0", a=1.0)
    assert cost("a > 1.0 && a > 2.0", a=1.0) > small
    assert cost("a > 1.0", a=1.0, b=2.0) > small
    assert cost("a > 1.0", a=[True] * 1000) >= small + 1000


@pytest.mark.parametrize(
    "text",
    [
        "abs({0} - 0.123456) < 0.04",
        "abs({0} - {1}) < 0.0000001 && {0} > 0.9",
        "abs({0} * {1} - 0.5) < 0.0000001",
        "{0} > 0.3 && {0} < 0.3000001",
    ],
)
def test_a_narrow_rule_still_counts_as_one_that_decides(text: str) -> None:
    fractions = ["run.judged.followup_hit_fraction", "run.judged.reuse_fraction"]
    read([text.format(*fractions)])


def test_a_constant_rule_is_called_one_within_the_budget() -> None:
    with pytest.raises(RuleError, match="always false"):
        read([f"abs({READINGS[0]} - {READINGS[1]} * 0.3) < -1.0 && {READINGS[2]} > 0.5"])
