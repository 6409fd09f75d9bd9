"""Ledgers without runs: proofs of e2 whose readings are made up, judged as real ones are."""

from __future__ import annotations

import copy
import dataclasses
import io
from collections.abc import Mapping
from importlib import resources
from typing import Any

import numpy as np

from cli.render.picture_arms import draw_arms
from cli.render.pictures import drawing
from ledger.page.figure import Figure
from registry.attempt_log import AttemptRecord
from registry.beacon import BeaconPromise, BeaconValue
from registry.design import RunId
from registry.draft import build_draft, load_draft
from registry.plan_source import to_be_quoted
from registry.reading_catalogue import READING_KINDS
from registry.registration import Calibration, Registration, freeze, read_registration
from registry.strict_yaml import Document
from registry.witness.sightings import Sighting
from verifier.check import group, proven, unprovable
from verifier.moments import AUTHOR, Moment
from verifier.report import Proof, StudyReport
from verifier.run_report import RunReport
from verifier.scores import score
from verifier.series import Series
from verifier.status import Status
from verifier.verdict import overall_verdict, rate_verdicts, run_verdicts

CALIBRATION = Calibration("all-miss-sglang-300k", 1, "0" * 64, 11_200.0, 0.0725, {})
PUSHED = "2026-01-31T12:00:00.250000Z"


def e2() -> dict[str, Any]:
    """The source of e2's rule file, with stated predictors only, free to change."""
    source = copy.deepcopy(load_draft((resources.files("rules") / "e2.yaml").read_bytes(), "e2.yaml").source)
    source["predictors"] = [p for p in source["predictors"] if p["kind"] == "stated"]
    return source


def registered(source: Mapping[str, Any] | None = None, version: int = 1, **more: Any) -> Registration:
    """The source, frozen and read back."""
    shipped = load_draft((resources.files("rules") / "e2.yaml").read_bytes(), "e2.yaml")
    draft = build_draft(Document("made.yaml", dict(source or e2())), {shipped.cell.name: shipped.cell})
    rates = [{"rate": rate, "pass_share": 0.95, "verdicts": {}} for rate in draft.design.judged_rates]
    frozen = freeze(
        draft,
        version,
        beacon=BeaconPromise("local-witness", 0),
        calibration=CALIBRATION,
        rehearsal={"engine": "simulated", "seeds": list(range(20)), "rates": rates},
        readings={"version": 1, "golden_sha256": "0" * 64},
        records_version=1,
        claim="registered",
        supersedes=more.get("supersedes"),
        plan_source=to_be_quoted(draft.plan_from),
    )
    return read_registration(frozen, "made")


def readings_of(run: RunId, registration: Registration, trapped: bool) -> dict[str, dict[str, float]]:
    """What a run could have read: BURST misses if it is trapped, all others hit."""
    misses = run.arm == "BURST" and trapped
    values = dict.fromkeys(READING_KINDS, 12.5) | {
        "followup_hit_fraction": 0.0 if misses else 0.9996,
        "uncached_prefill_tokens_per_s": 11_300.0 + run.seed if misses else 1_100.0,
        "backlog_slope_per_s": 0.03 if misses else -0.0001,
        "mean_prompt_tokens": 9_200.0,
    }
    return {window.name: dict(values) for window in registration.draft.design.windows}


