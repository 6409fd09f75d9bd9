"""Registration: check, calibrate, rehearse, freeze, sign, push, draw."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import git

from artifacts.records import RECORDS_VERSION
from cli.workflows.beacons import promise
from cli.workflows.draw import collect, draw, status_of
from cli.workflows.engines import engine_of
from cli.workflows.matched_costs import matched_costs
from cli.workflows.quoted import calibration_of, plan_source_of
from cli.workflows.registered import (
    Registered,
    check_pushed,
    latest,
    remote_tags,
    versions,
)
from cli.workflows.rehearse import rehearse
from cli.workflows.reporter import Reporter
from cli.workflows.tagging import FrozenFile, push_frozen, signing_key
from cli.workflows.trace_scripts import scripts_from
from registry.bundle import bundled, scripts_path
from registry.draft import SIMULATOR, Draft, load_draft
from registry.draft_workload import Frozen
from registry.errors import RegistrationError, StudyError
from registry.plan_source import NO_BEACON
from registry.reading_catalogue import READINGS_VERSION
from registry.registration import Calibration, freeze, read_registration
from registry.study import Study, open_repository
from registry.study_cells import cells_of
from registry.study_settings import StudySettings
from registry.witness.policy import Policy
from verifier.golden import golden_digest
from verifier.status import RANK

INDEPENDENT = {"server", "github", "timestamps"}
"""Witnesses that someone other than the author can run."""


@dataclass(frozen=True)
class Outcome:
    """What `register` did: `new` is False where the same draft stood already;
    `drawn` whether its plans exist.
    """

    registered: Registered
    new: bool
    drawn: bool


def register(study: Study, file: Path, policy: Policy, reporter: Reporter, *, wait: bool = True) -> Outcome:
    """Register a rule file. The same draft again changes nothing; a changed
    one becomes the next version beside the old.
    """
    repository = open_repository(study)
    text, root = _committed_bytes(repository, study, file), study.root
    draft = load_draft(text, str(file), cells_of(root), scripts_from(root))
    return register_draft(study, repository, draft, policy, reporter, wait=wait)


def register_draft(
    study: Study, repository: git.Repo, draft: Draft, policy: Policy, reporter: Reporter, *, wait: bool
) -> Outcome:
    """Register a loaded draft whose file is committed."""
    signing_key(study)
    existing = versions(repository, draft.id)
    _check_remote_known(repository, study, draft.id, existing)
    if existing and _stands(study, existing[-1], draft, policy):
        check_pushed(repository, study, existing[-1])
        reporter.say(f"{existing[-1].registration.tag} holds this very draft: nothing to register")
        return Outcome(existing[-1], False, draw(study, repository, existing[-1], policy, reporter) if wait else False)
    highest = highest_claim(study.settings, draft)
    if draft.claim and RANK[draft.claim] > RANK[highest]:
        reporter.say(f"warning: it claims {draft.claim}; this study's witnesses allow {highest}: the proof will fail")
    if draft.plan_from:
        check_pushed(repository, study, latest(repository, draft.plan_from))
    calibration = calibration_of(study, repository, draft, policy, reporter, register)
    engine = engine_of(study, draft)
    source = plan_source_of(study, repository, draft, calibration, policy, reporter)
    rehearsal = _rehearsal(repository, draft, calibration, reporter)
    data = freeze(
        draft,
        len(existing) + 1 if not existing else existing[-1].registration.version + 1,
        beacon=NO_BEACON if source else promise(study.settings, policy, time.time()),
        calibration=calibration,
        rehearsal=rehearsal,
        readings={"version": READINGS_VERSION, "golden_sha256": golden_digest()},
        records_version=RECORDS_VERSION,
        claim=draft.claim or highest,
        supersedes=existing[-1].registration.digest if existing else None,
        plan_source=source,
        engine=engine,
    )
    registered = _push_registration(study, repository, data, draft.session_scripts)
    registration = registered.registration
    reporter.say(f"registered {registration.tag}, SHA-256 {registration.digest}, tagged, signed and pushed")
    if wait:
        return Outcome(registered, True, draw(study, repository, registered, policy, reporter))
    collect(study, repository, registered, policy, reporter)
    return Outcome(registered, True, False)


def highest_claim(settings: StudySettings, draft: Draft) -> str:
    """The strongest claim that the study's witnesses and beacon allow."""
    own_draw = settings.beacon.chain == "local" and draft.design.seeds.binding == "beacon"
    return "registered" if own_draw or not INDEPENDENT & set(settings.witnesses) else "pre-registered"


def _rehearsal(
    repository: git.Repo, draft: Draft, calibration: Calibration | None, reporter: Reporter
) -> dict[str, object] | None:
    """How often simulated runs would pass; None for a cell that cannot be."""
    if draft.cell.step_costs is None:
        return None
    if draft.runs_on == SIMULATOR or calibration is None:
        return rehearse(draft, calibration, reporter).frozen()
    source = latest(repository, calibration.registration).registration.draft
    matched = matched_costs(draft, source, calibration, reporter)
    return {**rehearse(matched.draft, calibration, reporter).frozen(), "costs_times": matched.times}


def _stands(study: Study, last: Registered, draft: Draft, policy: Policy) -> bool:
    """Whether the last version is this very draft, and not void."""
    if last.registration.draft_sha256 != draft.sha256:
        return False
    drand = last.registration.beacon.chain.startswith("drand:")
    return not drand or status_of(study, last, policy).name != "void"


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


def _push_registration(study: Study, repository: git.Repo, data: bytes, scripts: Frozen | None) -> Registered:
    written = scripts.data if scripts else None
    registration = read_registration(bundled(data, written), "the new registration")
    frozen = FrozenFile(
        registration.file,
        data,
        registration.digest,
        registration.tag,
        registration.draft.title,
        f"trapkit register rules/{registration.id}.yaml",
        {scripts_path(scripts.scripts.sha256): scripts.data} if scripts else {},
    )
    tag_object = push_frozen(study, repository, frozen)
    return Registered(registration, tag_object, data, written)
