"""Running what is missing: start records, attempts, result records."""

from __future__ import annotations

import fcntl
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
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
from cli.workflows.run_progress import progress_shown
from registry.attempt_log import BRANCH, AttemptRecord, append, remote_tip
from registry.beacon import BeaconValue
from registry.design import RunId
from registry.errors import RegistrationError, StudyError
from registry.publish import publish
from registry.registration import Registration
from registry.study import Study
from registry.witness.policy import Policy
from runners.local_queue import run_all
from runners.run_one import AttemptOrder, check_can_run, execute
from verifier.predictors import computed


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
    which attempts failed and why, `kind` what kind of engine made them.
    """

    asked: int
    ran: int
    complete: int
    failures: tuple[str, ...] = ()
    kind: str = "simulated"


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
    with _only_one(study):
        waits = registration.waits_for_beacon
        beacon = drawn_value(study, repository, registration, policy, reporter) if waits else None
        records = records_of(repository, study, registration)
        settle_earlier(study, repository, registration, records, reporter)
        records = records_of(repository, study, registration)
        if computed(registration) and not any(records.values()) and not is_predicted(repository, registration):
            predict(study, repository, registered, policy, reporter)
        missing = [run for run in runs if not any(r.event == "complete" for r in records[run])]
        failures: tuple[str, ...] = ()
        if missing:
            failures = _run_batch(study, repository, registered, beacon, missing, records, reporter)
            _publish_runs(study, repository, registration)
        _archive_attempts(study, repository, registration, policy, reporter)
        records = records_of(repository, study, registration)
        complete = sum(any(r.event == "complete" for r in records[run]) for run in runs)
    return RunOutcome(len(runs), len(missing), complete, failures, engine_kind(registration))


def engine_kind(registration: Registration) -> str:
    """What kind of engine its runs are made on, in words."""
    return "on a real engine" if registration.engine else "simulated"


def _archive_attempts(
    study: Study, repository: git.Repo, registration: Registration, policy: Policy, reporter: Reporter
) -> None:
    """Archive what witnesses say of the attempts log's last push."""
    tip = remote_tip(repository, study.settings.remote)
    if tip:
        name = f"attempts-{registration.folder}-{tip[:12]}"
        archive_receipts(study, repository, Pushed(name, tip, BRANCH), policy, reporter)


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
) -> tuple[str, ...]:
    """Announce, execute and report one batch; an interrupt still reports."""
    registration, batch = registered.registration, secrets.token_hex(4)
    orders = []
    for run in missing:
        attempt = next_attempt(study, registration, run, records[run])
        folder = attempt_folder(study.runs, registration.folder, run.path, attempt)
        orders.append(AttemptOrder(registered.data, run, attempt, folder, beacon, batch, root=study.root))
    starts = [attempt_record(registration, order.run, order.attempt, batch, "start") for order in orders]
    append(repository, study.settings.remote, "start", starts)
    failures: dict[RunId, str] = {}
    done = 0
    try:
        workers = 1 if registration.engine else None
        with progress_shown(_under_way(registration, orders), reporter):
            for order, result in run_all(execute, orders, workers):
                if isinstance(result, Exception):
                    failures[order.run] = f"{order.run.path} attempt {order.attempt}: {result}"
                done += 1
                reporter.step(f"running {registration.tag} ({engine_kind(registration)})", done, len(orders))
    finally:
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
