"""Predictions: frozen before any run, evaluated again, scored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import SMALL_RULE, command, commit_file, copy_study, empty_study, git

COMPUTED = """predictors:
  - name: prompt
    kind: model-f-asymptotic
    predictor_version: 1
    costs: fitted
    source: Theorem 1(a)
    arm: BURST
    rate: 1.35
    window: judged
    reading: mean_prompt_tokens
    relative_tolerance: 0.5
  - name: long-turns
    kind: simulator
    predictor_version: 1
    source: the simulator on the drawn plans
    arm: CAPPED
    window: judged
    reading: sojourn_s
    relative_tolerance: 0.000001
blindness: none
"""
HELD = "      held: run.judged.gate_backlog_slope_per_s > -1.0\n"
AS_PREDICTED = "      as_predicted: abs(run.judged.sojourn_s - predicted.long_turns) <= 0.000001\n"
RULE = SMALL_RULE[: SMALL_RULE.index("predictors:")].replace(HELD, HELD + AS_PREDICTED)
RULE = RULE.replace("all(CAPPED.held)", "all(CAPPED.held) && all(CAPPED.as_predicted)")
RULE += COMPUTED + SMALL_RULE[SMALL_RULE.index("caveats: []") :]
TAG = "pred/small/v1"


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose `small` has computed predictors, drawn, not predicted."""
    root = empty_study(tmp_path_factory.mktemp("predicted"))
    commit_file(root, "rules/small.yaml", RULE)
    assert command(root, "register", "rules/small.yaml").code == 0
    return root


@pytest.fixture
def study(drawn: Path, tmp_path: Path) -> Path:
    return copy_study(drawn, tmp_path)


def _runs(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [run for proof in document["proofs"] if proof["tag"] == "reg/small/v1" for run in proof["runs"]]


def test_predictions_are_a_proof_of_their_own_and_are_scored(study: Path) -> None:
    predicted = command(study, "predict", "small")
    assert predicted.code == 0, predicted.text
    frozen = json.loads((study / "predictions/small.v1.json").read_text())
    assert len(frozen["values"]) == 4
    by_seed = {row["seed"]: row["value"] for row in frozen["values"] if row["predictor"] == "long-turns"}
    assert by_seed[0] != by_seed[1]
    assert git(study, "cat-file", "-t", TAG) == "tag"
    again = command(study, "predict", "small")
    assert again.code == 0 and "nothing to predict" in again.text
    assert command(study, "run", "small").code == 0
    result = command(study, "verify")
    assert result.code == 0, result.text
    assert result.out.splitlines()[-1] == "3 proofs, 0 failures"
    document = json.loads(command(study, "verify", "--json").out)
    scores = {s["name"]: s for p in document["proofs"] for s in p["scores"]}
    assert scores["long-turns"]["hits"] == 2
    assert scores["long-turns"]["predicted"] == scores["long-turns"]["measured"]
    (verdict,) = [v for r in _runs(document) if r["seed"] == 0 for v in r["verdicts"] if v["name"] == "as_predicted"]
    assert verdict["decision"]["value"] is True
    proof = next(p for p in document["proofs"] if p["tag"] == TAG)
    assert {c["name"]: c["outcome"] for c in proof["check"]["children"]}["before_any_run"] == "PROVEN"
    assert command(study, "ledger").code == 0
    assert TAG in (study / "evidence/LEDGER.md").read_text()


def test_a_rehearsal_predicts_on_the_plans_of_its_literal_seeds(drawn: Path) -> None:
    done = command(drawn, "rehearse", "rules/small.yaml", "--seeds", "2", "--json")
    assert done.code == 0, done.text
    (rate,) = json.loads(done.out)["rates"]
    assert rate["verdicts"]["CAPPED.as_predicted"] == [2, 2]


def test_run_predicts_by_itself_before_the_first_attempt(study: Path) -> None:
    assert command(study, "run", "small", "--seed", "0").code == 0
    assert TAG in git(study, "tag")
    assert command(study, "verify").code == 3
    late = command(study, "predict", "small")
    assert "nothing to predict" in late.text


def test_a_prediction_after_a_run_is_refused(study: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cli.workflows.run.computed", lambda _: [])
        assert command(study, "run", "small", "--seed", "0").code == 0
    result = command(study, "predict", "small")
    assert result.code == 2
    assert "runs of this registration have been started" in result.err
    assert command(study, "run", "small").code == 0
    verified = command(study, "verify")
    assert verified.code == 3
    assert "not frozen before the runs" in verified.out
    assert "no predictions are tagged" in verified.out
    assert "as_predicted: predicted.long_turns is absent" in verified.out


def test_nothing_to_predict(finished: Path) -> None:
    result = command(finished, "predict", "small")
    assert result.code == 2
    assert "no predictor of this registration is computed" in result.err


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("    costs: fitted\n", "", "needs costs"),
        ("    costs: fitted\n", "    costs: fitted\n    value: 3\n", "takes no value"),
        ("reading: mean_prompt_tokens", "reading: idle_s", "does not predict this reading"),
        ("arm: BURST", "arm: CAPPED", "name an arm without a gate"),
        ("name: long-turns", "name: prompt", "two predictors share a name"),
    ],
)
def test_a_predictor_that_cannot_be_computed(drawn: Path, tmp_path: Path, old: str, new: str, words: str) -> None:
    root = copy_study(drawn, tmp_path)
    commit_file(root, "rules/small.yaml", RULE.replace(old, new, 1))
    result = command(root, "register", "rules/small.yaml")
    assert result.code == 2
    assert words in result.err


