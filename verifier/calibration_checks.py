"""The calibration that a registration quotes, against that calibration's runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from statistics import median

from registry.draft import Measure
from registry.registration import Calibration, Registration
from verifier.check import Check, Outcome, proven, refuted, unprovable
from verifier.report import Proof
from verifier.run_report import RunReport

MEASURE = "all_miss_prefill_tokens_per_s"
LEAST_ENGINE_RUNS = 3
"""A real engine's runs scatter: the median of so many is the least."""


def measured(measure: Measure, runs: list[RunReport]) -> dict[str, tuple[str, float]]:
    """Run path to (run.json digest, reading) for every complete run of the
    measure's arm.
    """
    return {
        run.run.path: (str(run.run_sha256), run.readings[measure.window][measure.reading])
        for run in runs
        if run.run.arm == measure.arm and run.state == "complete" and run.readings
    }


def quote(registration: Registration, runs: list[RunReport]) -> Calibration:
    """The calibration as another registration freezes it: median over runs,
    lambda_ref that median over the expected prompt tokens of a session of the
    calibration's own workload. It is the cell's, whatever workload the other
    registration has.
    """
    session_tokens = registration.draft.design.workload.expected_session_prompt_tokens()
    (measure,) = registration.draft.measures
    values = measured(measure, runs)
    rate = float(median(value for _, value in values.values()))
    return Calibration(registration.id, registration.version, registration.digest, rate, rate / session_tokens, values)


def check_calibration(registration: Registration, proofs: Mapping[str, Proof]) -> Check:
    """The frozen calibration is what its own proven runs give today."""
    name = "calibration"
    frozen = registration.calibration
    if frozen is None:
        return proven(name, "needs none", needed=False)
    source = proofs.get(f"reg/{frozen.registration}/v{frozen.version}")
    if source is None or source.registration is None:
        return unprovable(name, f"its registration {frozen.registration} v{frozen.version} is not in the study")
    if source.registration.digest != frozen.digest:
        return refuted(name, f"{source.tag} has another digest than the one that was quoted")
    if source.failed:
        return refuted(name, f"the proof of {source.tag} failed: {source.check.reason}")
    if source.missing or source.check.outcome is Outcome.UNPROVABLE:
        return unprovable(name, f"{source.tag} is not wholly proven: {source.check.reason}")
    if replace(source.registration.cell, constants=()) != replace(registration.cell, constants=()):
        return refuted(name, f"{source.tag} measured another cell than the one that is frozen here")
    if source.registration.engine != registration.engine:
        return refuted(
            name, f"{source.tag} was measured on an engine started otherwise than the one that is frozen here"
        )
    if registration.engine and len(frozen.runs) < LEAST_ENGINE_RUNS:
        return refuted(name, f"{len(frozen.runs)} runs calibrate a real engine, {LEAST_ENGINE_RUNS} are the least")
    if not source.registration.draft.measures:
        return refuted(name, f"{source.tag} measures nothing for others")
    again = quote(source.registration, source.runs)
    if again.runs != frozen.runs:
        return refuted(name, f"the runs of {source.tag} give other values than those that were quoted")
    for key in (MEASURE, "lambda_ref_per_s"):
        if not math.isclose(getattr(again, key), getattr(frozen, key), rel_tol=0, abs_tol=0):
            return refuted(name, f"{key} was frozen as {getattr(frozen, key)}, its runs give {getattr(again, key)}")
    return proven(
        name,
        f"{source.tag}: {frozen.all_miss_prefill_tokens_per_s:.1f} tokens/s, "
        f"lambda_ref {frozen.lambda_ref_per_s:.5f}/s",
    )
