"""What the ledger's document says beside the proofs: order, thresholds, designs, versions."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.attack_model import ATTACK_MODEL
from ledger.designs import draft_changes
from ledger.document import ledger_document
from tests.docs.test_attacks_page import rows
from tests.ledger.made import e2, proof, registered, report
from verifier.report import Proof, dumps


def changed(**design: Any) -> dict[str, Any]:
    source = e2()
    source["design"] |= design
    return source


@pytest.fixture(scope="module")
def plain() -> Proof:
    return proof(registered())


def test_margins_have_signs_and_say_whose_clocks_they_lie_between(plain: Proof) -> None:
    timeline = ledger_document(report(plain))["registrations"][0]["timeline"]
    assert [one["margin_s"] for one in timeline] == [None, 3.25, -0.25, 172_800.0]
    assert [one["one_clock"] for one in timeline] == [False, True, False, True]
    assert {one["clock"] for one in timeline} == {"the clock of the local witness", "the author's own clock"}


def test_thresholds_are_the_rule_s_comparisons_with_both_sides_computed(plain: Proof) -> None:
    runs = ledger_document(report(plain))["registrations"][0]["runs"]
    burst = next(run for run in runs if run["path"] == "BURST/1.35/0")
    close, steep = burst["thresholds"]["trapped"]
    assert (close["sign"], close["left_value"], close["right_value"]) == ("<=", 100.0, pytest.approx(0.15 * 11_200))
    assert steep["left"] == "run.judged.backlog_slope_per_s"
    assert steep["right_value"] == pytest.approx(0.5 * 0.35 * 0.0725)
    assert close["holds"] is True and steep["holds"] is True
    for run in runs:
        for verdict in run["verdicts"]:
            held = [one["holds"] for one in run["thresholds"][verdict["name"]]]
            assert all(held) is verdict["decision"]["value"]


def test_a_reading_that_is_not_there_leaves_its_threshold_undecided() -> None:
    made = proof(registered())
    made.runs[0].readings["judged"]["backlog_slope_per_s"] = float("nan")
    first = ledger_document(report(made))["registrations"][0]["runs"][0]
    assert [one["holds"] for one in first["thresholds"]["trapped"]] == [True, None]
    assert first["thresholds"]["trapped"][1]["left_value"] is None


def test_same_designs_are_counted_together_whatever_their_titles_seeds_and_rules() -> None:
    tries = []
    for place in range(7):
        source = e2() | {"id": f"try-{place}", "title": f"Try {place}", "caveats": [f"number {place}"]}
        source["design"]["seeds"]["values"] = [place, place + 1, place + 2]
        if place == 6:
            source["rule"]["rate"] = "count(BURST.trapped) >= 1"
        tries.append(proof(registered(source), trapped=place == 6))
    other = proof(registered(changed(rates=[1.5]) | {"id": "other", "predictors": []}))
    first, second = ledger_document(report(*tries, other))["designs"]
    assert (first["registered"], first["passed"], first["failed"], first["rules"]) == (7, 1, 6, 2)
    assert (second["tags"], second["registered"]) == (["reg/other/v1"], 1)


def test_a_version_is_compared_with_the_one_it_supersedes() -> None:
    first = registered()
    source = e2()
    source["rule"]["runs"]["NOBURST"]["good"] = "run.judged.followup_hit_fraction >= 0.8"
    del source["predictors"][0]
    second = registered(source, 2, supersedes=first.digest)
    entries = ledger_document(report(proof(first), proof(second)))["registrations"]
    assert entries[0]["changes"] is None
    changes = entries[1]["changes"]
    assert changes["before"] == "reg/e2/v1"
    assert changes["changes"][0]["path"] == "rule.runs.NOBURST.good"
    gone = [c for c in changes["changes"] if c["after"] is None]
    assert {c["path"].split(".")[1] for c in gone} == {"served-prompt-at-1-35"}
    lonely = ledger_document(report(proof(second)))["registrations"][0]
    assert lonely["supersedes"] == first.digest and lonely["changes"] is None


def test_changes_are_few_short_and_tell_a_list_from_its_items() -> None:
    assert draft_changes({"a": [1, 2]}, {"a": [1, 3]}) == [{"path": "a", "before": "[1, 2]", "after": "[1, 3]"}]
    assert draft_changes({"a": {}}, {"a": {"b": None}}) == [
        {"path": "a", "before": "{}", "after": None},
        {"path": "a.b", "before": None, "after": "null"},
    ]
    many = draft_changes({}, {str(n): "x" * 1000 for n in range(200)})
    assert len(many) == 60 and all(len(str(one["after"])) <= 401 for one in many)


def test_rules_stand_beside_their_words(plain: Proof) -> None:
    rule = ledger_document(report(plain))["registrations"][0]["rule"]
    assert rule["words"].keys() == rule["runs"].keys() | rule["reported"].keys()
    assert rule["rate_words"].startswith("at least 2 BURST runs are “trapped”")


def test_the_attack_model_is_part_of_the_page_of_attacks() -> None:
    known = {tuple(cells[:3]) for cells in rows()}
    assert [row for row in ATTACK_MODEL if row not in known] == []


def test_the_document_has_the_same_bytes_twice() -> None:
    texts = {dumps(ledger_document(report(proof(registered())))) for _ in range(2)}
    assert len(texts) == 1
