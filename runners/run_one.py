"""One attempt of one run: a clean start, its records, and run.json last."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from artifacts.attempt import AttemptWriter
from registry.beacon import BeaconValue
from registry.canonical import canonical_bytes
from registry.design import RunId
from registry.errors import RegistrationError
from registry.plan import Plan, make_plan, plan_key
from registry.registration import Registration, read_registration
from registry.timestamps import now, timestamp
from runners.simulated.run import simulate

SIMULATED = "simulated"


@dataclass(frozen=True)
class AttemptOrder:
    """Everything that one attempt needs; it can cross to another process.

    An exploratory attempt is driven by its literal seed and marked for ever.
    """

    registration: bytes
    run: RunId
    attempt: int
    folder: Path
    beacon: BeaconValue | None
    batch: str
    exploratory: bool = False


def check_can_run(registration: Registration) -> None:
    """RegistrationError where this cell has no engine here."""
    if registration.cell.step_costs is None:
        raise RegistrationError(
            f"cell {registration.cell.name} cannot be simulated: its step costs are not known",
            where=registration.tag,
            remedy="run it on a real engine, or name a cell with step_costs: the paper's all have them",
        )


def execute(order: AttemptOrder) -> str:
    """Run one attempt to its end; returns the SHA-256 of its run.json."""
    registration = read_registration(order.registration, str(order.folder))
    check_can_run(registration)
    plan = _plan(order, registration)
    writer = AttemptWriter(order.folder)
    started = datetime.now(UTC)
    tables = simulate(plan, registration.draft.design.arm(order.run.arm), registration.cell_of(order.run))
    files = writer.write_tables(tables)
    return writer.finish(_record(order, registration, plan, started), files)


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


def _record(order: AttemptOrder, registration: Registration, plan: Plan, started: datetime) -> dict[str, Any]:
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
        "engine": {
            "name": SIMULATED,
            "simulated": True,
            "statement": "a simulated engine, not a GPU",
            "version": version("trapkit"),
        },
        "started_at": timestamp(started),
        "wall_clock_at_zero_unix_s": started.timestamp(),
        "ended_at": now(),
        "outcome": "complete",
    }
