"""The printed outcomes: what the loader refuses, and that every entry names
something that its rule file has.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from cli.workflows.reproduce import chosen_tables, shipped_draft
from modelf.published import published
from registry.errors import StudyError, TrapError
from verifier.printed_outcomes import load_outcomes, printed_outcomes

GOOD: dict[str, Any] = {
    "test": "e2",
    "arms": ["BURST"],
    "rates": [1.35],
    "reading": "mean_prompt_tokens",
    "window": "judged",
    "printed": {"low": 9125, "high": 9556, "of": 3, "decimals": 0},
    "where": "Table 2",
}


def file_of(entry: dict[str, Any], **head: Any) -> bytes:
    value = {"schema": "trap-printed-1", "source": "a test", "outcomes": [entry], **head}
    return json.dumps({key: part for key, part in value.items() if part is not None}).encode()


def changed(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in {**GOOD, **fields}.items() if value is not None}


def test_a_good_file_loads() -> None:
    paper = load_outcomes(file_of(GOOD, unprinted=["closed"]), "x")
    (outcome,) = paper.outcomes
    assert (paper.source, paper.unprinted) == ("a test", ("closed",))
    assert outcome.tests == ("e2",)
    assert (outcome.printed.kind, outcome.printed.low, outcome.printed.high) == ("range", 9125.0, 9556.0)


REJECTED = {
    "no reading of this name": changed(reading="mean_prompt"),
    "reads one thing, not 2": changed(verdict="trapped"),
    "reads one thing, not 0": changed(reading=None, window=None),
    "a reading has a window": changed(window=None),
    "no scale of this name": changed(over="lambda"),
    "a verdict has no scale": changed(
        reading=None, window=None, verdict="trapped", over="lambda_ref_per_s", printed={"count": 1, "of": 3}
    ),
    "a count is printed of verdicts": changed(printed={"count": 1, "of": 3}),
    "ends before it begins": changed(printed={"low": 3, "high": 2, "of": 3, "decimals": 0}),
    "more runs than there are": changed(reading=None, window=None, verdict="trapped", printed={"count": 4, "of": 3}),
    "sauce": changed(sauce="no such field"),
    "where": changed(where=None),
    "decimals": changed(printed={"low": 1, "high": 2, "of": 3}),
}


@pytest.mark.parametrize("message", REJECTED)
def test_a_bad_outcome_is_refused(message: str) -> None:
    with pytest.raises(TrapError) as found:
        load_outcomes(file_of(REJECTED[message]), "x")
    assert message in found.value.diagnostics()


def test_a_file_of_another_kind_is_refused() -> None:
    with pytest.raises(TrapError, match="mapping"):
        load_outcomes(b"[1]", "x")
    with pytest.raises(TrapError) as found:
        load_outcomes(file_of(GOOD, schema="trap-printed-2"), "x")
    assert "trap-printed-1" in found.value.diagnostics()


def test_every_outcome_names_what_its_rule_file_has() -> None:
    for outcome in printed_outcomes().outcomes:
        for test in outcome.tests:
            draft = shipped_draft(test)
            arms = {arm.name for arm in draft.design.arms}
            assert set(outcome.arms) <= arms
            assert set(outcome.rates) <= set(draft.design.rates)
            assert outcome.window is None or outcome.window in {window.name for window in draft.design.windows}
            verdicts = {(rule.arm, rule.name) for rule in (*draft.rule.runs, *draft.rule.reported)}
            assert outcome.verdict is None or all((arm, outcome.verdict) in verdicts for arm in outcome.arms)
            assert {outcome.predicted, outcome.scored} <= {None, *(predictor.name for predictor in draft.predictors)}


def test_table_2_is_the_one_that_the_theory_holds() -> None:
    columns = published()["table2_columns"]
    rows = [dict(zip(columns, row, strict=True)) for row in published()["table2"]]
    for outcome in printed_outcomes().outcomes:
        if outcome.where == "Table 2":
            cell = shipped_draft(outcome.test).cell.name
            (row,) = [r for r in rows if (r["cell"], (r["rate_over_lambda_ref"],)) == (cell, outcome.rates)]
            assert [outcome.printed.low, outcome.printed.high] in row.values()


def test_tables_are_chosen_by_name_with_those_they_cover() -> None:
    assert list(chosen_tables(["basin-1"])) == ["basin-1"]
    assert list(chosen_tables(["e2"])) == ["e2", "simulator"]
    assert set(chosen_tables([])) == {row.test for row in printed_outcomes().outcomes} | {"closed"}
    with pytest.raises(StudyError, match="no such test"):
        chosen_tables(["e3"])
