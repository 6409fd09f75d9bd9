"""What a registration quotes: its cell's calibration, another's plans."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path

import git

from cli.workflows.beacons import drawn_value
from cli.workflows.engines import engine_of
from cli.workflows.registered import latest, versions
from cli.workflows.reporter import Reporter
from cli.workflows.run import run_registration
from cli.workflows.verify import verify
from registry.draft import ENGINE, Draft
from registry.errors import RegistrationError
from registry.plan_source import PlanSource, difference
from registry.publish import publish
from registry.registration import Calibration
from registry.study import Study
from registry.witness.policy import Policy
from verifier.calibration_checks import LEAST_ENGINE_RUNS, quote
from verifier.check import Outcome
from verifier.report import Proof

Register = Callable[[Study, Path, Policy, Reporter], object]


def calibration_of(
    study: Study, repository: git.Repo, draft: Draft, policy: Policy, reporter: Reporter, register: Register
) -> Calibration | None:
    """The calibration to freeze; registered, drawn and run first where the
    cell is simulated and it is missing.
    """
    if draft.calibration is None:
        return None
    if not versions(repository, draft.calibration):
        if draft.cell.step_costs is None or draft.runs_on == ENGINE:
            raise RegistrationError(
                f"the calibration {draft.calibration} is not registered",
                where=draft.id,
                remedy=f"write rules/{draft.calibration}.yaml, register it, then trapkit run {draft.calibration}",
            )
        _register_calibration(study, repository, draft.calibration, policy, reporter, register)
    registered = latest(repository, draft.calibration)
    measures = registered.registration.draft.measures
    alike = (registered.registration.cell.name, registered.registration.draft.runs_on) == (
        draft.cell.name,
        draft.runs_on,
    )
    if not measures or not alike:
        raise RegistrationError(
            f"{draft.calibration} does not calibrate cell {draft.cell.name} on a {draft.runs_on}",
            where=draft.id,
            remedy="name the all-miss registration of this cell, made on the same kind of engine",
        )
    if registered.registration.engine != engine_of(study, draft):
        raise RegistrationError(
            f"{draft.calibration} was measured on an engine started otherwise than study.yaml says now",
            where=draft.id,
            remedy=f"register {draft.calibration} again for this engine, or start the one that it measured",
        )
    run_registration(study, repository, registered, policy, reporter)
    proof = _proven(study, draft.calibration, policy)
    _check_enough(proof, draft)
    reporter.say(f"calibration {proof.tag}: its runs hold")
    assert proof.registration is not None
    return quote(proof.registration, proof.runs)


def _check_enough(proof: Proof, draft: Draft) -> None:
    """RegistrationError where too few runs of a real engine would be quoted."""
    assert proof.registration is not None
    runs = len(quote(proof.registration, proof.runs).runs)
    if draft.runs_on == ENGINE and runs < LEAST_ENGINE_RUNS:
        raise RegistrationError(
            f"{runs} runs calibrate a real engine, {LEAST_ENGINE_RUNS} are the least",
            where=draft.calibration,
            remedy="give it more seeds",
        )


def plan_source_of(
    study: Study,
    repository: git.Repo,
    draft: Draft,
    calibration: Calibration | None,
    policy: Policy,
    reporter: Reporter,
) -> PlanSource | None:
    """The registration whose plans are taken: registered, pushed and drawn."""
    if draft.plan_from is None:
        return None
    other = latest(repository, draft.plan_from).registration
    unlike = difference(
        draft.design,
        calibration.lambda_ref_per_s if calibration else None,
        other.draft.design,
        other.calibration.lambda_ref_per_s if other.calibration else None,
    )
    if unlike:
        raise RegistrationError(
            f"the plans of {other.tag} are not for this design: {unlike}",
            where=draft.id,
            remedy="horizon and workload must be equal, rates and seeds among its own, lambda_ref the same",
        )
    value = drawn_value(study, repository, other, policy, reporter)
    return PlanSource(other.id, other.version, other.digest, value.chain, value.round, value.signature)


def _register_calibration(
    study: Study, repository: git.Repo, name: str, policy: Policy, reporter: Reporter, register: Register
) -> None:
    path = study.root / "rules" / f"{name}.yaml"
    reporter.say(f"the calibration {name} comes first: registering, drawing and running it")
    if not path.is_file():
        shipped = resources.files("rules") / f"{name}.yaml"
        if not shipped.is_file():
            raise RegistrationError(
                f"there is no rule file for the calibration {name}", where=str(path), remedy=f"write rules/{name}.yaml"
            )
        relative = path.relative_to(study.root).as_posix()
        publish(
            repository,
            study.settings.remote,
            {relative: shipped.read_bytes()},
            f"Add rules/{name}.yaml",
            "the same command",
        )
    register(study, path, policy, reporter)


def _proven(study: Study, identity: str, policy: Policy) -> Proof:
    """The calibration's proof. What only an online answer can add is not asked
    for here: it does not touch the values.
    """
    report, _ = verify(study.root, only=identity, policy=policy)
    proof = next(p for p in reversed(report.proofs) if p.kind == "registration")
    lacking = [c for c in proof.check.children if c.needed and c.outcome is not Outcome.PROVEN]
    only_unasked = [c.name for c in lacking] == ["independently_witnessed"] and proof.status.attainable == proof.claim
    if proof.failed or proof.missing or (proof.incomplete and not only_unasked):
        raise RegistrationError(
            f"the calibration {identity} is not proven: {proof.check.reason}",
            remedy=f"trapkit verify {identity} says why; run what is missing: trapkit run {identity}",
        )
    return proof