def proof(registration: Registration, *, trapped: bool = True, missing: int = 0, status: str = "registered") -> Proof:
    """A proof of the registration; without its last `missing` runs."""
    runs = registration.draft.design.run_ids()
    there = runs[: len(runs) - missing]
    readings = {run: readings_of(run, registration, trapped) for run in there}
    verdicts = {run: run_verdicts(registration, run, readings, {}) for run in there}
    reports = [_run(run, registration, readings, verdicts) for run in runs]
    rates = rate_verdicts(registration, verdicts)
    checks = [proven("push_witnessed", "seen"), unprovable("independently_witnessed", "by the author", needed=False)]
    seen = Sighting("local witness", "push", PUSHED, "archived by the author", independent=False, seen="1" * 40)
    return Proof(
        tag=registration.tag,
        registration=registration,
        check=group(registration.tag, [*checks, *(r.check for r in reports if r.check)], "every check holds"),
        status=Status(status, "its plans were drawn by the author's own witness", status),
        sightings=[seen],
        beacon=BeaconValue("local-witness", 0, "ab" * 32, "local witness"),
        runs=reports,
        rates=rates,
        verdict=overall_verdict(rates),
        scores=score(registration, readings, verdicts, {}),
        attempts=[_attempt(run, registration) for run in there],
        moments=[
            Moment("registration pushed", PUSHED, "the clock of the local witness", False),
            Moment("first run announced", "2026-01-31T12:00:03.500000Z", "the clock of the local witness", False),
            Moment("first run began", "2026-01-31T12:00:03.250000Z", AUTHOR, False),
            Moment("last run ended", "2026-02-02T12:00:03.250000Z", AUTHOR, False),
        ],
    )


def _run(run: RunId, registration: Registration, readings: Any, verdicts: Any) -> RunReport:
    if run not in readings:
        return RunReport(run, "missing")
    return RunReport(
        run,
        "complete",
        1,
        simulated=True,
        engine="trapkit 1",
        run_sha256="2" * 64,
        check=group(run.path, [proven("plan", "as planned")], "every check of the run holds"),
        readings=readings[run],
        verdicts=verdicts[run],
    )


def _attempt(run: RunId, registration: Registration) -> AttemptRecord:
    return AttemptRecord(
        "complete", registration.id, registration.version, registration.digest, run.arm, run.rate, run.seed,
        1, 1, "batch", "2026-01-31T12:00:05.000000Z", "2" * 64,
    )  # fmt: skip


def report(*proofs: Proof, **more: Any) -> StudyReport:
    """A study of these proofs."""
    made = StudyReport("a study", "3" * 40, list(proofs), "local witness: archived by the author", (), [])
    return dataclasses.replace(made, **more)


def series(runs: list[RunId], bins: int = 145) -> dict[RunId, Series]:
    """Curves of runs, for figures: BURST falls to no hits and grows."""
    middle_s = 60.0 * (np.arange(bins) + 0.5)
    after = middle_s > 1200
    found = {}
    for run in runs:
        burst = run.arm == "BURST"
        waves = np.sin(middle_s / (200 + 10 * run.seed))
        hits = np.where(after & burst, 0.0, 0.95 + 0.04 * waves)
        outstanding = np.where(after & burst, 150 + middle_s / 60, 5 + waves)
        found[run] = Series(60.0, middle_s, hits, outstanding, 0 * hits, 0 * hits + 0.1, np.nan, np.nan)
    return found


def figure(registration: Registration, **more: Any) -> Figure:
    """A figure of e2's arms over time, drawn as reproductions draw it."""
    curves = series(registration.draft.design.run_ids())
    rows = [
        f"{run.path},{t_s:g},{hits:.4g},{outstanding:.4g}"
        for run, one in curves.items()
        for t_s, hits, outstanding in zip(one.middle_s, one.hits, one.outstanding, strict=True)
    ]
    with drawing() as pyplot:
        marks = {"burst": [(1200.0, 1260.0)]}
        drawn = draw_arms(pyplot, curves, title="e2", marks=marks, judged=(5700.0, 8700.0), horizon_s=8700.0)
        svg = io.StringIO()
        drawn.savefig(svg, format="svg", metadata={"Date": None})
    values = {
        "name": "e2-hits",
        "title": "Hits and sessions over time",
        "text": "BURST falls to no hits and stays there.",
        "svg": svg.getvalue(),
        "csv": "\n".join(["run,time_s,followup_hit_fraction,outstanding", *rows, ""]),
        "registration": registration.tag,
    }
    return Figure(**{**values, **more})
