"""One batch of attempts: announced, executed, reported."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import git

from artifacts.attempt import attempt_folder
from cli.workflows.attempts import attempt_record, next_attempt, result_record
from cli.workflows.registered import Registered
from cli.workflows.reporter import Reporter
from cli.workflows.run_progress import progress_shown
from registry.attempt_log import AttemptRecord, append
from registry.beacon import BeaconValue
from registry.design import RunId
from registry.errors import EngineError
from registry.registration import Registration
from registry.study import Study
from runners.engines.process import wait_until_gone
from runners.local_queue import run_all
from runners.run_one import AttemptOrder, execute

INTERRUPT_GRACE_S = 10.0
"""How long an interrupted run may take to end its engine and keep its records."""

ENGINE_RUNS = "runners.engine_run"
"""What a worker that drives an engine needs imported."""

ENGINE_END_S = 30.0
"""How long the last processes of a killed engine may take to go."""


def engine_kind(registration: Registration) -> str:
    """What kind of engine its runs are made on, in words."""
    return "on a real engine" if registration.engine else "simulated"


def check_engines_gone(study: Study) -> None:
    """EngineError where an engine of a killed run still takes the machine."""
    if left := _wait_for_engines(study.runs.glob("*/*/*/*/attempt-*")):
        raise EngineError(
            "an engine of an earlier attempt is still there",
            where=str(left[0]),
            remedy="end its processes: they have engine.log open",
        )


def run_batch(
    study: Study,
    repository: git.Repo,
    registered: Registered,
    beacon: BeaconValue | None,
    missing: list[RunId],
    records: dict[RunId, list[AttemptRecord]],
    reporter: Reporter,
    done: int,
    total: int,
) -> tuple[str, ...]:
    """Announce, execute and report one batch; an interrupt still reports.

    `done` of the `total` runs were made in batches before.
    """
    registration, batch = registered.registration, secrets.token_hex(4)
    orders = []
    for run in missing:
        attempt = next_attempt(study, registration, run, records[run])
        folder = attempt_folder(study.runs, registration.folder, run.path, attempt)
        orders.append(AttemptOrder(registered.data, run, attempt, folder, beacon, batch, root=study.root))
    starts = [attempt_record(registration, order.run, order.attempt, batch, "start") for order in orders]
    append(repository, study.settings.remote, "start", starts)
    failures: dict[RunId, str] = {}
    real = registration.engine is not None
    how: dict[str, Any] = {"workers": 1, "preload": ENGINE_RUNS, "grace_s": INTERRUPT_GRACE_S} if real else {}
    try:
        shown = progress_shown(_under_way(registration, orders), reporter)
        with shown, closing(run_all(execute, orders, **how)) as ended:
            for order, result in ended:
                if isinstance(result, Exception):
                    failures[order.run] = f"{order.run.path} attempt {order.attempt}: {result}"
                done += 1
                reporter.step(f"running {registration.tag} ({engine_kind(registration)})", done, total)
    finally:
        if real:
            _wait_for_engines([order.folder for order in orders])
        results = [
            result_record(study, registration, order.run, order.attempt, batch, failures.get(order.run, "interrupted"))
            for order in orders
        ]
        append(repository, study.settings.remote, "result", results)
    return tuple(failures.values())


def _under_way(registration: Registration, orders: list[AttemptOrder]) -> dict[str, tuple[Path, float]]:
    """What to look at while a real engine runs; simulated runs are over before."""
    design = registration.draft.design
    return {
        f"{order.run.path} attempt {order.attempt}": (order.folder, design.horizon_of(design.arm(order.run.arm)))
        for order in orders
        if registration.engine
    }


def _wait_for_engines(attempts: Iterable[Path]) -> list[Path]:
    """Return when no engine of these attempts is left; where one still is."""
    return [folder for folder in attempts if not wait_until_gone(folder, ENGINE_END_S)]
