"""Plans taken from another registration: the same arrivals, older than this."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from registry.draft import load_draft
from registry.errors import ManyErrors
from registry.plan_source import PlanSource
from tests.support import SMALL_RULE, command, commit_file, copy_study
from verifier.check import Outcome
from verifier.evidence import StudyEvidence, gather
from verifier.verification import verify_study

CAPPED = SMALL_RULE[SMALL_RULE.index("    CAPPED:\n") : SMALL_RULE.index("  windows:")]
HELD = SMALL_RULE[SMALL_RULE.index("    CAPPED:\n      held") : SMALL_RULE.index("  rate:")]
RULE = (
    SMALL_RULE[: SMALL_RULE.index("predictors:")]
    .replace(CAPPED, "")
    .replace(HELD, "")
    .replace(" && all(CAPPED.held)", "")
    .replace("id: small\n", "id: again\n")
    .replace("calibration: all-miss-small\n", "calibration: all-miss-small\nplan_from: small\n")
    .replace("values: [0, 1], binding: beacon", "values: [1], binding: plan_from")
    + "predictors: []\nblindness: the plans were known\ncaveats: []\ndeviations: []\namendments: []\n"
)
TAG = "reg/again/v1"


@pytest.fixture(scope="module")
def taken(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = copy_study(finished, tmp_path_factory.mktemp("taken"))
    commit_file(root, "rules/again.yaml", RULE)
    registered = command(root, "register", "rules/again.yaml")
    assert registered.code == 0, registered.text
    assert "takes the plans of reg/small/v1" in registered.text
    assert command(root, "run", "again").code == 0
    return root


def test_the_runs_carry_the_arrivals_of_the_registration_it_names(taken: Path) -> None:
    for arm in ("NOBURST", "BURST"):
        own, theirs = (
            pq.read_table(taken / f"runs/{folder}/{arm}/1.35/1/attempt-1/turns.parquet")
            for folder in ("again.v1", "small.v1")
        )
        assert own.equals(theirs)


def test_it_is_proven_and_the_ledger_says_that_the_plans_are_older(taken: Path) -> None:
    result = command(taken, "verify", "again", "--json")
    assert result.code == 0, result.text
    proofs = {p["tag"]: p for p in json.loads(result.out)["proofs"]}
    assert set(proofs) == {"reg/all-miss-small/v1", "reg/small/v1", TAG}
    checks = {c["name"]: c for c in proofs[TAG]["check"]["children"]}
    assert checks["plan_from"]["outcome"] == "PROVEN"
    assert "existed before this registration was made" in checks["plan_from"]["reason"]
    assert checks["drawn_after_push"]["needed"] is False
    assert proofs[TAG]["beacon"] is None
    assert command(taken, "ledger").code == 0
    page = (taken / "evidence/LEDGER.md").read_text()
    assert "Plans taken from `reg/small/v1`: they existed before this registration was made" in page
    assert "plans taken from reg/small/v1" in command(taken, "show", "again").out
    assert "plans of reg/small/v1" in command(taken, "status", "again").out


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("plan_from: small", "plan_from: nothing", "not registered"),
        ("horizon_s: 240", "horizon_s: 241", "its runs last 240 s, not 241 s"),
        ("first_prompt_tokens: 2000", "first_prompt_tokens: 2001", "another workload"),
        ("rates: [1.35]", "rates: [1.35, 1.5]", "it has no rate 1.5"),
        ("values: [1]", "values: [1, 7]", "it has no seed 7"),
        ("plan_from: small", "plan_from: all-miss-small", "its runs last 120 s"),
    ],
)
def test_plans_that_are_not_for_this_design_are_refused(
    taken: Path, tmp_path: Path, old: str, new: str, words: str
) -> None:
    root = copy_study(taken, tmp_path)
    commit_file(root, "rules/again.yaml", RULE.replace(old, new))
    result = command(root, "register", "rules/again.yaml")
    assert result.code == 2
    assert words in result.err


@pytest.mark.parametrize(
    ("old", "new", "words", "field"),
    [
        ("plan_from: small\n", "", "need each other", "design.seeds.binding"),
        ("binding: plan_from", "binding: beacon", "need each other", "design.seeds.binding"),
        ("plan_from: small", "plan_from: again", "cannot take its own plans", "plan_from"),
    ],
)
def test_a_draft_names_its_plans_in_one_way(old: str, new: str, words: str, field: str) -> None:
    with pytest.raises(ManyErrors) as caught:
        load_draft(RULE.replace(old, new, 1).encode(), "again.yaml")
    (error,) = caught.value.errors
    assert words in str(error) and str(error.where).endswith(f"field {field}")


def forged(evidence: StudyEvidence, change: Callable[[PlanSource], PlanSource]) -> StudyEvidence:
    """The evidence with another quotation in the registration that takes plans."""

    def with_source(tag: Any) -> Any:
        if tag.name != TAG:
            return tag
        registration = dataclasses.replace(tag.registration, plan_source=change(tag.registration.plan_source))
        return dataclasses.replace(tag, registration=registration)

    return dataclasses.replace(evidence, tags=tuple(with_source(tag) for tag in evidence.tags))


def outcome(evidence: StudyEvidence, runs: Path) -> tuple[Outcome, str]:
    proof = next(p for p in verify_study(evidence, runs).proofs if p.tag == TAG)
    (check,) = [c for c in proof.check.children if c.name == "plan_from"]
    return check.outcome, check.reason


def test_a_forged_quotation_is_refuted(taken: Path, tmp_path: Path) -> None:
    evidence, runs = gather(taken), tmp_path / "none"
    assert outcome(evidence, runs)[0] is Outcome.PROVEN
    digest = outcome(forged(evidence, lambda s: dataclasses.replace(s, digest="0" * 64)), runs)
    assert digest[0] is Outcome.REFUTED and "another digest" in digest[1]
    drawn = outcome(forged(evidence, lambda s: dataclasses.replace(s, signature="00" * 32)), runs)
    assert drawn[0] is Outcome.REFUTED and "another beacon value" in drawn[1]
    gone = outcome(forged(evidence, lambda s: dataclasses.replace(s, version=9)), runs)
    assert gone[0] is Outcome.UNPROVABLE and "not in the study" in gone[1]
    unlike = outcome(forged(evidence, lambda s: _of(evidence, "all-miss-small", s)), runs)
    assert unlike[0] is Outcome.REFUTED and "not for this design" in unlike[1]
    unseen = dataclasses.replace(
        evidence, tags=tuple(dataclasses.replace(t, sightings=()) if t.id == "small" else t for t in evidence.tags)
    )
    assert outcome(unseen, runs)[0] is Outcome.UNPROVABLE


def _of(evidence: StudyEvidence, identity: str, source: PlanSource) -> PlanSource:
    """A quotation of another registration, true in all but its fitness."""

    tag = next(t for t in evidence.tags if t.id == identity)
    value = tag.draw.value
    assert value is not None and tag.registration is not None
    return PlanSource(identity, 1, tag.registration.digest, value.chain, value.round, value.signature)
