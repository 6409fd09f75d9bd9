"""One registered run: which attempt decides, its checks, readings, verdicts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from artifacts.attempt import attempt_folder, attempt_numbers, is_complete
from artifacts.reader import RunRecord, read_run_record, read_table, read_tables
from registry.attempt_log import AttemptRecord
from registry.beacon import BeaconValue
from registry.design import RunId, Window
from registry.errors import CapExceeded, TrapError
from registry.reading_catalogue import READING_KINDS
from registry.registration import Registration
from registry.timestamps import parse_timestamp
from verifier.arm_checks import ARM_CHECKS
from verifier.attempts import check_decides, deciding
from verifier.check import Check, Outcome, group, proven, refuted, unprovable
from verifier.engine_checks import (
    NOT_EXECUTED_AGAIN,
    check_counters,
    check_engine,
    check_kind,
    job_words,
    machine_words,
)
from verifier.gate_checks import GATE_CHECKS
from verifier.readings import RunFrames, compute_readings
from verifier.reexecution import Rerun, check_reexecution
from verifier.releases import Releases, first_release_s, opened_window
from verifier.run_checks import PLAN_CHECKS, RunContext, check_identity
from verifier.series import Series, coarse_bin_s, series_of
from verifier.verdict import Readings, RunVerdict


@dataclass
class RunReport:
    """What a verification found about one registered run.

    `state` is complete, missing (never started), abandoned (started, no
    result), unrecorded (complete on disk, result not pushed), undecided (a
    complete attempt that may not decide) or unavailable. `series` is there
    where it was asked for and the run has readings.
    """

    run: RunId
    state: str
    attempt: int | None = None
    simulated: bool | None = None
    machine: str | None = None
    job: str | None = None
    engine: str | None = None
    run_sha256: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    check: Check | None = None
    readings: Readings = field(default_factory=dict)
    verdicts: list[RunVerdict] = field(default_factory=list)
    latency_bytes: bytes | None = None
    series: Series | None = None

    @property
    def accepted(self) -> bool:
        """Whether tables and pictures may show the run: read, and every check proven."""
        return bool(self.readings) and self.check is not None and self.check.outcome is Outcome.PROVEN


def state_without_result(records: list[AttemptRecord], runs: Path, registration: Registration, run: RunId) -> str:
    """Why a run has no deciding attempt."""
    folder = runs / registration.folder / run.path
    if any(is_complete(folder / f"attempt-{n}") for n in attempt_numbers(folder)):
        return "unrecorded"
    return "abandoned" if records else "missing"


def report_run(
    registration: Registration,
    beacon: BeaconValue | None,
    run: RunId,
    records: list[AttemptRecord],
    runs: Path,
    rerun: Rerun | None,
    job: int | None,
    releases: Releases,
    with_series: bool = False,
) -> RunReport:
    """Check one run and read it; its verdicts come when all runs are read.

    `with_series`: also what it did over time, in coarse bins.
    """
    chosen = deciding(records)
    if chosen is None:
        return RunReport(run, state_without_result(records, runs, registration, run))
    if not runs.is_dir():
        check = unprovable(run.path, "no source of run files: name one with --runs DIR")
        return RunReport(run, "unavailable", chosen.attempt, run_sha256=chosen.run_sha256, check=check)
    folder = attempt_folder(runs, registration.folder, run.path, chosen.attempt)
    report = RunReport(run, "complete", chosen.attempt, run_sha256=chosen.run_sha256)
    checks = [_check_started(records, chosen)]
    try:
        record = _read_record(folder, chosen)
        _describe(report, record)
        checks.append(check_decides(records, chosen, registration.draft, report.simulated is True))
        checks.append(check_identity(record.fields, registration.digest, run, chosen.attempt))
        tables = read_tables(folder, record)
        checks.append(proven("files", f"{len(tables)} tables have their digests and schemas"))
    except CapExceeded as error:
        checks.append(unprovable("files", f"{error.what} ({error.where})"))
    except TrapError as error:
        checks.append(refuted("files", f"{error.what} ({_short(error.where, runs)})"))
    else:
        context = _context(registration, beacon, run)
        frames = frames_of(tables)
        checks += _record_checks(frames, context)
        checks.append(check_kind(record.fields["engine"], registration))
        if report.simulated:
            again = rerun.tables(job) if rerun and job is not None else None
            checks.append(check_reexecution(tables, again))
        else:
            engine = record.fields["engine"]
            checks += [check_engine(engine, context), check_counters(engine, frames, context), NOT_EXECUTED_AGAIN]
        report.readings = read(frames, registration, run, releases)
        if checks[1].outcome is not Outcome.PROVEN:
            report.state, report.readings = "undecided", {}
        elif with_series:
            bin_s, block = coarse_bin_s(context.horizon_s), context.cell.cache_block_tokens
            report.series = series_of(frames, context.horizon_s, bin_s, block)
        report.latency_bytes = frames.turns.done_s.to_numpy().tobytes()
    report.check = group(run.path, checks, "every check of the run holds")
    return report


def release_of(registration: Registration, run: RunId, records: list[AttemptRecord], runs: Path) -> float | None:
    """When a run's cap came off, by its deciding attempt's gate log: NaN
    where it never did, None where the run cannot be read.
    """
    chosen = deciding(records)
    if chosen is None or not runs.is_dir():
        return None
    folder = attempt_folder(runs, registration.folder, run.path, chosen.attempt)
    try:
        gate = read_table(folder, _read_record(folder, chosen), "gate")
    except TrapError:
        return None
    return first_release_s(gate.to_pandas())


def _record_checks(frames: RunFrames, context: RunContext) -> list[Check]:
    """The checks of plan and arm; without the plan's sessions, only the first."""
    checks = [PLAN_CHECKS[0](frames, context)]
    if checks[0].outcome is Outcome.PROVEN:
        checks += [check(frames, context) for check in (*PLAN_CHECKS[1:], *ARM_CHECKS, *GATE_CHECKS)]
    return checks


