"""The proof of a registration tag, its checks nested.

Order of trust: the tag and its registration, the witness, the beacon, the
readings' version, the calibration, the plans' source, the attempts log, then
run by run. A later check is only made where what it rests on could be read.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from registry.attempt_log import AttemptLog, AttemptRecord
from registry.beacon import BeaconValue
from registry.design import RunId
from registry.predictions import Values
from registry.registration import Registration
from registry.rule import Decision
from registry.timestamps import moment
from registry.witness.local import CHAIN
from registry.witness.policy import Policy
from verifier.calibration_checks import check_calibration
from verifier.check import Check, Outcome, group, proven, refuted, unprovable
from verifier.evidence import StudyEvidence, TagEvidence
from verifier.moments import moments_of
from verifier.plan_source_checks import check_plan_from
from verifier.prediction_proof import check_predicted, frozen_predictions, in_time
from verifier.reexecution import Rerun
from verifier.registration_checks import (
    check_cell,
    check_frozen,
    check_readings,
    check_signature,
    check_supersedes,
    check_tag,
    check_unchanged,
)
from verifier.report import Proof
from verifier.run_report import RunReport, release_of, report_run
from verifier.scores import score
from verifier.status import Order, derive_status
from verifier.verdict import overall_verdict, rate_verdicts, run_verdicts
from verifier.witness_checks import check_beacon, check_independent, check_log, check_push, check_run_clocks


def records_by_run(log: AttemptLog, tag: TagEvidence) -> dict[RunId, list[AttemptRecord]]:
    """The attempts of one registration, by run, in log order."""
    found: dict[RunId, list[AttemptRecord]] = defaultdict(list)
    digest = tag.registration.digest if tag.registration else None
    for record in log.of(tag.id, tag.version):
        if record.digest == digest:
            found[record.run].append(record)
    return found


def drawable(registration: Registration, beacon: BeaconValue | None) -> bool:
    """Whether the registration's plans exist."""
    return beacon is not None or not registration.waits_for_beacon


def prove_registration(
    tag: TagEvidence,
    evidence: StudyEvidence,
    runs: Path,
    earlier: dict[str, Proof],
    executions: Rerun,
    places: dict[tuple[str, RunId], int],
    with_series: bool = False,
) -> Proof:
    """The proof of one registration; `earlier` holds those that it quotes.
    `with_series`: its runs have their series, too.
    """
    beacon = tag.draw.value
    checks = [
        check_tag(tag),
        check_signature(tag, evidence.settings.signing_key, evidence.policy.signing_keys),
        check_frozen(tag),
        check_unchanged(tag),
        check_push(tag, evidence.logs),
        check_beacon(tag.registration, tag.draw, tag),
    ]
    records = records_by_run(evidence.log, tag)
    proof = Proof(
        tag=tag.name,
        registration=tag.registration,
        check=checks[0],
        beacon=beacon,
        sightings=list(tag.sightings),
        attempts=[r for rows in records.values() for r in rows],
        status=derive_status((), order_of(tag, [], evidence.policy)),
    )
    if tag.registration is not None:
        readings = check_readings(tag.registration)
        checks += [
            readings,
            check_cell(tag.registration),
            check_supersedes(tag.registration, evidence.tags),
            check_calibration(tag.registration, earlier),
            check_plan_from(tag.registration, earlier),
            check_log(evidence, tag),
        ]
        if drawable(tag.registration, beacon):
            proof.runs = _run_reports(tag, beacon, records, runs, executions, places, with_series)
            frozen = frozen_predictions(evidence, tag)
            checks += [
                *_run_checks(proof.runs),
                check_run_clocks(evidence, tag, proof.runs),
                check_predicted(tag.registration, frozen),
            ]
            usable = frozen if in_time(evidence, tag) else {}
            _judge(proof, tag.registration, frozen, usable, readings.outcome is Outcome.PROVEN)
        else:
            proof.runs = [RunReport(run, "missing") for run in tag.registration.draft.design.run_ids()]
    starts = [r.time for r in proof.attempts if r.event == "start"]
    starts += [run.started_at for run in proof.runs if run.started_at]
    proof.status = derive_status(tag.sightings, order_of(tag, starts, evidence.policy))
    proof.moments = moments_of(evidence, tag, proof.runs)
    checks.insert(5, check_independent(tag, proof.status, proof.claim))
    proof.check = group(tag.name, checks, "every check holds")
    return proof


