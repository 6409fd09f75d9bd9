"""What a hostile author could publish consistently is still refuted.

Here the author has pushed digests of forged records: every digest fits, and
only what the records say, or executing the run again, gives them away.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from artifacts.attempt import AttemptWriter, attempt_folder
from artifacts.records import stamped
from registry.design import Arm, RunId
from registry.plan import make_plan, plan_key
from registry.registration import Registration
from runners.simulated.run import simulate
from verifier.check import Outcome
from verifier.evidence import StudyEvidence, gather
from verifier.report import StudyReport
from verifier.verification import verify_study

BURST = RunId("BURST", 1.35, 0)
CAPPED = RunId("CAPPED", 1.35, 0)
Tables = dict[str, pa.Table]


@dataclasses.dataclass
class Forge:
    """A copy of the finished study whose author publishes forged records."""

    root: Path
    evidence: StudyEvidence

    @property
    def registration(self) -> Registration:
        tag = next(t for t in self.evidence.tags if t.id == "small")
        assert tag.registration is not None
        return tag.registration

    def simulate(self, run: RunId, arm: Arm | None = None, seed: int | None = None) -> Tables:
        """The run's true records, or those of another arm or seed."""
        tag = next(t for t in self.evidence.tags if t.id == "small")
        key = self.registration.plan_key(run.seed if seed is None else seed, tag.draw.value)
        return self.simulate_key(run, key, arm)

    def simulate_key(self, run: RunId, key: bytes, arm: Arm | None = None) -> Tables:
        design = self.registration.draft.design
        treatment = arm or design.arm(run.arm)
        plan = make_plan(key, design, treatment, self.registration.lambda_per_s(run))
        return simulate(plan, treatment, self.registration.cell)

    def publish(self, run: RunId, tables: Tables | None = None, **fields: object) -> StudyReport:
        """Replace a run's records and its pushed digest; then verify."""
        folder = attempt_folder(self.root / "runs", self.registration.folder, run.path, 1)
        record = json.loads((folder / "run.json").read_text()) | fields
        tables = tables or self.simulate(run)
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        writer = AttemptWriter(folder)
        files = writer.write_tables({name: table.cast(stamped(name)) for name, table in tables.items()})
        rest = {k: v for k, v in record.items() if k not in ("schema", "records_version", "files")}
        sha256 = writer.finish(rest, files)
        records = tuple(
            dataclasses.replace(r, run_sha256=sha256)
            if (r.run, r.event, r.registration) == (run, "complete", "small")
            else r
            for r in self.evidence.log.records
        )
        log = dataclasses.replace(self.evidence.log, records=records)
        return verify_study(dataclasses.replace(self.evidence, log=log), self.root / "runs", "small")


@pytest.fixture
def forge(study: Path) -> Forge:
    return Forge(study, gather(study))


def reasons(report: StudyReport, run: RunId) -> dict[str, str]:
    """Name and reason of every refuted check of a run."""
    found = next(r for r in report.proofs[-1].runs if r.run == run)
    assert found.check is not None
    return {check.name: check.reason for check in found.check.leaves() if check.outcome is Outcome.REFUTED}


def edit(table: pa.Table, column: str, change: Callable[[list[object]], list[object]]) -> pa.Table:
    """The table with one column changed."""
    index = table.schema.get_field_index(column)
    field = table.schema.field(index)
    return table.set_column(index, field, pa.array(change(table.column(index).to_pylist()), field.type))


def test_the_true_records_published_again_are_proven(forge: Forge) -> None:
    report = forge.publish(BURST)
    assert report.exit_code == 0
    assert reasons(report, BURST) == {}


def test_another_seed_s_records(forge: Forge) -> None:
    found = reasons(forge.publish(BURST, forge.simulate(BURST, seed=1)), BURST)
    assert "plan of this registration" in found["plan"]
    assert "executed again" in found["executed_again"]


def test_another_run_s_folder_under_this_name(forge: Forge) -> None:
    report = forge.publish(BURST, forge.simulate(BURST, seed=1), seed=1)
    assert "run.json says seed 1" in reasons(report, BURST)["identity"]


def test_one_run_s_latencies_given_to_two_seeds(forge: Forge) -> None:
    report = forge.publish(BURST, forge.simulate(BURST, seed=1))
    shared = next(c for c in report.proofs[-1].check.children if c.name == "runs_distinct")
    assert shared.outcome is Outcome.REFUTED
    assert "has the latencies of" in shared.reason


