"""Rates are judged on all that belongs to them: open runs and closed ones."""

from __future__ import annotations

from cli.workflows.rehearse import provisional
from registry.design import RunId
from registry.draft import load_draft
from registry.registration import Calibration, read_registration
from registry.rule import Decision
from tests.registry.test_rule_scope import RULE
from verifier.verdict import RunVerdict, rate_verdicts, run_verdicts

CALIBRATION = Calibration("all-miss-small", 1, "0" * 64, 11_200.0, 0.0725, {})
REGISTRATION = read_registration(provisional(load_draft(RULE.encode(), "paired.yaml"), CALIBRATION), "paired")
RUNS = REGISTRATION.draft.design.run_ids()
VERDICTS = {
    run: [RunVerdict(r.name, Decision(True), False) for r in REGISTRATION.draft.rule.runs if r.arm == run.arm]
    for run in RUNS
}


def test_a_closed_run_counts_at_every_rate_and_its_absence_leaves_every_rate_undecided() -> None:
    assert [(v.rate, v.decision.value) for v in rate_verdicts(REGISTRATION, VERDICTS)] == [(1.35, True), (1.65, True)]
    without = {run: found for run, found in VERDICTS.items() if run != RunId("ALLMISS", None, 1)}
    for verdict in rate_verdicts(REGISTRATION, without):
        assert (verdict.decision.value, verdict.decision.reason) == (None, "1 of 6 registered runs are missing")
        assert verdict.counts["ALLMISS.missed"] == (1, 1)
    only_one = {run: found for run, found in VERDICTS.items() if run.rate != 1.65}
    assert [v.decision.value for v in rate_verdicts(REGISTRATION, only_one)] == [True, None]


def test_a_verdict_reads_the_same_seed_and_rate_and_its_own_prediction() -> None:
    def verdict(own: RunId, hits: dict[RunId, float]) -> bool | None:
        window = {"followups_finished": 50.0}
        readings = {run: {"after_release": {**window, "hits": value}} for run, value in hits.items()}
        found = run_verdicts(REGISTRATION, own, readings, {})
        return next(v.decision.value for v in found if v.name == "as_without")

    own, twin = RunId("RESCUE", 1.65, 1), RunId("NOBURST", 1.65, 1)
    others = {RunId("NOBURST", 1.35, 1): 90.0, RunId("NOBURST", 1.65, 0): 90.0}
    assert verdict(own, {own: 40.0, twin: 44.0, **others}) is True
    assert verdict(own, {own: 40.0, twin: 50.0, **others}) is False
    assert verdict(own, {own: 40.0, **others}) is None
    run = RunId("NOBURST", 1.35, 0)
    readings = {run: {"judged": {"outstanding": 10.0}}}
    for value, expected in ((11.0, True), (30.0, False)):
        predicted = {("how-many", run): value, ("how-many", RunId("NOBURST", 1.65, 0)): 10.0}
        (found,) = run_verdicts(REGISTRATION, run, readings, predicted)
        assert found.decision.value is expected
