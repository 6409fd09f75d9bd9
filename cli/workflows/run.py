"""Running what is missing: start records, attempts, result records."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import git

from artifacts.attempt import RUN_FILE, is_complete
from cli.workflows.attempts import records_of
from cli.workflows.beacons import drawn_value
from cli.workflows.predict import is_predicted, predict
from cli.workflows.receipts import Pushed, archive_receipts
from cli.workflows.registered import Registered, check_pushed
from cli.workflows.reporter import Reporter
from cli.workflows.run_batch import LocalRuns, check_engines_gone, engine_kind
from cli.workflows.run_jobs import Records, follow, report, submit
from cli.workflows.standings import LOCK_FILE, standings
from registry.attempt_log import BRANCH, remote_tip
from registry.design import RunId
from registry.errors import RegistrationError, StudyError
from registry.executors import Executor
from registry.publish import publish
from registry.registration import Registration
from registry.study import Study
from registry.witness.policy import Policy
from runners.run_one import check_can_run
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
class How:
    """Where the runs are made. Jobs are followed to their ends unless `wait` is False."""

    executor: Executor = Executor.LOCAL
    wait: bool = True


def check_here(how: How) -> None:
    """StudyError where runs that are no evidence are asked for as jobs."""
    if how.executor != Executor.LOCAL:
        raise StudyError(
            "exploratory runs are made on this machine", value=how.executor, remedy="trapkit sweep submits many of them"
        )


@dataclass(frozen=True)
class RunOutcome:
    """How many runs were asked for, begun now, complete, and still open as
    jobs; `failures` says which attempts failed and why, `kind` what kind of
    engine made them.
    """

    asked: int
    ran: int
    complete: int
    failures: tuple[str, ...] = ()
    kind: str = "simulated"
    open: int = 0


def run_registration(
    study: Study,
    repository: git.Repo,
    registered: Registered,
    policy: Policy,
    reporter: Reporter,
    selection: Selection | None = None,
    how: How | None = None,
) -> RunOutcome:
    """Run what is missing of a registration that is tagged, pushed and drawn.

    A run whose job is still open is not missing.
    """
    registration, how = registered.registration, how or How()
    runs = (selection or Selection()).of(registration)
    check_can_run(registration)
    check_pushed(repository, study, registered)
    with only_one(study), _terminate_interrupts():
        waits = registration.waits_for_beacon
        beacon = drawn_value(study, repository, registration, policy, reporter) if waits else None
        records, jobs = _settled(study, repository, registration, reporter)
        if computed(registration) and not any(records.values()) and not is_predicted(repository, registration):
            predict(study, repository, registered, policy, reporter)
        missing = [run for run in runs if run not in jobs and not _is_complete(records, run)]
        failures: tuple[str, ...] = ()
        if missing and how.executor == Executor.SLURM:
            submit(study, repository, registered, beacon, missing, records, reporter)
        elif missing:
            if registration.engine:
                check_engines_gone(study)
            failures = LocalRuns(study, repository, registered, beacon, records).make(missing, reporter)
        followed = [run for run in runs if run in jobs or run in missing] if how.executor == Executor.SLURM else []
        if how.wait:
            failures += follow(study, repository, registration, followed, reporter)
        if missing or (followed and how.wait):
            _publish_runs(study, repository, registration)
        _archive_attempts(study, repository, registration, policy, reporter)
        records = records_of(repository, study, registration)
        complete = sum(_is_complete(records, run) for run in runs)
    left = 0 if how.wait else len(followed)
    return RunOutcome(len(runs), len(missing), complete, failures, engine_kind(registration), left)


def _settled(
    study: Study, repository: git.Repo, registration: Registration, reporter: Reporter
) -> tuple[Records, frozenset[RunId]]:
    """The records once what earlier runs left open is reported, and the runs
    whose jobs may still end by themselves.
    """
    records = records_of(repository, study, registration)
    # This very run holds the lock: what no job was announced for belongs to one that is gone.
    found = standings(study, registration, records, tuple(records), here=False)
    over = [standing for standing in found if not standing.open]
    late = report(study, repository, registration, records, over, late=True)
    if late:
        reporter.say(f"pushed the results of {late} attempts that an earlier run left open")
        records = records_of(repository, study, registration)
    return records, frozenset(standing.run for standing in found if standing.open)


def _is_complete(records: Records, run: RunId) -> bool:
    return any(record.event == "complete" for record in records[run])


def _archive_attempts(
    study: Study, repository: git.Repo, registration: Registration, policy: Policy, reporter: Reporter
) -> None:
    """Archive what witnesses say of the attempts log's last push."""
    tip = remote_tip(repository, study.settings.remote)
    if tip:
        name = f"attempts-{registration.folder}-{tip[:12]}"
        archive_receipts(study, repository, Pushed(name, tip, BRANCH), policy, reporter)


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
def only_one(study: Study) -> Iterator[None]:
    """Two `run`s in one study would take each other's attempts for dead. The
    lock's file holds the process that has it.
    """
    with (study.root / ".git" / LOCK_FILE).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StudyError(
                "another trap run is under way in this study", where=str(study.root), remedy="wait for it, then repeat"
            ) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


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