def _short(where: str | None, runs: Path) -> str:
    return (where or "").removeprefix(f"{runs.parent}/")


def _read_record(folder: Path, chosen: AttemptRecord) -> RunRecord:
    from registry.errors import RecordError

    if not is_complete(folder):
        raise RecordError(
            f"the run is gone: its result (SHA-256 {str(chosen.run_sha256)[:12]}…) was pushed", where=str(folder)
        )
    record = read_run_record(folder)
    if record.sha256 != chosen.run_sha256:
        raise RecordError(
            "run.json differs from the digest in its pushed result record", where=str(folder / "run.json")
        )
    return record


def _describe(report: RunReport, record: RunRecord) -> None:
    engine: dict[str, Any] = record.fields["engine"]
    report.simulated = engine["simulated"] is True
    report.engine = " ".join(str(engine[key]) for key in ("name", "version") if isinstance(engine.get(key), str))[:100]
    report.machine = None if report.simulated else machine_words(engine)
    report.job = job_words(record.fields.get("job"))
    report.started_at, report.ended_at = (
        time if parse_timestamp(time := record.fields.get(name)) else None for name in ("started_at", "ended_at")
    )


def _check_started(records: list[AttemptRecord], chosen: AttemptRecord) -> Check:
    results = {
        record.run_sha256 for record in records if record.event == "complete" and record.attempt == chosen.attempt
    }
    if len(results) > 1:
        return refuted("started", f"attempt {chosen.attempt} has {len(results)} results that differ")
    for record in records:
        if record is chosen:
            break
        if record.event == "start" and record.attempt <= chosen.attempt <= record.last_attempt:
            late = ", result pushed late" if chosen.late else ""
            return proven("started", f"attempt {chosen.attempt} was announced before it ran{late}")
    return refuted("started", f"attempt {chosen.attempt} has a result, and no start record before it")


def _context(registration: Registration, beacon: BeaconValue | None, run: RunId) -> RunContext:
    design = registration.draft.design
    return RunContext(run, design.arm(run.arm), design, registration.cell_of(run), registration.plan(run, beacon))


def frames_of(tables: dict[str, pa.Table]) -> RunFrames:
    """The tables as data frames."""
    return RunFrames(**{name: table.to_pandas() for name, table in tables.items()})


def read(frames: RunFrames, registration: Registration, run: RunId, releases: Releases | None = None) -> Readings:
    """Every reading of a run in every window of the design.

    `releases` says when the arms whose releases open a window were released,
    at this run's rate and seed. Where that is not known, nothing in the
    window is: all its readings are NaN. So it is with a window that ends after
    the arm's runs.
    """
    cell, design = registration.cell_of(run), registration.draft.design
    horizon_s = design.horizon_of(design.arm(run.arm))
    readings: dict[str, dict[str, float]] = {}
    for window in design.windows:
        opened = window if isinstance(window, Window) else opened_window(window, releases or {})
        readings[window.name] = (
            compute_readings(frames, opened, pool_tokens=cell.pool_tokens, cache_block_tokens=cell.cache_block_tokens)
            if opened and opened.end_s <= horizon_s
            else dict.fromkeys(READING_KINDS, math.nan)
        )
    return readings
