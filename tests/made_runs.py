"""Runs that were never made: readings and series by hand, for tables and pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from cli.workflows.rehearse import provisional
from cli.workflows.reproduce import shipped_draft
from registry.beacon import BeaconValue
from registry.design import RunId
from registry.reading_catalogue import READING_KINDS
from registry.registration import Calibration, Registration, read_registration
from verifier.check import proven
from verifier.report import Proof, StudyReport
from verifier.run_report import RunReport
from verifier.series import Series, coarse_bin_s
from verifier.status import Status
from verifier.verdict import OverallVerdict

LAMBDA_REF_PER_S = 0.072

Change = Callable[[Registration, RunId], Mapping[str, float]]


def registration_of(test: str) -> Registration:
    """A shipped rule file as if it were registered."""
    draft = shipped_draft(test)
    quoted = draft.calibration and Calibration(draft.calibration, 1, "0" * 64, 11_126.0, LAMBDA_REF_PER_S, {})
    return read_registration(provisional(draft, quoted or None), test)


def is_stuck(run: RunId) -> bool:
    """Which made-up runs miss every turn: those of bursts above 40 sessions."""
    return run.arm.startswith("BURST") and int(run.arm.removeprefix("BURST") or 200) > 40


def readings_of(registration: Registration, run: RunId, change: Change | None = None) -> dict[str, dict[str, float]]:
    """The same readings in every window, but for what `change` says."""
    hit = 0.0 if is_stuck(run) else 1.0
    values = {
        **dict.fromkeys(READING_KINDS, 1.0),
        "followup_hit_fraction": hit,
        "max_hit_300s": hit,
        "idle_s": 5.0 if hit else 300.0 + run.seed,
        "turnover_s": 200.0 if hit else 25.0,
        "outstanding": 2.0 + run.seed if hit else 200.0 + run.seed,
        "engaged_s": math.nan,
        "release_s": 4000.0 + 100 * run.seed if run.arm == "RESCUE" else math.nan,
        "relapses": 0.0,
    }
    if change:
        values |= change(registration, run)
    return {window.name: dict(values) for window in registration.draft.design.windows}


def series_of_run(registration: Registration, run: RunId) -> Series:
    """A series whose hits are all or nothing after the burst."""
    design = registration.draft.design
    bin_s = coarse_bin_s(design.horizon_s)
    middle_s = (np.arange(math.ceil(design.horizon_s / bin_s)) + 0.5) * bin_s
    late = middle_s > 1200.0
    hits = np.where(late & is_stuck(run), 0.0, 1.0)
    rescue = run.arm == "RESCUE"
    return Series(
        bin_s=bin_s,
        middle_s=middle_s,
        hits=hits,
        outstanding=np.where(hits > 0, 3.0, middle_s / 40),
        at_gate=np.where(rescue & late, 10.0, 0.0),
        completions_per_s=np.full(middle_s.size, 0.05 + 0.01 * run.seed),
        engaged_s=1800.0 if rescue else math.nan,
        release_s=4000.0 + 100 * run.seed if rescue else math.nan,
    )


def proof_of(test: str, change: Change | None = None, *, simulated: bool = True) -> Proof:
    """A proven registration whose every run is there."""
    registration = registration_of(test)
    runs = [
        RunReport(
            run,
            "complete",
            1,
            simulated=simulated,
            check=proven(run.path, "made up"),
            readings=readings_of(registration, run, change),
            series=series_of_run(registration, run),
        )
        for run in registration.draft.design.run_ids()
    ]
    status = Status("registered", "made up", "registered")
    tag = f"reg/{test}/v1"
    check = proven(tag, "made up")
    beacon = BeaconValue("local", 1, "ab" * 32, "made up")
    return Proof(tag, registration, check, status, [], beacon, runs=runs, verdict=OverallVerdict(True, "PASS"))


def report_of(*proofs: Proof) -> StudyReport:
    """A verification of a study of these."""
    return StudyReport("made-up", "0" * 40, list(proofs), "none", (), [])
