"""Predictions: evaluated on the drawn plans, frozen and pushed before any run."""

from __future__ import annotations

import git

from cli.workflows.attempts import records_of
from cli.workflows.beacons import drawn_value
from cli.workflows.receipts import archive_receipts, pushed_tag
from cli.workflows.registered import Registered, check_pushed
from cli.workflows.rehearse import read_cached
from cli.workflows.reporter import Reporter
from cli.workflows.tagging import FrozenFile, push_frozen
from registry.beacon import BeaconValue
from registry.canonical import sha256_hex
from registry.design import RunId
from registry.errors import RegistrationError
from registry.plan import make_plan
from registry.predictions import file_of, freeze_predictions, tag_of
from registry.registration import Registration
from registry.study import Study
from registry.witness.policy import Policy
from runners.local_queue import run_all
from runners.run_one import check_can_run
from runners.simulated.run import simulate
from verifier.predictors import computed, evaluate, simulated_runs
from verifier.run_report import frames_of, read
from verifier.verdict import Readings


def is_predicted(repository: git.Repo, registration: Registration) -> bool:
    """Whether the registration's predictions are tagged here."""
    return bool(repository.git.for_each_ref(f"refs/tags/{tag_of(registration)}"))


def predict(study: Study, repository: git.Repo, registered: Registered, policy: Policy, reporter: Reporter) -> bool:
    """Freeze a registration's predictions; False where they stand already.

    RegistrationError where it has none to compute, is not pushed and drawn,
    or where a run has been started: then it would be no prediction.
    """
    registration = registered.registration
    if not computed(registration):
        raise RegistrationError(
            "no predictor of this registration is computed",
            where=registration.tag,
            remedy="stated ones are frozen with it; see docs/write-a-rule.md for the computed kinds",
        )
    check_pushed(repository, study, registered)
    if is_predicted(repository, registration):
        reporter.say(f"{tag_of(registration)} stands already: nothing to predict")
        return False
    if records_of(repository, study, registration):
        raise RegistrationError(
            "runs of this registration have been started",
            where=registration.tag,
            remedy="what comes now would be no prediction; register a new version",
        )
    beacon = drawn_value(study, repository, registration, policy, reporter) if registration.waits_for_beacon else None
    readings = _simulate(registered, beacon, reporter)
    values = evaluate(registration, beacon, readings.__getitem__)
    data = freeze_predictions(registration, values)
    title = f"predictions of {registration.tag}"
    again = f"trapkit predict {registration.id}"
    tag = tag_of(registration)
    tag_object = push_frozen(
        study, repository, FrozenFile(file_of(registration), data, sha256_hex(data), tag, title, again)
    )
    archive_receipts(study, repository, pushed_tag(repository, study, tag, tag_object, data), policy, reporter)
    reporter.say(f"froze {len(values)} predicted values under {tag}, tagged, signed and pushed")
    return True


def simulate_planned(order: tuple[bytes, RunId, bytes]) -> Readings:
    """One run of a drawn plan on the simulator; runs in a worker process."""
    data, run, key = order
    registration = read_cached(data)
    design = registration.draft.design
    plan = make_plan(key, design, design.arm(run.arm), registration.lambda_per_s(run), run.rate)
    tables = simulate(plan, design.arm(run.arm), registration.cell_of(run))
    return read(frames_of(tables), registration, run)


def _simulate(registered: Registered, beacon: BeaconValue | None, reporter: Reporter) -> dict[RunId, Readings]:
    registration = registered.registration
    runs = simulated_runs(registration)
    if runs:
        check_can_run(registration)
    orders = [(registered.bundle, run, registration.plan_key(run.seed, beacon)) for run in runs]
    readings: dict[RunId, Readings] = {}
    for (_, run, _), result in run_all(simulate_planned, orders):
        if isinstance(result, Exception):
            raise result
        readings[run] = result
        reporter.step(f"predicting {registration.tag} (simulated)", len(readings), len(orders))
    return readings
