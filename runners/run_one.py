"""One attempt of one run: a clean start, its records, and run.json last."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from artifacts.attempt import JOB_FILE, AttemptWriter, FileDigest, abandon, write_whole
from registry.beacon import BeaconValue
from registry.canonical import canonical_bytes
from registry.design import RunId
from registry.engine_setup import EngineSetup, given
from registry.errors import EngineError, RegistrationError
from registry.model_folder import model_of, model_sha256
from registry.plan import Plan, make_plan, plan_key
from registry.registration import Registration, read_registration
from registry.timestamps import now, timestamp
from runners.asked_to_end import AskedToEnd, heard
from runners.simulated.run import simulate

SIMULATED = "simulated"
_SIMULATED_ENGINE = {
    "name": SIMULATED,
    "simulated": True,
    "statement": "a simulated engine, not a GPU",
    "version": version("trapkit"),
}


@dataclass(frozen=True)
class AttemptOrder:
    """Everything that one attempt needs; it can cross to another process.

    An exploratory attempt is driven by its literal seed and marked for ever.
    `root` is the study's, where a real engine's model may lie; `devices` are
    the GPUs that its engine gets, as CUDA_VISIBLE_DEVICES names them.
    """

    registration: bytes
    run: RunId
    attempt: int
    folder: Path
    beacon: BeaconValue | None
    batch: str
    exploratory: bool = False
    root: Path | None = None
    devices: str | None = None


class Job(Protocol):
    """The scheduler's job that an attempt runs in."""

    @property
    def facts(self) -> dict[str, Any]:
        """What the attempt's records say of it."""

    def why_ended(self) -> tuple[str, str | None]:
        """Why the scheduler asks it to end, and the cause that this is."""


@dataclass(frozen=True)
class _Made:
    """What an attempt came to: its tables, its engine, when its clock began."""

    tables: dict[str, pa.Table]
    engine: dict[str, Any]
    zero_unix_s: float
    failure: EngineError | None = None


def check_can_run(registration: Registration) -> None:
    """RegistrationError where this cell has no engine here."""
    if registration.engine is None and registration.cell.step_costs is None:
        raise RegistrationError(
            f"cell {registration.cell.name} cannot be simulated: its step costs are not known",
            where=registration.tag,
            remedy="run it on a real engine, or name a cell with step_costs: the paper's all have them",
        )


def execute(order: AttemptOrder, job: Job | None = None) -> str:
    """Run one attempt to its end; returns the SHA-256 of its run.json.

    What fails on the way leaves abandoned.json, and the tables so far where
    there are any; so does SIGTERM.
    """
    registration = read_registration(order.registration, str(order.folder))
    check_can_run(registration)
    plan = _plan(order, registration)
    writer = AttemptWriter(order.folder)
    started = datetime.now(UTC)
    try:
        with heard():
            if job:
                write_whole(order.folder / JOB_FILE, canonical_bytes(job.facts))
            made = _make(order, registration, plan)
            files = writer.write_tables(made.tables)
            if made.failure is None:
                return writer.finish(_record(order, registration, plan, started, made, job), files)
    except Exception as error:
        _abandon(order.folder, error, {}, job)
        raise
    _abandon(order.folder, made.failure, files, job)
    raise made.failure


def _abandon(folder: Path, error: Exception, files: dict[str, FileDigest], job: Job | None) -> None:
    reason, cause = str(error), getattr(error, "cause", None)
    if job and isinstance(error, AskedToEnd):
        reason, cause = job.why_ended()
    # A full disk takes not even this; the pushed result record says it then.
    with suppress(OSError):
        abandon(folder, reason, cause, files)


def _make(order: AttemptOrder, registration: Registration, plan: Plan) -> _Made:
    arm, cell = registration.draft.design.arm(order.run.arm), registration.cell_of(order.run)
    if registration.engine is None:
        return _Made(simulate(plan, arm, cell), _SIMULATED_ENGINE, datetime.now(UTC).timestamp())
    # The gate's compiled core and asyncio are not needed by simulated runs.
    from runners.engine_run import EngineRun, run_on_engine

    stream = f"{registration.digest}/{order.run.path}/attempt-{order.attempt}"
    model = _model(order, registration.engine)
    setup = given(registration.engine, order.devices)
    outcome = run_on_engine(EngineRun(plan, arm, cell, setup, model, stream, order.folder))
    return _Made(outcome.tables, outcome.engine, outcome.zero_unix_s, outcome.failure)


def _model(order: AttemptOrder, setup: EngineSetup) -> str:
    """The model's folder or name; EngineError for another folder than frozen."""
    folder = model_of(order.root, setup.model) if order.root else None
    found = model_sha256(folder) if folder else None
    if found != setup.model_sha256:
        raise EngineError(
            "the model is not the registered one",
            where=setup.model,
            value=found,
            remedy=f"its files had the digest {setup.model_sha256} when it was registered",
        )
    return str(folder) if folder else setup.model


def _plan(order: AttemptOrder, registration: Registration) -> Plan:
    if not order.exploratory:
        return registration.plan(order.run, order.beacon)
    design = registration.draft.design
    key = plan_key("", 0, "", order.run.seed)
    return make_plan(key, design, design.arm(order.run.arm), registration.lambda_per_s(order.run), order.run.rate)


def plan_digest(plan: Plan) -> str:
    """SHA-256 over the plan's key and arrivals: which plan drove the run."""
    arrivals = [list(plan.base_arrivals_us), list(plan.burst_arrivals_us)]
    return hashlib.sha256(canonical_bytes([plan.key.hex(), *arrivals])).hexdigest()


def _record(
    order: AttemptOrder, registration: Registration, plan: Plan, started: datetime, made: _Made, job: Job | None
) -> dict[str, Any]:
    run = order.run
    return {
        "registration": registration.id,
        "version": registration.version,
        "registration_digest": registration.digest,
        "exploratory": order.exploratory,
        "arm": run.arm,
        "rate": run.rate,
        "seed": run.seed,
        "attempt": order.attempt,
        "batch": order.batch,
        "beacon": asdict(order.beacon) if order.beacon else None,
        "plan_sha256": plan_digest(plan),
        "cell": registration.cell.name,
        "pool_tokens": registration.cell_of(run).pool_tokens,
        "engine": made.engine,
        **({"job": job.facts} if job else {}),
        "started_at": timestamp(started),
        "wall_clock_at_zero_unix_s": made.zero_unix_s,
        "ended_at": now(),
        "outcome": "complete",
    }
