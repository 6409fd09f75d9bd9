"""A study on an engine, from its registration to its ledger, and what refutes it."""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from registry.design import RunId
from tests.study.engines import (
    CALIBRATION,
    RULE,
    engine_section,
    engine_study,
    fork_anew,
    literal,
    register,
    results,
    set_engine,
)
from tests.support import command, commit_file, copy_study
from verifier.calibration_checks import check_calibration
from verifier.check import Check, Outcome
from verifier.engine_checks import check_kind
from verifier.evidence import StudyEvidence, gather
from verifier.verification import verify_study

CAPPED = RunId("CAPPED", 1.0, 0)
Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module", autouse=True)
def _fork_server() -> None:
    fork_anew()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A study with its calibration and its test run on the stub, made once for
    all of a test run's processes. Read it; never change it.
    """
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if os.environ.get("PYTEST_XDIST_WORKER") else folder) / "engine-study"
    with folder.with_suffix(".lock").open("w") as lock, pytest.MonkeyPatch.context() as patch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        patch.setenv("NUMBA_DISABLE_JIT", "1")
        patch.setenv("TRAP_SIGNING_KEY", str(folder / "key"))
        if not (folder / "done").exists():
            make_whole(folder)
            (folder / "done").touch()
    # Whoever made it, its key signs what is added to copies of it.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAP_SIGNING_KEY", str(folder / "key"))
        yield folder / "study"


def make_whole(folder: Path) -> None:
    folder.mkdir()
    root = engine_study(folder, engine_section(), CALIBRATION, RULE)
    for name in ("all-miss-stub", "tested"):
        register(root, name)
        ran = command(root, "run", name)
        assert ran.code == 0, ran.text
        assert "on a real engine" in ran.out and "simulated" not in ran.text


@pytest.fixture(scope="module")
def evidence(whole: Path) -> StudyEvidence:
    return gather(whole)


def test_every_proof_of_a_whole_study_holds(whole: Path, tmp_path: Path) -> None:
    verified = command(whole, "verify", "--json")
    assert verified.code == 0, verified.out
    proofs = json.loads(verified.out)["proofs"]
    assert [proof["check"]["outcome"] for proof in proofs] == ["PROVEN", "PROVEN"]
    assert command(whole, "verify").out.count("verdict PASS") == 2
    runs = [run for proof in proofs for run in proof["runs"]]
    assert len(runs) == 4 and {run["outcome"] for run in runs} == {"PROVEN"}
    root = copy_study(whole, tmp_path)
    assert command(root, "ledger").code == 0
    ledger = (root / "evidence/LEDGER.md").read_text()
    assert ledger.count("| 1 | vllm 0.32.0 | PROVEN |") == 4 and "simulated" not in ledger


def test_what_is_recorded_of_the_engine(whole: Path) -> None:
    record = json.loads((whole / "runs/tested.v1/CAPPED/1.0/0/attempt-1/run.json").read_text())
    engine = record["engine"]
    assert (engine["name"], engine["simulated"], engine["version"]) == ("vllm", False, "0.32.0")
    assert engine["before"]["pool_tokens"] == 4096 and engine["before"]["prefix_caching"] is True
    assert engine["after"]["prompt_tokens_total"] > engine["before"]["prompt_tokens_total"]
    assert "--num-gpu-blocks-override" in engine["command"] and engine["client"]["errors"] == {}
    start = json.loads((whole / "runs/tested.v1/CAPPED/1.0/0/attempt-1/progress.jsonl").read_text().splitlines()[0])
    assert set(start) == {"time_s", "sessions", "open_turns", "gate_waiting", "turns"}


def published(whole: Path, evidence: StudyEvidence, folder: Path, change: Change) -> dict[str, Check]:
    """The checks of a run whose author changed run.json, and pushed its digest."""
    runs = folder / "runs"
    shutil.copytree(whole / "runs", runs)
    file = runs / f"tested.v1/{CAPPED.path}/attempt-1/run.json"
    fields = json.loads(file.read_text())
    change(fields)
    data = json.dumps(fields).encode()
    file.write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    records = tuple(
        dataclasses.replace(record, run_sha256=sha256)
        if (record.run, record.event, record.registration) == (CAPPED, "complete", "tested")
        else record
        for record in evidence.log.records
    )
    forged = dataclasses.replace(evidence, log=dataclasses.replace(evidence.log, records=records))
    proof = next(p for p in verify_study(forged, runs).proofs if p.tag == "reg/tested/v1")
    report = next(run for run in proof.runs if run.run == CAPPED)
    assert report.check is not None
    return {check.name: check for check in report.check.leaves()}


def test_the_true_record_published_again_is_refuted_by_nothing(
    whole: Path, evidence: StudyEvidence, tmp_path: Path
) -> None:
    found = published(whole, evidence, tmp_path, lambda _: None)
    assert {name for name, check in found.items() if check.outcome is Outcome.REFUTED} == set()
    for name in ("engine_kind", "engine_as_registered", "engine_counters", "attempt_decides"):
        assert found[name].outcome is Outcome.PROVEN, found[name]
    assert found["executed_again"].outcome is Outcome.UNPROVABLE and not found["executed_again"].needed


def of(part: str, key: str, value: Any) -> Change:
    """`engine.<part>.<key>` says something else; a function changes what stands there."""

    def change(fields: dict[str, Any]) -> None:
        place = fields["engine"][part] if part else fields["engine"]
        place[key] = value(place[key]) if callable(value) else value

    return change


@pytest.mark.parametrize(
    ("change", "name", "words"),
    [
        (of("", "simulated", True), "engine_kind", "run.json says a simulator, the registration runs on a real engine"),
        (of("", "name", "sglang"), "engine_as_registered", "the cell's engine is vllm"),
        (of("", "version", "0.31.0"), "engine_as_registered", "version '0.31.0', registered is '0.32.0'"),
        (of("before", "pool_tokens", 8192), "engine_as_registered", "pool_tokens 8192, registered is 4096"),
        (of("before", "block_tokens", 16), "engine_as_registered", "block_tokens 16, registered is 4"),
        (of("before", "prefix_caching", False), "engine_as_registered", "prefix_caching False, registered is True"),
        (of("after", "prompt_tokens_total", lambda n: n * 3), "engine_counters", "prompt_tokens, the turns say"),
        (of("after", "cached_tokens_total", lambda n: n * 3), "engine_counters", "cached_tokens, the turns say"),
        (of("after", "output_tokens_total", lambda n: 0), "engine_counters", "output_tokens, the turns say"),
        (of("before", "prompt_tokens_total", lambda n: n + 500), "engine_counters", "prompt_tokens, the turns say"),
    ],
)
def test_a_run_of_another_engine_than_registered(
    whole: Path, evidence: StudyEvidence, tmp_path: Path, change: Change, name: str, words: str
) -> None:
    found = published(whole, evidence, tmp_path, change)[name]
    assert found.outcome is Outcome.REFUTED
    assert words in found.reason


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (of("", "version", None), "engine_as_registered"),
        (of("", "before", None), "engine_counters"),
        (of("", "before", {"pool_tokens": "4096"}), "engine_as_registered"),
        (of("after", "output_tokens_total", None), "engine_counters"),
        (of("", "after", []), "engine_counters"),
    ],
)
def test_what_an_engine_does_not_say_is_not_proven(
    whole: Path, evidence: StudyEvidence, tmp_path: Path, change: Change, name: str
) -> None:
    found = published(whole, evidence, tmp_path, change)[name]
    assert found.outcome is Outcome.UNPROVABLE and not found.needed


def test_a_real_run_under_a_simulated_registration(evidence: StudyEvidence) -> None:
    registration = next(tag.registration for tag in evidence.tags if tag.id == "tested")
    assert registration is not None
    assert check_kind({"simulated": False}, registration).outcome is Outcome.PROVEN
    simulated = dataclasses.replace(registration, engine=None)
    assert check_kind({"simulated": True}, simulated).outcome is Outcome.PROVEN
    found = check_kind({"simulated": False}, simulated)
    assert found.outcome is Outcome.REFUTED
    assert "run.json says a real engine, the registration runs on a simulator" in found.reason


def test_a_calibration_on_another_engine_or_of_two_runs_is_refuted(whole: Path, evidence: StudyEvidence) -> None:
    registration = next(tag.registration for tag in evidence.tags if tag.id == "tested")
    assert registration is not None and registration.engine and registration.calibration
    earlier = {proof.tag: proof for proof in verify_study(evidence, whole / "runs").proofs}
    assert check_calibration(registration, earlier).outcome is Outcome.PROVEN
    other = dataclasses.replace(registration.engine, chunk_tokens=512)
    found = check_calibration(dataclasses.replace(registration, engine=other), earlier)
    assert found.outcome is Outcome.REFUTED and "started otherwise" in found.reason
    two = dict(list(registration.calibration.runs.items())[:2])
    fewer = dataclasses.replace(registration.calibration, runs=two)
    found = check_calibration(dataclasses.replace(registration, calibration=fewer), earlier)
    assert found.outcome is Outcome.REFUTED and "3 are the least" in found.reason


def test_a_calibration_on_another_engine_is_refused(whole: Path, tmp_path: Path) -> None:
    root = copy_study(whole, tmp_path)
    set_engine(root, engine_section(["--stub-prefill-token-s", "0.00001"]))
    commit_file(root, "rules/tested.yaml", RULE.replace("A small test", "Another small test"))
    refused = command(root, "register", "rules/tested.yaml")
    assert refused.code == 2
    assert "all-miss-stub was measured on an engine started otherwise" in refused.err
    # The model's files are part of how it is started.
    set_engine(root, engine_section())
    commit_file(root, "models/stub/config.json", "{}\n")
    assert "started otherwise" in command(root, "register", "rules/tested.yaml").err


def test_a_model_changed_after_the_registration_abandons_the_attempt(whole: Path, tmp_path: Path) -> None:
    root = copy_study(whole, tmp_path)
    text = CALIBRATION.replace("id: all-miss-stub", "id: again")
    commit_file(root, "rules/again.yaml", literal(text))
    register(root, "again")
    (root / "models/stub/config.json").write_text('{"architectures": ["Other"]}\n')
    ran = command(root, "run", "again")
    assert ran.code == 1
    assert "ALLMISS/closed/0 attempt 1: the model is not the registered one" in ran.out
    assert results(root)[-1]["event"] == "abandoned"
    assert "the model is not the registered one" in results(root)[-1]["reason"]
    folder = root / "runs/again.v1/ALLMISS/closed/0/attempt-1"
    abandoned = json.loads((folder / "abandoned.json").read_text())
    assert abandoned["reason"] == "the model is not the registered one" and abandoned["cause"] is None
    assert not (folder / "engine.log").exists()
    verified = command(root, "verify", "again")
    assert verified.code == 3 and "MISSING  ALLMISS/closed/0: abandoned" in verified.out


def test_an_engine_that_never_got_ready(tmp_path: Path) -> None:
    """The next attempt decides where the registration says so, and within its number."""
    options = tmp_path / "options"
    options.write_text("--stub-exit 3")
    section = engine_section(["--stub-options-file", str(options)])
    root = engine_study(tmp_path, section, literal(CALIBRATION).replace("max_attempts: 3", "max_attempts: 2"))
    register(root, "all-miss-stub")
    ran = command(root, "run", "all-miss-stub")
    assert ran.code == 1
    assert "attempt 1: the engine never got ready: it exited with 3" in ran.out
    (result,) = results(root)
    assert (result["event"], result["cause"]) == ("abandoned", "engine_never_ready")
    folder = root / "runs/all-miss-stub.v1/ALLMISS/closed/0"
    assert "stub: the engine cannot start" in (folder / "attempt-1/engine.log").read_text()
    options.write_text("")
    ran = command(root, "run", "all-miss-stub")
    assert ran.code == 0, ran.text
    assert [r["event"] for r in results(root)] == ["abandoned", "complete"]
    evidence = gather(root)
    assert decides(evidence, root).outcome is Outcome.PROVEN
    for change, words in (
        ({"exclusions": ()}, "attempt 1 was abandoned (engine_never_ready), which no registered exclusion names"),
        ({"exclusions": ("preempted",)}, "which no registered exclusion names"),
        ({"max_attempts": 1}, "not decidable: attempt 2, registered were 1"),
    ):
        found = decides(evidence, root, **change)
        assert found.outcome is Outcome.UNPROVABLE and words in found.reason


def decides(evidence: StudyEvidence, root: Path, **change: Any) -> Check:
    """Whether the attempt may decide, had the draft said otherwise."""
    (tag,) = evidence.tags
    assert tag.registration is not None
    draft = dataclasses.replace(tag.registration.draft, **change)
    registration = dataclasses.replace(tag.registration, draft=draft)
    told = dataclasses.replace(
        evidence, tags=type(evidence.tags)([dataclasses.replace(tag, registration=registration)])
    )
    (proof,) = verify_study(told, root / "runs").proofs
    (run,) = proof.runs
    assert run.check is not None and (run.state == "undecided") == bool(change)
    return next(check for check in run.check.leaves() if check.name == "attempt_decides")
