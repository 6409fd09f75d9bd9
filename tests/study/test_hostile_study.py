"""A hostile author controls everything in the study: nothing crashes, nothing false passes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from artifacts.reader import read_run_record, read_tables
from artifacts.records import SCHEMAS, stamped
from registry.attempt_log import BRANCH
from registry.canonical import canonical_bytes
from registry.design import RunId
from registry.errors import CapExceeded, RecordError, TrapError
from registry.predictions import Predictions
from registry.registration import Registration, read_registration
from tests.study.test_forgery import BURST, Forge
from tests.support import command, git
from verifier import reexecution
from verifier.calibration_checks import check_calibration
from verifier.check import Check, Outcome
from verifier.evidence import gather
from verifier.proof import frozen_predictions
from verifier.registration_checks import check_cell, check_frozen, check_readings, check_supersedes
from verifier.report import Proof, StudyReport
from verifier.scores import is_hit
from verifier.verification import verify_study

RUN = "runs/small.v1/BURST/1.35/0/attempt-1"
Change = Callable[[dict[str, Any]], object]


def frozen(study: Path, *change: Change) -> dict[str, Any]:
    """The small registration's fields after a change."""
    value: dict[str, Any] = json.loads((study / "registrations" / "small.v1.json").read_bytes())
    for one in change:
        one(value)
    return value


def read_back(study: Path, *change: Change) -> Registration:
    return read_registration(canonical_bytes(frozen(study, *change)), "hostile")


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.update(version=True),
        lambda v: v.update(claim=["registered"]),
        lambda v: v.update(supersedes={}),
        lambda v: v.update(records_version=None),
        lambda v: v.update(rehearsal={"rates": 5}),
        lambda v: v.update(beacon={"chain": ["x"], "round": 0}),
        lambda v: v.update(readings={"version": "1", "golden_sha256": []}),
        lambda v: v["calibration"].update(runs={"x": []}),
        lambda v: v["calibration"].update(registration=["all-miss-small"]),
        lambda v: v["calibration"].update(all_miss_prefill_tokens_per_s="fast"),
        lambda v: v["calibration"].update(lambda_ref_per_s=-1),
        lambda v: v["calibration"].update(lambda_ref_per_s=1e300),
        lambda v: v["cell"].update(cache_block_tokens=0),
        lambda v: v["cell"].update(pool_tokens="many"),
        lambda v: v["cell"]["step_costs"].update(chunk_tokens=0),
        lambda v: v["cell"]["step_costs"].update(decode_step_s=-1),
    ],
)
def test_a_malformed_field_makes_a_registration_unreadable(finished: Path, change: Change) -> None:
    with pytest.raises(TrapError):
        read_back(finished, change)


def test_a_calibration_other_than_the_draft_s(finished: Path) -> None:
    for change in (lambda v: v.update(calibration=None), lambda v: v["calibration"].update(registration="other")):
        with pytest.raises(TrapError, match="another calibration"):
            read_back(finished, change)


def test_more_runs_than_anyone_could_list(finished: Path) -> None:
    with pytest.raises(TrapError) as raised:
        read_back(finished, lambda v: v["draft"]["design"]["seeds"].update(values=list(range(10_000))), _many_rates)
    assert "too many runs" in raised.value.diagnostics()


def _many_rates(value: dict[str, Any]) -> None:
    value["draft"]["design"]["rates"] += [2 + n for n in range(10)]


def test_a_paper_s_cell_with_other_constants(finished: Path) -> None:
    assert check_cell(read_back(finished)).outcome is Outcome.PROVEN
    lying = read_back(finished, lambda v: v["cell"]["step_costs"].update(decode_step_s=0.5))
    assert check_cell(lying).outcome is Outcome.UNPROVABLE


def test_records_of_another_version(finished: Path) -> None:
    lying = read_back(finished, lambda v: v.update(records_version=7))
    assert check_readings(lying).outcome is Outcome.UNPROVABLE


def test_a_weaker_claim_than_the_draft_s(finished: Path) -> None:
    tag = next(t for t in gather(finished).tags if t.id == "small")
    assert tag.registration is not None
    draft = dataclasses.replace(tag.registration.draft, claim="pre-registered")
    lying = dataclasses.replace(tag, registration=dataclasses.replace(tag.registration, draft=draft))
    assert check_frozen(lying).outcome is Outcome.REFUTED


def test_what_a_version_supersedes(finished: Path) -> None:
    tags = gather(finished).tags
    first = next(t.registration for t in tags if t.id == "small" and t.registration)
    second = dataclasses.replace(first, version=2, supersedes=first.digest)
    assert check_supersedes(second, tags).outcome is Outcome.PROVEN
    assert check_supersedes(dataclasses.replace(second, supersedes=None), tags).outcome is Outcome.REFUTED
    assert check_supersedes(second, ()).outcome is Outcome.UNPROVABLE
    invented = dataclasses.replace(first, supersedes="0" * 64)
    assert check_supersedes(invented, tags).outcome is Outcome.UNPROVABLE