def order_of(tag: TagEvidence, starts: list[str], policy: Policy) -> Order:
    """By what a registration's tag precedes its runs, which began at `starts`."""
    registration = tag.registration
    return Order(
        by_beacon=registration is None or registration.waits_for_beacon,
        trusted=tag.draw.trusted,
        own_draw=registration is None or registration.beacon.chain == CHAIN,
        round_at=tag.draw.out_at,
        first_run_at=min(starts, key=moment, default=None),
        allowance_s=policy.run_clock_allowance_s,
    )


def _run_reports(
    tag: TagEvidence,
    beacon: BeaconValue | None,
    records: dict[RunId, list[AttemptRecord]],
    runs: Path,
    executions: Rerun,
    places: dict[tuple[str, RunId], int],
    with_series: bool,
) -> list[RunReport]:
    registration = tag.registration
    assert registration is not None
    design = registration.draft.design
    found = {
        run: release_of(registration, run, records.get(run, []), runs)
        for run in design.run_ids()
        if run.arm in design.releasing
    }

    def releases(run: RunId) -> dict[str, float]:
        beside = {arm: found.get(RunId(arm, run.rate, run.seed)) for arm in design.releasing}
        return {arm: release_s for arm, release_s in beside.items() if release_s is not None}

    return [
        report_run(
            registration,
            beacon,
            run,
            records.get(run, []),
            runs,
            executions,
            places.get((tag.name, run)),
            releases(run),
            with_series,
        )
        for run in design.run_ids()
    ]


def _run_checks(reports: list[RunReport]) -> list[Check]:
    checks = [report.check for report in reports if report.check]
    unrecorded = [report for report in reports if report.state == "unrecorded"]
    if unrecorded:
        checks.append(
            unprovable(
                "results_pushed", f"{len(unrecorded)} complete runs have no result record: run again to push them"
            )
        )
    return [*checks, _check_shared(reports)]


def _check_shared(reports: list[RunReport]) -> Check:
    """No run's latencies are those of another seed or rate: their plans differ."""
    seen: dict[bytes, RunReport] = {}
    for report in reports:
        if not report.latency_bytes:
            continue
        other = seen.setdefault(report.latency_bytes, report)
        if (other.run.seed, other.run.rate) != (report.run.seed, report.run.rate):
            return refuted("runs_distinct", f"{report.run.path} has the latencies of {other.run.path}")
    return proven("runs_distinct", "no run has another's latencies")


def _judge(proof: Proof, registration: Registration, frozen: Values, usable: Values, decidable: bool) -> None:
    """Verdicts, which may rest on the `usable` predictions, and scores of all
    `frozen` ones. Without `decidable` (this verifier's readings are not the
    frozen ones) no verdict is given.
    """
    readings = {run.run: run.readings for run in proof.runs if run.state == "complete" and run.readings}
    if decidable:
        for run in proof.runs:
            if run.run in readings:
                run.verdicts = run_verdicts(registration, run.run, readings, usable)
    verdicts = {run.run: run.verdicts for run in proof.runs if run.run in readings} if decidable else {}
    unavailable = [run.run for run in proof.runs if run.state == "unavailable"]
    proof.rates = rate_verdicts(registration, verdicts, unavailable)
    if not decidable:
        why = Decision(None, "this verifier's readings are not the frozen ones")
        proof.rates = [replace(rate, decision=why) for rate in proof.rates]
    proof.verdict = overall_verdict(proof.rates)
    proof.scores = score(registration, readings, {run.run: run.verdicts for run in proof.runs}, frozen)