@pytest.fixture(scope="session")
def predicted(drawn: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = copy_study(drawn, tmp_path_factory.mktemp("run"))
    assert command(root, "run", "small").code == 0
    return root


def test_a_changed_prediction_file_is_refuted(predicted: Path, tmp_path: Path) -> None:
    root = copy_study(predicted, tmp_path)
    path = root / "predictions/small.v1.json"
    commit_file(root, "predictions/small.v1.json", path.read_bytes().replace(b'"value":', b'"value":1'))
    result = command(root, "verify")
    assert result.code == 1
    assert "the prediction file at the study's head differs" in result.out


def test_predictions_that_the_predictors_do_not_give_are_refuted(predicted: Path, tmp_path: Path) -> None:
    import dataclasses

    from verifier.evidence import gather
    from verifier.verification import verify_study

    root = copy_study(predicted, tmp_path)
    evidence = gather(root)
    (tag,) = evidence.predictions
    assert tag.predictions is not None
    values = {key: value * 1.001 for key, value in tag.predictions.values.items()}
    forged = dataclasses.replace(tag, predictions=dataclasses.replace(tag.predictions, values=values))
    report = verify_study(dataclasses.replace(evidence, predictions=(forged,)), root / "runs")
    proof = next(p for p in report.proofs if p.tag == TAG)
    assert proof.failed and "was frozen as" in proof.check.reason
    other = dataclasses.replace(tag.predictions, registration_digest="0" * 64)
    swapped = dataclasses.replace(evidence, predictions=(dataclasses.replace(tag, predictions=other),))
    assert "another registration digest" in str(verify_study(swapped, root / "runs").proofs)


def test_predictions_pushed_after_a_run_are_refuted(predicted: Path, tmp_path: Path) -> None:
    import dataclasses

    from verifier.evidence import gather
    from verifier.verification import verify_study

    root = copy_study(predicted, tmp_path)
    evidence = gather(root)
    (log,) = evidence.logs
    late = [
        dataclasses.replace(row, timestamp="2099-01-01T00:00:00.000000Z") if row.ref == f"refs/tags/{TAG}" else row
        for row in log.rows
    ]
    moved = dataclasses.replace(evidence, logs=(dataclasses.replace(log, rows=tuple(late)),))
    report = verify_study(moved, root / "runs")
    proof = next(p for p in report.proofs if p.tag == TAG)
    assert report.exit_code == 1
    assert "a run was announced" in proof.check.reason
    assert proof.status.name == "retrospective"
    judged = next(p for p in report.proofs if p.tag == "reg/small/v1")
    assert judged.verdict.value is None
    assert "predicted.long_turns is absent" in judged.rates[0].decision.reason
