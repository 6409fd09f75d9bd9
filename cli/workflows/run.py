"""Running what is missing: start records, attempts, result records."""

from __future__ import annotations

import fcntl
import secrets
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import git

from artifacts.attempt import RUN_FILE, attempt_folder, is_complete
from cli.workflows.attempts import attempt_record, next_attempt, records_of, result_record, settle_earlier
from cli.workflows.beacons import drawn_value
from cli.workflows.predict import is_predicted, predict
from cli.workflows.receipts import Pushed, archive_receipts
from cli.workflows.registered import Registered, check_pushed
from cli.workflows.reporter import Reporter
from registry.attempt_log import BRANCH, AttemptRecord, append, remote_tip
from registry.beacon import BeaconValue
from registry.design import RunId
from registry.errors import EngineError, RegistrationError, StudyError
from registry.publish import publish
from registry.registration import Registration
from registry.study import Study
from registry.witness.policy import Policy
from runners.engines.process import wait_until_gone
from runners.local_queue import run_all
from runners.run_one import AttemptOrder, check_can_run, execute
from verifier.predictors import computed

INTERRUPT_GRACE_S = 10.0
"""How long an interrupted run may take to end its engine and keep its records."""

ENGINE_RUNS = "runners.engine_run"
"""What a worker that drives an engine needs imported."""

ENGINE_END_S = 30.0
"""How long the last processes of a killed engine may take to go."""


@dataclass(frozen=True)
class Selection:
    """Which runs are asked for; None asks for all."""

    seed: int | None = None
    arm: str | None = None
    rate: float | None = None

    def of(self, registration: Registration) -> list[RunId]:
        """The selected runs; RegistrationError for a seed, arm or rate that
        is not registered.
        """
        design = registration.draft.design
        arms = [arm.name for arm in design.arms]
        registered: dict[str, list[Any]] = {"seed": list(design.seeds.values), "arm": arms, "rate": list(design.rates)}
        for name, known in registered.items():
            value = getattr(self, name)
            if value is not None and value not in known:
                raise RegistrationError(
                    f"unknown {name}",
                    where=registration.tag,
                    value=value,
                    remedy=f"registered: {', '.join(map(str, known)) or 'none'}",
                )
        wanted = [(name, getattr(self, name)) for name in registered]
        return [run for run in design.run_ids() if all(v is None or getattr(run, name) == v for name, v in wanted)]


@dataclass(frozen=True)
class RunOutcome:
    """How many runs were asked for, run now, and complete; `failures` says
    which attempts failed and why.
    """

    asked: int
    ran: int
    complete: int
    failures: tuple[str, ...] = ()


def run_registration(
    study: Study,
    repository: git.Repo,
    registered: Registered,
    policy: Policy,
    reporter: Reporter,
    selection: Selection | None = None,
) -> RunOutcome:
    """Run what is missing of a registration that is tagged, pushed and drawn."""
    registration = registered.registration
    runs = (selection or Selection()).of(registration)
    check_can_run(registration)
    check_pushed(repository, study, registered)
    with _only_one(study), _terminate_interrupts():
        waits = registration.waits_for_beacon
        beacon = drawn_value(study, repository, registration, policy, reporter) if waits else None
        records = records_of(repository, study, registration)
        settle_earlier(study, repository, registration, records, reporter)
        records = records_of(repository, study, registration)
        if computed(registration) and not any(records.values()) and not is_predicted(repository, registration):
            predict(study, repository, registered, policy, reporter)
        missing = [run for run in runs if not any(r.event == "complete" for r in records[run])]
        failures: tuple[str, ...] = ()
        if registration.engine:
            _check_engines_gone(study)
        # A real engine's attempts are announced one by one: an interrupt costs the one that it meets.
        batches = [[run] for run in missing] if registration.engine else [missing] if missing else []
        for done, batch in enumerate(batches):
            failures += _run_batch(study, repository, registered, beacon, batch, records, reporter, done, len(missing))
        if missing:
            _publish_runs(study, repository, registration)
        _archive_attempts(study, repository, registration, policy, reporter)
        records = records_of(repository, study, registration)
        complete = sum(any(r.event == "complete" for r in records[run]) for run in runs)
    return RunOutcome(len(runs), len(missing), complete, failures)


def _archive_attempts(
    study: Study, repository: git.Repo, registration: Registration, policy: Policy, reporter: Reporter
) -> None:
    """Archive what witnesses say of the attempts log's last push."""
    tip = remote_tip(repository, study.settings.remote)
    if tip:
        name = f"attempts-{registration.folder}-{tip[:12]}"
        archive_receipts(study, repository, Pushed(name, tip, BRANCH), policy, reporter)


def _check_engines_gone(study: Study) -> None:
    """EngineError where an engine of a killed run still takes the machine."""
    if left := _wait_for_engines(study.runs.glob("*/*/*/*/attempt-*")):
        raise EngineError(
            "an engine of an earlier attempt is still there",
            where=str(left[0]),
            remedy="end its processes: they have engine.log open",
        )


@contextmanager
def _terminate_interrupts() -> Iterator[None]:
    """SIGTERM ends a run as Ctrl-C does: with what there is kept and reported."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@contextmanager
def _only_one(study: Study) -> Iterator[None]:
    """Two `run`s in one study would take each other's attempts for dead."""
    with (study.root / ".git" / "trap-run.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StudyError(
                "another trap run is under way in this study", where=str(study.root), remedy="wait for it, then repeat"
            ) from None
        yield


def _run_batch(
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
        with closing(run_all(execute, orders, **how)) as ended:
            for order, result in ended:
                if isinstance(result, Exception):
                    failures[order.run] = f"{order.run.path} attempt {order.attempt}: {result}"
                done += 1
                kind = "on a real engine" if real else "simulated"
                reporter.step(f"running {registration.tag} ({kind})", done, total)
    finally:
        if real:
            _wait_for_engines([order.folder for order in orders])
        results = [
            result_record(study, registration, order.run, order.attempt, batch, failures.get(order.run, "interrupted"))
            for order in orders
        ]
        append(repository, study.settings.remote, "result", results)
    return tuple(failures.values())


def _wait_for_engines(attempts: Iterable[Path]) -> list[Path]:
    """Return when no engine of these attempts is left; where one still is."""
    return [folder for folder in attempts if not wait_until_gone(folder, ENGINE_END_S)]


def _publish_runs(study: Study, repository: git.Repo, registration: Registration) -> None:
    """Commit the run files where the study keeps them in git."""
    if not study.settings.commit_runs:
        return
    files: dict[str, bytes | Path] = {
        path.relative_to(study.root).as_posix(): path
        for folder in sorted((study.runs / registration.folder).glob("*/*/*/attempt-*"))
        if is_complete(folder)
        for path in sorted(folder.iterdir())
        if path.name == RUN_FILE or path.suffix == ".parquet"
    }
    publish(repository, study.settings.remote, files, f"Runs of {registration.tag}", f"trapkit run {registration.id}")
