"""Attacks on runs: records of another run, attempts and turns left out, clocks moved."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from artifacts.attempt import AttemptWriter
from artifacts.records import stamped
from registry.attempt_log import AttemptRecord
from registry.design import RunId
from registry.predictions import Predictions
from tests.study.attacks import SMALL, checks, judged, outcomes, shifted, tag_of
from tests.study.test_forgery import BURST, Forge, edit
from verifier.calibration_checks import check_calibration
from verifier.check import Check, Outcome
from verifier.evidence import StudyEvidence, TagEvidence, gather
from verifier.prediction_proof import prove_predictions
from verifier.report import Proof
from verifier.run_report import RunReport, report_run
from verifier.status import Order, derive_status
from verifier.verification import verify_study
from verifier.witness_checks import check_run_clocks

RUN = "runs/small.v1/BURST/1.35/0/attempt-1"
NOBURST = RunId("NOBURST", 1.35, 0)
Tables = dict[str, pa.Table]


@pytest.fixture(scope="module")
def evidence(finished: Path) -> StudyEvidence:
    return gather(finished)


@pytest.fixture(scope="module")
def forge(finished: Path, evidence: StudyEvidence) -> Forge:
    """What a forger has; it publishes nothing in the shared study."""
    return Forge(finished, evidence)


def reported(forge: Forge, folder: Path, run: RunId, tables: Tables) -> RunReport:
    """What a verifier says of forged records with digests that all fit,
    without executing the run again.
    """
    tag = tag_of(forge.evidence)
    attempt = folder / tag.registration.folder / run.path / "attempt-1" if tag.registration else folder
    fields = json.loads((forge.root / f"runs/small.v1/{run.path}/attempt-1/run.json").read_text())
    writer = AttemptWriter(attempt)
    files = writer.write_tables({name: table.cast(stamped(name)) for name, table in tables.items()})
    rest = {key: value for key, value in fields.items() if key not in ("schema", "records_version", "files")}
    sha256 = writer.finish(rest, files)
    own = [record for record in forge.evidence.log.of("small", 1) if record.run == run]
    records = [dataclasses.replace(r, run_sha256=sha256) if r.event == "complete" else r for r in own]
    return report_run(forge.registration, tag.draw.value, run, records, folder, None, None, {})


def refuted(report: RunReport) -> dict[str, str]:
    assert report.check is not None
    return {check.name: check.reason for check in report.check.leaves() if check.outcome is Outcome.REFUTED}


def test_true_records_are_refuted_by_nothing(forge: Forge, tmp_path: Path) -> None:
    assert refuted(reported(forge, tmp_path, BURST, forge.simulate(BURST))) == {}


def test_one_arm_s_records_posing_as_another_s(forge: Forge, tmp_path: Path) -> None:
    assert "plan" in refuted(reported(forge, tmp_path, NOBURST, forge.simulate(BURST)))


@pytest.mark.parametrize("which", [0, -1])
def test_turns_dropped(forge: Forge, tmp_path: Path, which: int) -> None:
    """The first or the last turn of a session of several."""
    tables = forge.simulate(BURST)
    names = tables["turns"].column("session").to_pylist()
    name = max(set(names), key=lambda each: (names.count(each), each))
    own = [row for row, each in enumerate(names) if each == name]
    tables["turns"] = tables["turns"].take([row for row in range(len(names)) if row != own[which]])
    assert refuted(reported(forge, tmp_path, BURST, tables))


def test_turns_dropped_with_their_count(forge: Forge, tmp_path: Path) -> None:
    """The session says that it did fewer; but then another turn became due."""
    tables = forge.simulate(BURST)
    turns = tables["turns"]
    done = turns.filter(pc.equal(turns.column("outcome"), "ok"))
    names = done.column("session").to_pylist()
    name = max(set(names), key=lambda each: (names.count(each), each))
    kept = pc.or_(pc.not_equal(turns.column("session"), name), pc.less(turns.column("turn"), names.count(name)))
    tables["turns"] = turns.filter(kept)
    place = tables["sessions"].column("session").to_pylist().index(name)
    count = names.count(name) - 1
    tables["sessions"] = edit(tables["sessions"], "turns_done", lambda v: [*v[:place], count, *v[place + 1 :]])
    assert f"turn {count + 1} of {name} became due" in refuted(reported(forge, tmp_path, BURST, tables))["turns"]


def test_a_session_without_its_turns(forge: Forge, tmp_path: Path) -> None:
    tables = forge.simulate(BURST)
    name = tables["sessions"].column("session").to_pylist()[3]
    tables["turns"] = tables["turns"].filter(pc.not_equal(tables["turns"].column("session"), name))
    tables["sessions"] = edit(tables["sessions"], "turns_done", lambda v: [*v[:3], 0, *v[4:]])
    assert f"{name} arrived, and has no turn" in refuted(reported(forge, tmp_path, BURST, tables))["turns"]


def of_burst(record: AttemptRecord) -> bool:
    return record.registration == "small" and record.run == BURST


@pytest.mark.parametrize(
    ("keep", "state"),
    [(lambda r: r.event == "start", "unrecorded"), (lambda r: False, "unrecorded")],
    ids=["its result hidden", "all of it hidden"],
)
def test_an_attempt_hidden(
    finished: Path, evidence: StudyEvidence, keep: Callable[[AttemptRecord], bool], state: str
) -> None:
    records = tuple(r for r in evidence.log.records if not of_burst(r) or keep(r))
    hidden = dataclasses.replace(evidence, log=dataclasses.replace(evidence.log, records=records, commits=()))
    proof = judged(hidden, runs=finished / "runs")
    assert {run.run: run.state for run in proof.runs}[BURST] == state
    assert proof.incomplete and outcomes(proof)["results_pushed"] is Outcome.UNPROVABLE


def test_a_run_retried_until_it_pleased(finished: Path, evidence: StudyEvidence) -> None:
    """The second attempt is chosen by no one while the first is complete."""
    start, done = (next(r for r in evidence.log.records if of_burst(r) and r.event == e) for e in ("start", "complete"))
    again = [
        dataclasses.replace(start, attempt=2, last_attempt=2),
        dataclasses.replace(done, attempt=2, last_attempt=2, run_sha256="0" * 64),
    ]
    log = dataclasses.replace(evidence.log, records=(*evidence.log.records, *again))
    proof = judged(dataclasses.replace(evidence, log=log))
    assert {run.run: run.attempt for run in proof.runs}[BURST] == 1
    assert len([record for record in proof.attempts if record.run == BURST]) == 4


@pytest.fixture(scope="module")
def proofs(finished: Path, evidence: StudyEvidence) -> dict[str, Proof]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_DISABLE_JIT", "1")
        return {proof.tag: proof for proof in verify_study(evidence, finished / "runs").proofs}


@pytest.mark.parametrize("change", ["all_miss_prefill_tokens_per_s", "lambda_ref_per_s", "digest", "runs"])
def test_a_calibration_replaced(proofs: dict[str, Proof], change: str) -> None:
    registration = proofs[SMALL].registration
    assert registration and registration.calibration
    assert check_calibration(registration, proofs).outcome is Outcome.PROVEN
    old = registration.calibration
    new = {"digest": "0" * 64, "runs": {}}.get(change) or (
        {} if change == "runs" else getattr(old, change) * (1 + 1e-12)
    )
    lying = dataclasses.replace(registration, calibration=dataclasses.replace(old, **{change: new}))
    assert check_calibration(lying, proofs).outcome is Outcome.REFUTED


def predicted(evidence: StudyEvidence, value: float) -> TagEvidence:
    tag = tag_of(evidence)
    assert tag.registration is not None
    values = {("prompt", BURST): value}
    frozen = Predictions("small", 1, "", tag.registration.digest, values)
    return dataclasses.replace(tag, name="pred/small/v1", predictions=frozen)


def prediction_checks(
    evidence: StudyEvidence, proofs: dict[str, Proof], tag: TagEvidence, again: dict[tuple[str, RunId], float]
) -> dict[str, Check]:
    return checks(prove_predictions(tag, evidence, proofs[SMALL], again))


def test_a_predictor_changed(evidence: StudyEvidence, proofs: dict[str, Proof]) -> None:
    """Another value, another name, another run than the registered predictors give."""
    tag = predicted(evidence, 9000.0)
    for again, expected in (
        ({("prompt", BURST): 9000.0}, Outcome.PROVEN),
        ({("prompt", BURST): 9000.0 * (1 + 1e-8)}, Outcome.REFUTED),
        ({("other", BURST): 9000.0}, Outcome.REFUTED),
        ({("prompt", NOBURST): 9000.0}, Outcome.REFUTED),
    ):
        assert prediction_checks(evidence, proofs, tag, again)["evaluated_again"].outcome is expected


@pytest.mark.parametrize("late", [False, True])
def test_predictions_after_a_run_whose_records_say_later(
    evidence: StudyEvidence, proofs: dict[str, Proof], late: bool
) -> None:
    """The witness's rows decide, whatever times the start records bear."""
    tag, (log,) = predicted(evidence, 9000.0), evidence.logs
    pushed = next(row for row in log.rows if row.ref == f"refs/tags/{SMALL}")
    start = log.first[evidence.log.commits_of_starts("small", 1)[0]]
    time = shifted(start.timestamp, 1e-6 if late else -1e-6)
    row = dataclasses.replace(pushed, ref="refs/tags/pred/small/v1", timestamp=time)
    records = [dataclasses.replace(r, time="2099-01-01T00:00:00.000000Z") for r in evidence.log.records]
    moved = dataclasses.replace(
        evidence,
        log=dataclasses.replace(evidence.log, records=tuple(records)),
        logs=(dataclasses.replace(log, rows=(*log.rows, row)),),
    )
    tag = dataclasses.replace(tag, sightings=(log.sighting(row),))
    found = prediction_checks(moved, proofs, tag, {})["before_any_run"]
    assert found.outcome is (Outcome.REFUTED if late else Outcome.PROVEN)