def test_a_plan_not_of_this_registration(forge: Forge) -> None:
    tables = forge.simulate_key(BURST, plan_key("", 0, "", 0))
    assert "plan of this registration" in reasons(forge.publish(BURST, tables), BURST)["plan"]


def test_caching_switched_off(forge: Forge) -> None:
    arm = dataclasses.replace(forge.registration.draft.design.arm("BURST"), caching=False)
    found = reasons(forge.publish(BURST, forge.simulate(BURST, arm)), BURST)
    assert "caching was switched off" in found["arm_caching"]


def test_a_gate_that_let_too_many_in(forge: Forge) -> None:
    arm = forge.registration.draft.design.arm("CAPPED")
    assert arm.gate is not None
    wider = dataclasses.replace(arm, gate=dataclasses.replace(arm.gate, cap=arm.gate.cap + 3))
    found = reasons(forge.publish(CAPPED, forge.simulate(CAPPED, wider)), CAPPED)
    assert "5 sessions were admitted at once" in found["arm_gate"]


def test_a_gate_s_log_in_an_arm_without_one(forge: Forge) -> None:
    tables = forge.simulate(BURST) | {"gate": forge.simulate(CAPPED)["gate"]}
    assert "an arm without one" in reasons(forge.publish(BURST, tables), BURST)["arm_gate"]


def test_more_tokens_than_the_pool_holds(forge: Forge) -> None:
    tables = forge.simulate(BURST)
    tables["engine"] = edit(tables["engine"], "running_tokens", lambda v: [*v[:-1], 400_000])
    assert "in a pool of 300000" in reasons(forge.publish(BURST, tables), BURST)["arm_pool"]


@pytest.mark.parametrize(
    ("column", "change", "check", "words"),
    [
        ("cached_tokens", lambda v: [10**6, *v[1:]], "conservation", "more cached tokens than could be reused"),
        ("output_tokens", lambda v: [7, *v[1:]], "conservation", "output tokens are not the workload's"),
        ("first_token_s", lambda v: [-1.0, *v[1:]], "conservation", "is after"),
        ("prompt_tokens", lambda v: [v[0] + 1, *v[1:]], "turns", "prompt_tokens is not the workload's"),
        ("turn", lambda v: [*v[:-1], 0], "turns", "a turn number outside the turn law"),
        ("session", lambda v: ["ghost-1", *v[1:]], "turns", "never arrived"),
        ("planned_s", lambda v: [v[0] + 1e-6, *v[1:]], "turns", "the plan says"),
    ],
)
def test_records_that_contradict_the_plan(
    forge: Forge, column: str, change: Callable[[list[object]], list[object]], check: str, words: str
) -> None:
    tables = forge.simulate(BURST)
    tables["turns"] = edit(tables["turns"], column, change)
    assert words in reasons(forge.publish(BURST, tables), BURST)[check]


def test_a_session_left_out(forge: Forge) -> None:
    tables = forge.simulate(BURST)
    gone = tables["sessions"].column("session").to_pylist()[-1]
    for name in ("sessions", "turns"):
        rows = [i for i, s in enumerate(tables[name].column("session").to_pylist()) if s != gone]
        tables[name] = tables[name].take(rows)
    assert "sessions in the records" in reasons(forge.publish(BURST, tables), BURST)["plan"]


def test_a_latency_shortened_by_one_bit(forge: Forge) -> None:
    import math

    tables = forge.simulate(BURST)
    tables["turns"] = edit(
        tables["turns"], "first_token_s", lambda v: [v[0] if v[0] is None else math.nextafter(v[0], 1e9), *v[1:]]
    )
    found = reasons(forge.publish(BURST, tables), BURST)
    assert list(found) == ["executed_again"]
    assert "turns.first_token_s differs" in found["executed_again"]


def test_an_exploratory_run_passed_off_as_registered(forge: Forge) -> None:
    assert "exploratory True" in reasons(forge.publish(BURST, exploratory=True), BURST)["identity"]


def test_a_result_without_a_start_record(forge: Forge) -> None:
    log = dataclasses.replace(
        forge.evidence.log,
        records=tuple(r for r in forge.evidence.log.records if not (r.event == "start" and r.run == BURST)),
    )
    report = verify_study(dataclasses.replace(forge.evidence, log=log), forge.root / "runs", "small")
    assert "no start record before it" in reasons(report, BURST)["started"]


def test_runs_before_the_push_are_retrospective(forge: Forge) -> None:
    report = forge.publish(BURST, started_at="2020-01-01T00:00:00.000000Z")
    proof = report.proofs[-1]
    assert proof.status.name == "retrospective"
    assert proof.claim_too_strong
    assert report.exit_code == 1
