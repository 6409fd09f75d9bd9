"""Registration: check, calibrate, rehearse, freeze, sign, push, draw."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import git

from artifacts.records import RECORDS_VERSION
from cli.workflows.draw import draw
from cli.workflows.registered import (
    Registered,
    check_pushed,
    drawn_value,
    latest,
    remote_tags,
    versions,
)
from cli.workflows.rehearse import rehearse
from cli.workflows.reporter import Reporter
from cli.workflows.run import run_registration
from cli.workflows.tagging import FrozenFile, push_frozen, signing_key
from cli.workflows.verify import verify
from registry.draft import Draft, load_draft
from registry.errors import RegistrationError, StudyError
from registry.plan_source import NO_BEACON, PlanSource, difference
from registry.publish import publish
from registry.reading_catalogue import READINGS_VERSION
from registry.registration import Calibration, freeze, read_registration
from registry.study import Study, open_repository
from registry.study_cells import cells_of
from registry.witness.local import LocalBeacon
from verifier.calibration_checks import quote
from verifier.golden import golden_digest
from verifier.report import Proof
from verifier.status import RANK

HIGHEST_CLAIM = {"local": "registered"}


@dataclass(frozen=True)
class Outcome:
    """What `register` did: `new` is False where the same draft stood already;
    `drawn` whether its plans exist.
    """

    registered: Registered
    new: bool
    drawn: bool


def register(study: Study, file: Path, reporter: Reporter, *, wait: bool = True) -> Outcome:
    """Register a rule file. The same draft again changes nothing; a changed
    one becomes the next version beside the old.
    """
    repository = open_repository(study)
    draft = load_draft(_committed_bytes(repository, study, file), str(file), cells_of(study.root))
    return register_draft(study, repository, draft, reporter, wait=wait)


def register_draft(study: Study, repository: git.Repo, draft: Draft, reporter: Reporter, *, wait: bool) -> Outcome:
    """Register a loaded draft whose file is committed."""
    signing_key(study)
    existing = versions(repository, draft.id)
    _check_remote_known(repository, study, draft.id, existing)
    if existing and existing[-1].registration.draft_sha256 == draft.sha256:
        check_pushed(repository, study, existing[-1])
        reporter.say(f"{existing[-1].registration.tag} holds this very draft: nothing to register")
        return Outcome(existing[-1], False, draw(study, repository, existing[-1], reporter) if wait else False)
    highest = max((HIGHEST_CLAIM[w] for w in study.settings.witnesses), key=RANK.__getitem__)
    if draft.claim and RANK[draft.claim] > RANK[highest]:
        reporter.say(f"warning: it claims {draft.claim}; this study's witnesses allow {highest}: the proof will fail")
    if draft.plan_from:
        check_pushed(repository, study, latest(repository, draft.plan_from))
    calibration = _calibration(study, repository, draft, reporter)
    source = _plan_source(study, repository, draft, calibration)
    rehearsal = rehearse(draft, calibration, reporter).frozen() if draft.cell.step_costs else None
    data = freeze(
        draft,
        len(existing) + 1 if not existing else existing[-1].registration.version + 1,
        beacon=NO_BEACON if source else LocalBeacon().promise(),
        calibration=calibration,
        rehearsal=rehearsal,
        readings={"version": READINGS_VERSION, "golden_sha256": golden_digest()},
        records_version=RECORDS_VERSION,
        claim=draft.claim or highest,
        supersedes=existing[-1].registration.digest if existing else None,
        plan_source=source,
    )
    registered = _push_registration(study, repository, data)
    registration = registered.registration
    reporter.say(f"registered {registration.tag}, SHA-256 {registration.digest}, tagged, signed and pushed")
    return Outcome(registered, True, draw(study, repository, registered, reporter) if wait else False)


def _committed_bytes(repository: git.Repo, study: Study, file: Path) -> bytes:
    """The rule file's bytes, which must be those at the study's head."""
    path = file.resolve()
    if not path.is_file():
        raise StudyError("no such rule file", where=str(file), remedy="name a file below rules/")
    if study.root not in path.parents:
        raise StudyError(
            "the rule file lies outside the study",
            where=str(file),
            remedy=f"put it below {study.root / 'rules'} and commit it",
        )
    relative = path.relative_to(study.root).as_posix()
    try:
        oid = repository.git.rev_parse("--verify", "--quiet", f"HEAD:{relative}")
    except git.GitCommandError:
        raise StudyError(
            "the rule file is not committed",
            where=relative,
            remedy=f"git add {relative} && git commit -m Rule, then repeat",
        ) from None
    committed: bytes = repository.odb.stream(bytes.fromhex(oid)).read()
    if committed != path.read_bytes():
        raise StudyError(
            "the rule file has changes that are not committed",
            where=relative,
            remedy=f"git commit -m Change {relative}, or git restore {relative}, then repeat",
        )
    return committed


def _check_remote_known(repository: git.Repo, study: Study, identity: str, existing: list[Registered]) -> None:
    here = {r.registration.tag for r in existing}
    unknown = sorted(set(remote_tags(repository, study, identity)) - here)
    if unknown:
        raise RegistrationError(
            "the remote holds registrations that this clone lacks",
            value=unknown,
            remedy=f"git fetch --tags {study.settings.remote} && git pull --rebase, then repeat",
        )


def _push_registration(study: Study, repository: git.Repo, data: bytes) -> Registered:
    registration = read_registration(data, "the new registration")
    frozen = FrozenFile(
        registration.file,
        data,
        registration.digest,
        registration.tag,
        registration.draft.title,
        f"trapkit register rules/{registration.id}.yaml",
    )
    tag_object = push_frozen(study, repository, frozen)
    return Registered(registration, tag_object, data)


def _calibration(study: Study, repository: git.Repo, draft: Draft, reporter: Reporter) -> Calibration | None:
    """The calibration to freeze; registered, drawn and run first where the
    cell is simulated and it is missing.
    """
    if draft.calibration is None:
        return None
    if not versions(repository, draft.calibration):
        if draft.cell.step_costs is None:
            raise RegistrationError(
                f"the calibration {draft.calibration} is not registered",
                where=draft.id,
                remedy=f"write rules/{draft.calibration}.yaml, register it, then trapkit run {draft.calibration}",
            )
        _register_calibration(study, repository, draft.calibration, reporter)
    registered = latest(repository, draft.calibration)
    measures = registered.registration.draft.measures
    if not measures or registered.registration.cell.name != draft.cell.name:
        raise RegistrationError(
            f"{draft.calibration} does not calibrate cell {draft.cell.name}",
            where=draft.id,
            remedy="name the all-miss registration of this cell",
        )
    run_registration(study, repository, registered, reporter)
    proof = _proven(study, draft.calibration)
    reporter.say(f"calibration {proof.tag}: proven")
    assert proof.registration is not None
    return quote(proof.registration, proof.runs)


def _plan_source(
    study: Study, repository: git.Repo, draft: Draft, calibration: Calibration | None
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
    value = drawn_value(study, repository, other)
    return PlanSource(other.id, other.version, other.digest, value.chain, value.round, value.signature)


def _register_calibration(study: Study, repository: git.Repo, name: str, reporter: Reporter) -> None:
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
    register(study, path, reporter)


def _proven(study: Study, identity: str) -> Proof:
    report, _ = verify(study.root, only=identity)
    proof = report.proofs[-1]
    if proof.failed or proof.incomplete:
        raise RegistrationError(
            f"the calibration {identity} is not proven: {proof.check.reason}",
            remedy=f"trapkit verify {identity} says why; run what is missing: trapkit run {identity}",
        )
    return proof
