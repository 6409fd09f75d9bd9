"""Drawing: the beacon value that a registration waited for, and its plans."""

from __future__ import annotations

import git

from cli.workflows.registered import Registered, archive_witness, check_pushed, drawn_value
from cli.workflows.reporter import Reporter
from registry.beacon import BeaconValue
from registry.study import Study


def draw(study: Study, repository: git.Repo, registered: Registered, reporter: Reporter) -> bool:
    """Read the beacon value of a registration and archive the witness's log;
    whether its plans are drawn now. RegistrationError where it cannot be.
    """
    registration = registered.registration
    if not registration.waits_for_beacon:
        archive_witness(repository, study)
        source = registration.plan_source
        reporter.say(
            f"{registration.tag} takes the plans of {source.tag}: they are drawn"
            if source
            else f"{registration.tag} has literal seeds: its plans need no draw"
        )
        return True
    check_pushed(repository, study, registered)
    value = drawn_value(study, repository, registration)
    sessions = [_first_plan_size(registered, seed, value) for seed in registration.draft.design.seeds.values]
    reporter.say(
        f"drew the plans of {registration.tag} from {value.chain} {value.signature[:12]}…: {', '.join(sessions)}"
    )
    return True


def _first_plan_size(registered: Registered, seed: int, value: BeaconValue) -> str:
    registration = registered.registration
    run = next(r for r in registration.draft.design.run_ids() if r.seed == seed)
    plan = registration.plan(run, value)
    count = plan.population or len(plan.base_arrivals_us) + len(plan.burst_arrivals_us)
    return f"seed {seed}: {count} sessions"