@pytest.fixture(scope="module")
def verified(finished: Path) -> StudyReport:
    return verify_study(gather(finished), finished / "runs")


@pytest.mark.parametrize("change", [{"cell": "pool"}, {"measures": ()}])
def test_a_calibration_of_something_else(verified: StudyReport, change: dict[str, Any]) -> None:
    proofs = {proof.tag: proof for proof in verified.proofs}
    source = proofs["reg/all-miss-small/v1"].registration
    small = proofs["reg/small/v1"].registration
    assert source is not None and small is not None
    if "cell" in change:
        other = dataclasses.replace(source, cell=dataclasses.replace(source.cell, pool_tokens=1))
    else:
        other = dataclasses.replace(source, draft=dataclasses.replace(source.draft, measures=()))
    lying: dict[str, Proof] = {
        "reg/all-miss-small/v1": dataclasses.replace(proofs["reg/all-miss-small/v1"], registration=other)
    }
    assert check_calibration(small, lying).outcome is Outcome.REFUTED


@pytest.mark.parametrize(
    "text",
    [
        b'{"schema": "trap-run-1", "files": 5, "engine": {"simulated": true}}',
        b'{"schema": "trap-run-1", "files": {}, "engine": []}',
        b'{"schema": "trap-run-1", "files": {}, "engine": null}',
        b'{"schema": "trap-run-1", "files": {}, "engine": {"simulated": "no"}}',
        b'{"schema": "trap-run-1", "engine": {"simulated": true, "name": "\\ud800"}}',
        b'{"schema": "trap-run-1", "wall_clock": NaN}',
        b"[" * 100_000,
    ],
)
def test_a_malformed_run_record(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "run.json").write_bytes(text)
    with pytest.raises(RecordError):
        read_run_record(tmp_path)


def broken_tables(study: Path, tmp_path: Path, name: str, table: pa.Table, **options: Any) -> None:
    """Read the tables of a run one of which the author wrote so."""
    record = read_run_record(study / RUN)
    files = dict(record.files)
    for each in SCHEMAS:
        target = tmp_path / f"{each}.parquet"
        target.write_bytes((study / RUN / target.name).read_bytes())
    pq.write_table(table, tmp_path / f"{name}.parquet", **options)
    files[f"{name}.parquet"] = hashlib.sha256((tmp_path / f"{name}.parquet").read_bytes()).hexdigest()
    read_tables(tmp_path, dataclasses.replace(record, files=files))


def with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), values)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e308])
def test_a_time_that_is_none(finished: Path, tmp_path: Path, value: float) -> None:
    turns = pq.read_table(finished / RUN / "turns.parquet")
    lying = with_column(turns, "done_s", pa.array([value] * turns.num_rows, pa.float64()))
    with pytest.raises(RecordError, match="none of a run"):
        broken_tables(finished, tmp_path, "turns", lying)


def test_a_count_whose_sum_would_wrap_around(finished: Path, tmp_path: Path) -> None:
    engine = pq.read_table(finished / RUN / "engine.parquet")
    lying = with_column(engine, "running_tokens", pa.array([2**62] * engine.num_rows, pa.int64()))
    with pytest.raises(RecordError, match="none of a run"):
        broken_tables(finished, tmp_path, "engine", lying)


@pytest.mark.parametrize("column", ["session", "outcome"])
def test_a_text_that_is_not_utf_8(finished: Path, tmp_path: Path, column: str) -> None:
    turns = pq.read_table(finished / RUN / "turns.parquet")
    raw = pa.array([b"\xff\xfe"] * turns.num_rows, pa.binary()).view(pa.string())
    with pytest.raises(RecordError, match="not a readable Parquet file"):
        broken_tables(finished, tmp_path, "turns", with_column(turns, column, raw))


def test_one_long_text_said_a_million_times(finished: Path, tmp_path: Path) -> None:
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000_000, pa.int32()), ["x" * 100_000])
    schema = stamped("gate")
    columns = [pa.array([0.0] * len(long)), pa.array(["admitted"] * len(long)), long]
    fields = [schema.field(0), schema.field(1), pa.field("session", long.type)]
    table = pa.table(columns, schema=pa.schema(fields, metadata=schema.metadata))
    with pytest.raises(CapExceeded, match="too long"):
        broken_tables(finished, tmp_path, "gate", table, store_schema=True)


def test_columns_that_no_table_has_are_not_even_read(finished: Path, tmp_path: Path) -> None:
    gate = pq.read_table(finished / RUN / "gate.parquet")
    with pytest.raises(RecordError, match="not gate of this version"):
        broken_tables(finished, tmp_path, "gate", gate.append_column("more", pa.array([], pa.list_(pa.int8()))))


def test_a_prediction_too_large_for_a_number_hits_nothing() -> None:
    assert not is_hit(math.inf, 1.0, 0.01)


