"""A real engine's runs beside simulated runs of the very same plans."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from artifacts.attempt import attempt_folder
from artifacts.reader import read_run_record, read_tables
from cli.workflows.attempts import records_of
from cli.workflows.beacons import drawn_value
from cli.workflows.matched_costs import matched_costs
from cli.workflows.registered import latest
from cli.workflows.reporter import Reporter
from registry.design import RunId, cell_under
from registry.errors import RegistrationError
from registry.registration import Registration
from registry.study import open_repository, open_study
from registry.witness.policy_file import built_in
from runners.simulated.run import simulate
from verifier.attempts import deciding
from verifier.run_report import frames_of
from verifier.series import Series, series_of

BIN_S = 10.0


@dataclass(frozen=True)
class Beside:
    """One registration's runs over time: on its engine, and simulated with the
    cell's step costs times `costs_times`, so that the all-miss rates agree.
    """

    registration: Registration
    costs_times: float
    runs: dict[RunId, tuple[Series, Series]]


def beside(root: Path, identity: str, reporter: Reporter, bin_s: float = BIN_S) -> Beside:
    """Every complete run of a registration on a real engine.

    RegistrationError where it ran on the simulator, or quotes no calibration.
    """
    study, policy = open_study(root), built_in()
    repository = open_repository(study)
    registration = latest(repository, identity).registration
    if registration.engine is None or registration.calibration is None:
        raise RegistrationError(
            "only runs of a real engine with a calibration stand beside simulated ones", where=registration.tag
        )
    source = latest(repository, registration.calibration.registration).registration.draft
    matched = matched_costs(registration.draft, source, registration.calibration, reporter)
    beacon = drawn_value(study, repository, registration, policy, reporter) if registration.waits_for_beacon else None
    records = records_of(repository, study, registration)
    found: dict[RunId, tuple[Series, Series]] = {}
    for run in registration.draft.design.run_ids():
        chosen = deciding(records[run])
        if chosen is None:
            continue
        folder = attempt_folder(study.runs, registration.folder, run.path, chosen.attempt)
        real = read_tables(folder, read_run_record(folder))
        arm, plan = registration.draft.design.arm(run.arm), registration.plan(run, beacon)
        cell = cell_under(arm, matched.draft.cell)
        horizon_s, block = registration.draft.design.horizon_of(arm), cell.cache_block_tokens
        found[run] = (
            series_of(frames_of(real), horizon_s, bin_s, block),
            series_of(frames_of(simulate(plan, arm, cell)), horizon_s, bin_s, block),
        )
    return Beside(registration, matched.times, found)
