"""The five answers of the first screen, and values in words."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.document import ledger_document
from ledger.page.first_screen import Tile, design_words, tiles
from ledger.page.words import number, shown, span
from tests.ledger.made import proof, registered, report
from verifier.check import group, refuted
from verifier.report import Proof


@pytest.fixture(scope="module")
def plain() -> Proof:
    return proof(registered())


def answers(*proofs: Proof, **more: Any) -> dict[str, Tile]:
    return {tile.question: tile for tile in tiles(ledger_document(report(*proofs, **more)))}


def test_what_holds_is_said_to_hold(plain: Proof) -> None:
    given = answers(plain)
    assert given["What came out"].answer == "1 passed, 0 failed" and given["What came out"].tone == "good"
    assert given["What came out"].lines == ("1 on a simulator, not a GPU", "1 registered, 1 passed: e2")
    assert (given["What failed"].answer, given["What failed"].tone) == ("Nothing", "good")
    assert given["When, by whose clock"].tone == "open"
    assert "earliest run announced 3.25 s after its push" in given["When, by whose clock"].lines


def test_a_failed_proof_and_a_rewritten_log_are_named() -> None:
    bad = proof(registered(), status="void")
    moved = proof(registered(version=2))
    moved.check = group(moved.tag, [refuted("push_witnessed", "the tag was moved")], "")
    failed = answers(bad, moved, log_problems=("rewritten",))["What failed"]
    assert (failed.answer, failed.tone) == ("2 proofs and the attempts log", "bad")
    assert failed.lines == (
        "attempts log: rewritten",
        "reg/e2/v1: claimed registered, shown void",
        "reg/e2/v2: push_witnessed: the tag was moved",
    )


def test_a_failing_test_is_a_result_and_no_failure() -> None:
    given = answers(proof(registered(), trapped=False))
    assert (given["What came out"].answer, given["What came out"].tone) == ("0 passed, 1 failed", "bad")
    assert given["What failed"].answer == "Nothing"


def test_nothing_at_all_is_not_good() -> None:
    given = answers()
    assert given["Promised"].answer == "0 registrations"
    assert given["When, by whose clock"].answer == "Not shown"
    assert given["What came out"].tone == "open"


def test_designs_are_counted_in_words() -> None:
    design = {"tags": [f"reg/a{n}/v1" for n in range(7)], "rules": 1, "registered": 7, "passed": 1, "failed": 6}
    assert design_words(design | {"undecided": 0}, 2) == "7 registered, 1 passed, 6 failed: a0, a1 and 5 more"
    assert design_words(design | {"undecided": 0}).endswith("a5, a6")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "+0 s"),
        (-0.25, "-0.25 s"),
        (119.0, "+119 s"),
        (600.0, "+10 min"),
        (-9000.0, "-2.5 h"),
        (1e6, "+11.6 days"),
    ],
)
def test_margins_have_a_sign_and_a_unit_that_fits(seconds: float, words: str) -> None:
    assert span(seconds) == words


def test_values_are_short_and_texts_are_printable() -> None:
    assert [number(value) for value in (None, True, 11471.2, 0.0294, 1e12)] == [
        "undefined", "yes", "11,471", "0.0294", "1e+12",
    ]  # fmt: skip
    assert shown({"a\u202e": ["b\x1b", 1, None]}) == {"aU+202E": ["bU+001B", 1, None]}