@pytest.mark.parametrize(("shift_s", "expected"), [(0, Outcome.PROVEN), (-1e-6, Outcome.UNPROVABLE)])
def test_a_run_s_clock_shifted(evidence: StudyEvidence, shift_s: float, expected: Outcome) -> None:
    """With literal seeds a run may not say that it began before it was announced."""
    tag, log = tag_of(evidence), evidence.logs[0]
    assert tag.registration is not None
    draft = tag.registration.draft
    seeds = dataclasses.replace(draft.design.seeds, binding="literal")
    draft = dataclasses.replace(draft, design=dataclasses.replace(draft.design, seeds=seeds))
    literal = dataclasses.replace(tag, registration=dataclasses.replace(tag.registration, draft=draft))
    announced = log.first[evidence.log.commits_of_starts("small", 1)[0]].timestamp
    run = RunReport(BURST, "complete", 1, started_at=shifted(announced, shift_s))
    assert check_run_clocks(evidence, literal, [run]).outcome is expected


@pytest.mark.parametrize(
    ("skew_s", "allowance_s", "expected"),
    [(1e-6, 0, "pre-registered"), (0, 0, "registered"), (1, 1, "registered"), (1.1, 1, "pre-registered")],
)
def test_equal_times_and_a_second_of_skew(
    evidence: StudyEvidence, skew_s: float, allowance_s: float, expected: str
) -> None:
    """By run clocks, before means strictly before, less the policy's allowance."""
    sighting = dataclasses.replace(tag_of(evidence).sightings[0], independent=True)
    order = Order(False, False, False, None, shifted(sighting.time, skew_s), allowance_s)
    assert derive_status([sighting], order).name == expected
