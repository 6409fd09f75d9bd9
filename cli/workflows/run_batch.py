"""Attempts on this machine: announced, executed, reported.

Simulated attempts are announced all at once, and reported so. A real engine's
are announced when a place in the queue is free for them, and reported when they
end: an interrupt costs those that it meets, no others.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

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
from runners.local_queue import Queue, cores, run_all
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


class LocalRuns:
    """The missing runs of a registration on this machine's own queue."""

    def __init__(
        self,
        study: Study,
        repository: git.Repo,
        registered: Registered,
        beacon: BeaconValue | None,
        records: dict[RunId, list[AttemptRecord]],
    ) -> None:
        self._study = study
        self._repository = repository
        self._registered = registered
        self._beacon = beacon
        self._records = records
        self._real = registered.registration.engine is not None
        self._batch = secrets.token_hex(4)
        self._open: list[AttemptOrder] = []
        self._failures: dict[RunId, str] = {}

    def make(self, missing: list[RunId], reporter: Reporter) -> tuple[str, ...]:
        """Make them all; why attempts failed. An interrupt still reports."""
        registration = self._registered.registration
        groups = [[run] for run in missing] if self._real else [missing]
        title = f"running {registration.tag} ({engine_kind(registration)})"
        try:
            with (
                progress_shown(self._under_way, reporter),
                closing(run_all(execute, self._announced(groups), self._queue(len(missing)))) as ended,
            ):
                for done, (order, result) in enumerate(ended, 1):
                    if isinstance(result, Exception):
                        self._failures[order.run] = f"{order.run.path} attempt {order.attempt}: {result}"
                    if self._real:
                        self._report([order])
                    reporter.step(title, done, len(missing))
        finally:
            if self._real:
                _wait_for_engines([order.folder for order in self._open])
            self._report(self._open)
        return tuple(self._failures.values())

    def _queue(self, most: int) -> Queue:
        local = self._study.settings.executors.local
        slots = min(local.slots(cores(), real=self._real), most)
        if not self._real:
            return Queue(slots)

        def equip(order: AttemptOrder, slot: int) -> AttemptOrder:
            return replace(order, devices=local.devices(slot))

        return Queue(slots, ENGINE_RUNS, INTERRUPT_GRACE_S, equip)

    def _announced(self, groups: list[list[RunId]]) -> Iterator[AttemptOrder]:
        """The orders of each group, once their start records are pushed."""
        registration = self._registered.registration
        for group in groups:
            orders = [self._order(run) for run in group]
            starts = [attempt_record(registration, o.run, o.attempt, self._batch, "start") for o in orders]
            append(self._repository, self._study.settings.remote, "start", starts)
            self._open += orders
            yield from orders

    def _order(self, run: RunId) -> AttemptOrder:
        registration = self._registered.registration
        attempt = next_attempt(self._study, registration, run, self._records[run])
        folder = attempt_folder(self._study.runs, registration.folder, run.path, attempt)
        data, root = self._registered.bundle, self._study.root
        return AttemptOrder(data, run, attempt, folder, self._beacon, self._batch, root=root)

    def _report(self, orders: list[AttemptOrder]) -> None:
        """Push what became of these attempts."""
        if not orders:
            return
        registration = self._registered.registration
        results = [
            result_record(
                self._study, registration, o.run, o.attempt, self._batch, self._failures.get(o.run, "interrupted")
            )
            for o in orders
        ]
        append(self._repository, self._study.settings.remote, "result", results)
        self._open = [order for order in self._open if order not in orders]

    def _under_way(self) -> dict[str, tuple[Path, float]]:
        """What to look at while a real engine runs; simulated runs are over before."""
        design = self._registered.registration.draft.design
        return {
            f"{order.run.path} attempt {order.attempt}": (order.folder, design.horizon_of(design.arm(order.run.arm)))
            for order in tuple(self._open)
            if self._real
        }


def _wait_for_engines(attempts: Iterable[Path]) -> list[Path]:
    """Return when no engine of these attempts is left; where one still is."""
    return [folder for folder in attempts if not wait_until_gone(folder, ENGINE_END_S)]
