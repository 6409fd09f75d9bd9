"""Drawing: the beacon value that a registration waited for, and its plans."""

from __future__ import annotations

import git

from cli.workflows.beacons import drawn_value
from cli.workflows.receipts import archive_receipts, pushed_tag
from cli.workflows.registered import Registered, check_pushed
from cli.workflows.reporter import Reporter
from registry.beacon import BeaconValue
from registry.errors import RegistrationError
from registry.study import Study
from registry.witness.policy import Policy
from verifier.evidence import gather
from verifier.proof import order_of
from verifier.status import Status, derive_status


def draw(study: Study, repository: git.Repo, registered: Registered, policy: Policy, reporter: Reporter) -> bool:
    """Archive what witnesses say of a registration, wait for its beacon value
    and archive it; whether its plans are drawn now. RegistrationError where
    it cannot be, or where its push came too late.
    """
    registration = registered.registration
    collect(study, repository, registered, policy, reporter)
    if not registration.waits_for_beacon:
        source = registration.plan_source
        reporter.say(
            f"{registration.tag} takes the plans of {source.tag}: they are drawn"
            if source
            else f"{registration.tag} has literal seeds: its plans need no draw"
        )
        return True
    check_pushed(repository, study, registered)
    value = drawn_value(study, repository, registration, policy, reporter)
    if status_of(study, registered, policy).name == "void":
        raise RegistrationError(
            "its push came after its beacon round was out: the registration is void",
            where=registration.tag,
            remedy="register the rule file again: that makes a new version, beside this one",
        )
    sessions = [_first_plan_size(registered, seed, value) for seed in registration.draft.design.seeds.values]
    reporter.say(
        f"drew the plans of {registration.tag} from {value.chain[:24]} {value.signature[:12]}…: {', '.join(sessions)}"
    )
    return True


def collect(study: Study, repository: git.Repo, registered: Registered, policy: Policy, reporter: Reporter) -> None:
    """Archive what witnesses say of a registration's push."""
    tag = registered.registration.tag
    pushed = pushed_tag(repository, study, tag, registered.tag_object, registered.data)
    archive_receipts(study, repository, pushed, policy, reporter)


def status_of(study: Study, registered: Registered, policy: Policy) -> Status:
    """The status of a registration by what lies in the study, before any run."""
    tag = next(tag for tag in gather(study.root, policy).tags if tag.name == registered.registration.tag)
    return derive_status(tag.sightings, order_of(tag, [], policy))


def _first_plan_size(registered: Registered, seed: int, value: BeaconValue) -> str:
    registration = registered.registration
    run = next(r for r in registration.draft.design.run_ids() if r.seed == seed)
    plan = registration.plan(run, value)
    count = plan.population or len(plan.base_arrivals_us) + len(plan.burst_arrivals_us)
    return f"seed {seed}: {count} sessions"
