"""Running what is missing: start records, attempts, result records."""

from __future__ import annotations

import fcntl
import secrets
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import git

from artifacts.attempt import RUN_FILE, attempt_folder, attempt_numbers, is_complete, sha256_file
from cli.workflows.registered import Registered, archive_witness, archived_log, beacon_value, check_pushed
from cli.workflows.reporter import Reporter
from registry.attempt_log import BRANCH, AttemptRecord, append, decode
from registry.design import RunId
from registry.errors import RegistrationError, StudyError
from registry.publish import publish
from registry.registration import BeaconValue, Registration
from registry.study import Study
from runners.local_queue import run_all
from runners.run_one import AttemptOrder, check_can_run, execute, timestamp


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
        for name, value, known in (
            ("seed", self.seed, list(design.seeds.values)), ("arm", self.arm, arms), ("rate", self.rate, list(design.rates)),
        ):  # fmt: skip
            if value is not None and value not in known:
                raise RegistrationError(f"unknown {name}", where=registration.tag, value=value,
                                        remedy=f"registered: {', '.join(map(str, known)) or 'none'}")  # fmt: skip
        wanted = (("seed", self.seed), ("arm", self.arm), ("rate", self.rate))
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
    study: Study, repository: git.Repo, registered: Registered, reporter: Reporter, selection: Selection | None = None
) -> RunOutcome:
    """Run what is missing of a registration that is tagged, pushed and drawn."""
    registration = registered.registration
    runs = (selection or Selection()).of(registration)
    check_can_run(registration)
    check_pushed(repository, study, registered)
    with _only_one(study):
        beacon = _beacon(study, repository, registration)
        records = _records(repository, study, registration)
        _settle_earlier(study, repository, registration, records, reporter)
        records = _records(repository, study, registration)
        missing = [run for run in runs if not any(r.event == "complete" for r in records[run])]
        failures: tuple[str, ...] = ()
        if missing:
            failures = _run_batch(study, repository, registered, beacon, missing, records, reporter)
            _publish_runs(study, repository, registration)
            archive_witness(repository, study)
        records = _records(repository, study, registration)
        complete = sum(any(r.event == "complete" for r in records[run]) for run in runs)
    return RunOutcome(len(runs), len(missing), complete, failures)


@contextmanager
def _only_one(study: Study) -> Iterator[None]:
    """Two `run`s in one study would take each other's attempts for dead."""
    with (study.root / ".git" / "trap-run.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StudyError("another trap run is under way in this study", where=str(study.root),
                             remedy="wait for it, then repeat") from None  # fmt: skip
        yield


def _beacon(study: Study, repository: git.Repo, registration: Registration) -> BeaconValue | None:
    if registration.draft.design.seeds.binding == "literal":
        return None
    value = beacon_value(study, registration, archived_log(study))
    if value is None:
        archive_witness(repository, study)
        value = beacon_value(study, registration, archived_log(study))
    if value is None:
        raise RegistrationError("the registration has not been drawn", where=registration.tag,
                                remedy=f"trapkit draw {registration.id}")  # fmt: skip
    return value


def _records(repository: git.Repo, study: Study, registration: Registration) -> dict[RunId, list[AttemptRecord]]:
    """The attempts log of a registration, fetched from the remote."""
    found: dict[RunId, list[AttemptRecord]] = defaultdict(list)
    remote = study.settings.remote
    if not repository.git.ls_remote(remote, f"refs/heads/{BRANCH}"):
        return found
    repository.git.fetch("--quiet", remote, f"+refs/heads/{BRANCH}:refs/remotes/{remote}/{BRANCH}")
    tip = f"refs/remotes/{remote}/{BRANCH}"
    for path in sorted(repository.git.ls_tree("--name-only", tip, "--", "attempts/").splitlines()):
        data: bytes = repository.git.show(f"{tip}:{path}", stdout_as_string=False)
        for record in decode(data, path):
            if record.digest == registration.digest:
                found[record.run].append(record)
    return found


def _settle_earlier(
    study: Study, repository: git.Repo, registration: Registration,
    records: dict[RunId, list[AttemptRecord]], reporter: Reporter,
) -> None:  # fmt: skip
    """Push results of attempts that an earlier, killed `run` left without."""
    late = []
    for run, known in records.items():
        settled = {record.attempt for record in known if record.event != "start"}
        for start in (record for record in known if record.event == "start"):
            if start.attempt not in settled:
                late.append(
                    _result(study, registration, run, start.attempt, start.batch, "found by a later run", late=True)
                )
    if late:
        append(repository, study.settings.remote, "result", late)
        reporter.say(f"pushed the results of {len(late)} attempts that an earlier run left open")