def published(study: Path, change: Callable[[dict[str, pa.Table]], None], **fields: object) -> list[Check]:
    """The checks of one run whose forged records are published with their digest."""
    forge = Forge(study, gather(study))
    tables = forge.simulate(BURST)
    change(tables)
    report = forge.publish(BURST, tables, **fields)
    run = next(r for r in report.proofs[-1].runs if r.run == BURST)
    assert run.check is not None and report.exit_code != 0
    return list(run.check.leaves())


def test_a_simulated_run_passed_off_as_an_engine_s(study: Path) -> None:
    checks = published(study, lambda tables: None, engine={"name": "sglang", "simulated": False})
    wrong = [check for check in checks if check.outcome is Outcome.REFUTED]
    assert [check.name for check in wrong] == ["engine_kind"]
    assert "a real engine, the registration runs on a simulator" in wrong[0].reason


def test_one_session_twice(study: Path) -> None:
    def twice(tables: dict[str, pa.Table]) -> None:
        names = tables["sessions"].column("session").to_pylist()
        names[1] = names[0]
        tables["sessions"] = with_column(tables["sessions"], "session", pa.array(names, pa.string()))

    refuted = [check.name for check in published(study, twice) if check.outcome is Outcome.REFUTED]
    assert refuted == ["plan", "executed_again"]


def test_an_attempts_log_that_was_never_pushed(study: Path) -> None:
    tree = git(study, "rev-parse", f"{BRANCH}^{{tree}}")
    git(study, "update-ref", f"refs/heads/{BRANCH}", git(study, "commit-tree", tree, "-m", "all at once"))
    # The remote's branch still holds what the witness saw: that log is judged.
    assert command(study, "verify", "small").code == 0
    git(study, "update-ref", "-d", f"refs/remotes/origin/{BRANCH}")
    result = command(study, "verify", "small")
    assert result.code == 1
    assert "the log does not hold what the witness saw pushed" in result.out


def test_a_start_record_slipped_in_before_its_result(study: Path) -> None:
    place = study.parent / "log"
    git(study, "worktree", "add", "-q", "-f", str(place), BRANCH)
    (place / "attempts" / "000000-start.jsonl").write_bytes((place / "attempts" / "000001-start.jsonl").read_bytes())
    git(place, "add", "-f", "attempts")
    git(place, "commit", "-q", "-m", "before")
    assert any("one after the other" in problem for problem in gather(study).log.problems)


def test_two_results_of_one_attempt(study: Path) -> None:
    evidence = gather(study)
    first = next(r for r in evidence.log.records if (r.run, r.event) == (BURST, "complete"))
    second = dataclasses.replace(first, run_sha256="0" * 64)
    log = dataclasses.replace(evidence.log, records=(*evidence.log.records, second))
    report = verify_study(dataclasses.replace(evidence, log=log), study / "runs", "small")
    assert report.exit_code == 1
    assert "2 results that differ" in report.proofs[-1].check.reason


def test_a_remote_whose_name_no_file_can_have(study: Path) -> None:
    git(study, "remote", "set-url", "origin", "/" + "a" * 5000)
    assert gather(study).witness_source == "local witness: archived by the author"


def test_a_ref_with_a_line_separator_in_its_name(study: Path) -> None:
    git(study, "update-ref", "refs/heads/odd\u2028name", "HEAD")
    assert [tag.id for tag in gather(study).tags] == ["all-miss-small", "small"]


def test_an_exploratory_folder_that_is_not_utf_8(study: Path) -> None:
    folder = study / "runs" / "exploratory" / os.fsdecode(b"\xff") / "A" / "1.0" / "0" / "attempt-1"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    result = command(study, "verify", "small", "--json")
    assert result.code == 0
    assert json.loads(result.out.encode())["exploratory"] == ["?/A/1.0/0/attempt-1"]


def test_predictions_under_another_tag_score_nothing(finished: Path) -> None:
    evidence = gather(finished)
    tag = next(t for t in evidence.tags if t.id == "small")
    assert tag.registration is not None
    values = {("prompt", RunId("BURST", 1.35, 0)): 1.0}
    foreign = Predictions("other", 1, "", tag.registration.digest, values)
    other = dataclasses.replace(tag, id="other", name="pred/other/v1", predictions=foreign)
    assert frozen_predictions(dataclasses.replace(evidence, predictions=(other,)), tag) == {}


def test_an_execution_that_never_ends_is_given_up(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reexecution, "PROGRAM", "this")
    monkeypatch.setattr(reexecution, "LIMIT_S", 0.2)
    monkeypatch.setattr(reexecution.sys, "executable", str(_sleeper(finished)))
    with reexecution.rerun([reexecution.Job(b"{}", RunId("A", None, 0), b"")]) as again:
        assert again.tables(0) is None


def _sleeper(folder: Path) -> Path:
    program = folder.parent / "sleeper"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    return program
