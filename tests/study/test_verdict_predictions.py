"""Predicted verdicts and closed populations: frozen, evaluated again, scored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modelf.cells import CELLS
from modelf.closed_population import closed_curve
from modelf.workload import STANDARD_WORKLOAD
from registry.draft import load_draft
from registry.errors import TrapError
from tests.support import SMALL_RULE, command, commit_file, empty_study

PREDICTORS = """predictors:
  - name: said
    kind: stated
    source: a test
    arm: BURST
    rate: 1.35
    verdict: busy
    value: false
  - name: simulated
    kind: simulator
    predictor_version: 1
    source: the simulator on the drawn plans
    arm: BURST
    rate: 1.35
    verdict: busy
  - name: trapped
    kind: first-principles-trap
    predictor_version: 1
    source: peak against onset
    arm: BURST
    rate: 1.35
    verdict: busy
  - name: closed-turns
    kind: closed-population
    predictor_version: 1
    costs: step-costs
    source: the closed population
    arm: CLOSED
    window: judged
    reading: turns_per_s
    relative_tolerance: 0.5
"""
RULE = (
    SMALL_RULE[: SMALL_RULE.index("predictors:")] + PREDICTORS + SMALL_RULE[SMALL_RULE.index("blindness:") :]
).replace("    NOBURST: {}\n", "    NOBURST: {}\n    CLOSED: {population: 3}\n")


def test_they_are_frozen_evaluated_again_and_scored(tmp_path: Path) -> None:
    root = empty_study(tmp_path)
    commit_file(root, "rules/small.yaml", RULE)
    assert command(root, "register", "rules/small.yaml").code == 0
    shown = command(root, "show", "small").out
    assert "BURST at 1.35, verdict busy: no (stated)" in shown
    assert "BURST at 1.35, verdict busy: computed on the drawn plans (first-principles-trap)" in shown
    assert command(root, "run", "small").code == 0
    rows = json.loads((root / "predictions/small.v1.json").read_text())["values"]
    values = {(row["predictor"], row["seed"]): row["value"] for row in rows}
    assert values["simulated", 0] is True and values["trapped", 1] is False
    costs = CELLS["sglang-300k"].step_costs
    assert costs
    turns_per_s = closed_curve(costs, STANDARD_WORKLOAD, 300_000, [3]).turns_per_s[0]
    assert values["closed-turns", 0] == values["closed-turns", 1] == pytest.approx(float(turns_per_s))
    result = command(root, "verify")
    assert result.code == 0, result.text
    assert "prediction simulated (simulator, busy) at 1.35: yes, yes; measured yes, yes; 2 of 2 hit" in result.out
    document = json.loads(command(root, "verify", "--json").out)
    scores = {s["name"]: s for proof in document["proofs"] for s in proof["scores"]}
    assert scores["said"]["predicted"] == {"0": False, "1": False} and scores["said"]["hits"] == 0
    assert scores["said"]["verdict"] == "busy" and scores["said"]["reading"] is None
    assert scores["closed-turns"]["hits"] == 2 and scores["closed-turns"]["rate"] is None
    assert command(root, "ledger").code == 0
    ledger = (root / "evidence/LEDGER.md").read_text()
    assert "`verdict busy`" in ledger and "seed 0: yes, seed 1: yes" in ledger


def without(name: str, field: str) -> str:
    """The rule file without one line of a predictor."""
    start = RULE.index(f"name: {name}\n")
    place = RULE.index(f"    {field}:", start)
    return RULE[:place] + RULE[RULE.index("\n", place) + 1 :]


def changed(name: str, old: str, new: str) -> str:
    start = RULE.index(f"name: {name}\n")
    return RULE[:start] + RULE[start:].replace(old, new, 1)


def test_the_good_file_is_accepted() -> None:
    draft = load_draft(RULE.encode(), "small.yaml")
    assert [p.verdict for p in draft.predictors] == ["busy", "busy", "busy", None]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (without("trapped", "verdict"), "a first-principles-trap predictor needs verdict"),
        (without("simulated", "verdict"), "a predicted reading needs window"),
        (without("closed-turns", "relative_tolerance"), "a predicted reading needs relative_tolerance"),
        (changed("said", "value: false", "value: 0"), "a verdict is true or false"),
        (changed("said", "verdict: busy", "verdict: idle"), "the arm has no such run verdict"),
        (changed("said", "verdict: busy", "verdict: busy\n    window: judged"), "a predicted verdict takes no window"),
        (changed("closed-turns", "window: judged", "verdict: busy"), "closed-population predicts no verdict"),
        (changed("closed-turns", "turns_per_s", "sojourn_s"), "closed-population does not predict this reading"),
        (changed("closed-turns", "arm: CLOSED", "arm: BURST"), "this kind speaks of closed populations"),
        (changed("closed-turns", "arm: CLOSED", "arm: CLOSED\n    rate: 1.35"), "a closed population has no rate"),
        (changed("closed-turns", "step-costs", "fitted"), "the fitted costs say what a miss costs"),
        (changed("trapped", "arm: BURST", "arm: CAPPED").replace("held:", "busy:"), "that no gate holds back"),
        (
            SMALL_RULE.replace("value: 9000", "value: true"),
            "a reading is a number",
        ),
        (
            RULE.replace("turns_per_s > 0.0", "turns_per_s > NOBURST.judged.turns_per_s"),
            "the verdict reads more than its own run",
        ),
    ],
    ids=lambda value: value if len(value) < 60 else "file",
)
def test_a_prediction_that_cannot_be(text: str, words: str) -> None:
    with pytest.raises(TrapError) as caught:
        load_draft(text.encode(), "small.yaml")
    assert words in caught.value.diagnostics()