def _result(
    study: Study, registration: Registration, run: RunId, attempt: int, batch: str, reason: str, *, late: bool = False
) -> AttemptRecord:
    folder = attempt_folder(study.runs, registration.folder, run.path, attempt)
    complete = is_complete(folder)
    return _record(
        registration, run, attempt, batch, "complete" if complete else "abandoned",
        run_sha256=sha256_file(folder / RUN_FILE) if complete else None, late=late,
        reason=None if complete else reason,
    )  # fmt: skip


def _record(
    registration: Registration, run: RunId, attempt: int, batch: str, event: str, *,
    run_sha256: str | None = None, late: bool = False, reason: str | None = None,
) -> AttemptRecord:  # fmt: skip
    return AttemptRecord(
        event, registration.id, registration.version, registration.digest, run.arm, run.rate, run.seed,
        attempt, attempt, batch, timestamp(datetime.now(UTC)), run_sha256, late, reason,
    )  # fmt: skip


def _run_batch(
    study: Study, repository: git.Repo, registered: Registered, beacon: BeaconValue | None, missing: list[RunId],
    records: dict[RunId, list[AttemptRecord]], reporter: Reporter,
) -> tuple[str, ...]:  # fmt: skip
    """Announce, execute and report one batch; an interrupt still reports."""
    registration, batch = registered.registration, secrets.token_hex(4)
    orders = [
        AttemptOrder(
            registered.data,
            run,
            attempt,
            attempt_folder(study.runs, registration.folder, run.path, attempt),
            beacon,
            batch,
        )
        for run in missing
        for attempt in [_next_attempt(study, registration, run, records[run])]
    ]
    starts = [_record(registration, order.run, order.attempt, batch, "start") for order in orders]
    append(repository, study.settings.remote, "start", starts)
    failures: dict[RunId, str] = {}
    done = 0
    try:
        for order, result in run_all(execute, orders):
            if isinstance(result, Exception):
                failures[order.run] = f"{order.run.path} attempt {order.attempt}: {result}"
            done += 1
            reporter.step(f"running {registration.tag} (simulated)", done, len(orders))
    finally:
        results = [
            _result(study, registration, o.run, o.attempt, batch, failures.get(o.run, "interrupted")) for o in orders
        ]
        append(repository, study.settings.remote, "result", results)
    return tuple(failures.values())


def _next_attempt(study: Study, registration: Registration, run: RunId, records: list[AttemptRecord]) -> int:
    on_disk = attempt_numbers(study.runs / registration.folder / run.path)
    return 1 + max([*on_disk, *(record.last_attempt for record in records)], default=0)


def _publish_runs(study: Study, repository: git.Repo, registration: Registration) -> None:
    """Commit the run files where the study keeps them in git."""
    if not study.settings.commit_runs:
        return
    files: dict[str, bytes | Path] = {
        path.relative_to(study.root).as_posix(): path
        for folder in sorted((study.runs / registration.folder).glob("*/*/*/attempt-*"))
        if is_complete(folder)
        for path in sorted(folder.iterdir())
    }
    publish(repository, study.settings.remote, files, f"Runs of {registration.tag}", f"trapkit run {registration.id}")


def run_exploratory(
    study: Study, data: bytes, registration: Registration, selection: Selection, reporter: Reporter
) -> list[Path]:
    """Run a draft or registration over literal seeds, marked exploratory for
    ever; nothing is pushed. Returns the folders of the attempts.
    """
    check_can_run(registration)
    orders = []
    for run in selection.of(registration):
        base = study.runs / "exploratory"
        attempt = 1 + max(attempt_numbers(base / registration.id / run.path), default=0)
        folder = attempt_folder(base, registration.id, run.path, attempt)
        orders.append(AttemptOrder(data, run, attempt, folder, None, "exploratory", exploratory=True))
    done = 0
    for _, result in run_all(execute, orders):
        if isinstance(result, Exception):
            raise result
        done += 1
        reporter.step(f"exploring {registration.id} (simulated)", done, len(orders))
    return [order.folder for order in orders]
