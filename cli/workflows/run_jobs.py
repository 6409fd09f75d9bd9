"""Attempts as Slurm jobs: announced, submitted, followed, reported.

The submitting side pushes everything: nodes need no network. A job may be
followed by another `trap run` than the one that submitted it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence

import git

from artifacts.attempt import attempt_folder
from cli.workflows.attempts import attempt_record, next_attempt, records_of, result_record
from cli.workflows.registered import Registered
from cli.workflows.reporter import Reporter
from cli.workflows.run_batch import engine_kind
from cli.workflows.standing import FINISHED, SUBMITTED, Standing
from cli.workflows.standings import job_name, standings
from registry.attempt_log import AttemptRecord, append
from registry.beacon import BeaconValue
from registry.design import RunId
from registry.errors import StudyError
from registry.registration import Registration
from registry.study import Study
from registry.timestamps import now
from runners.batch import Batch, Reserved, write_batch, write_jobs
from runners.slurm.attempt import CALL
from runners.slurm.calls import Call
from runners.slurm.scheduler import CAUSES
from runners.slurm.submission import check_slurm, submit_calls

LOOK_S, LONGEST_LOOK_S = 2.0, 20.0
SILENT_S = 300.0
"""How long Slurm may not answer before nobody waits for it any more."""

Records = dict[RunId, list[AttemptRecord]]


def submit(
    study: Study,
    repository: git.Repo,
    registered: Registered,
    beacon: BeaconValue | None,
    missing: Sequence[RunId],
    records: Records,
    reporter: Reporter,
) -> list[str]:
    """Announce the missing runs and submit them; their job ids, in order.

    Where Slurm refuses, the announced attempts are reported as never begun.
    """
    registration = registered.registration
    setup = study.settings.executors.slurm_for(registration.cell.name)
    check_slurm()
    reserved = []
    for run in missing:
        first = next_attempt(study, registration, run, records[run])
        reserved.append(Reserved(run, first, first + setup.attempts - 1))
    batch = Batch(
        secrets.token_hex(4),
        registered.bundle,
        study.runs / registration.folder,
        study.root,
        beacon,
        tuple(reserved),
        setup.time_s,
        setup.warn_s,
    )
    file = write_batch(batch)
    starts = [
        attempt_record(registration, r.run, r.attempt, batch.token, "start", last_attempt=r.last_attempt)
        for r in reserved
    ]
    append(repository, study.settings.remote, "start", starts)
    calls = [Call(CALL, (str(file), index)) for index in range(len(reserved))]
    try:
        jobs = submit_calls(calls, batch.logs, setup, job_name(batch))
    except StudyError as error:
        results = [
            result_record(study, registration, r.run, r.attempt, batch.token, f"never submitted: {error}")
            for r in reserved
        ]
        append(repository, study.settings.remote, "result", results)
        raise
    write_jobs(batch, jobs, now())
    arrays = sorted({job.partition("_")[0] for job in jobs}, key=int)
    reporter.say(f"submitted {len(jobs)} runs of {registration.tag} to Slurm: job {', '.join(arrays)}")
    return jobs


def follow(
    study: Study, repository: git.Repo, registration: Registration, runs: Sequence[RunId], reporter: Reporter
) -> tuple[str, ...]:
    """Wait until none of these runs is open; push results as they come. Why
    attempts failed. StudyError where Slurm does not answer for five minutes.
    """
    failures: dict[RunId, str] = {}
    look_s, answered_s = LOOK_S, time.monotonic()
    title = f"running {registration.tag} ({engine_kind(registration)}, Slurm)"
    waiting = list(runs)
    while waiting:
        records = records_of(repository, study, registration)
        found = standings(study, registration, records, waiting)
        over = [standing for standing in found if not standing.open]
        report(study, repository, registration, records, over)
        failures |= {s.run: f"{s.run.path} attempt {s.attempt}: {s.words}" for s in over if s.state != FINISHED}
        waiting = [standing.run for standing in found if standing.open]
        reporter.step(title, len(runs) - len(waiting), len(runs))
        if not any(standing.state == SUBMITTED for standing in found):
            answered_s = time.monotonic()
        elif time.monotonic() - answered_s > SILENT_S:
            raise StudyError(
                "Slurm does not answer",
                value=next(standing.words for standing in found if standing.state == SUBMITTED),
                remedy="the jobs go on; repeat the command when it does, trapkit status shows what there is",
            )
        if waiting:
            _pause(look_s, reporter, registration)
            look_s = LOOK_S if over else min(1.5 * look_s, LONGEST_LOOK_S)
    return tuple(failures.values())


def _pause(seconds: float, reporter: Reporter, registration: Registration) -> None:
    try:
        time.sleep(seconds)
    except KeyboardInterrupt:
        reporter.say(f"the jobs go on: trapkit status {registration.id}, trapkit cancel {registration.id}")
        raise


def report(
    study: Study,
    repository: git.Repo,
    registration: Registration,
    records: Records,
    standings: Sequence[Standing],
    *,
    late: bool = False,
    reason: str | None = None,
) -> int:
    """Push results of these runs' announced attempts that have none; how many."""
    results = [record for s in standings for record in _results(study, registration, records[s.run], s, late, reason)]
    if results:
        append(repository, study.settings.remote, "result", results)
    return len(results)


def _results(
    study: Study,
    registration: Registration,
    records: Sequence[AttemptRecord],
    standing: Standing,
    late: bool,
    reason: str | None,
) -> list[AttemptRecord]:
    """Results of what was begun; of a start that led to nothing, its first number's."""
    settled = {record.attempt for record in records if record.event != "start"}
    found = []
    for start in (record for record in records if record.event == "start"):
        for number in range(start.attempt, start.last_attempt + 1):
            folder = attempt_folder(study.runs, registration.folder, standing.run.path, number)
            if number in settled or not (number == start.attempt or folder.is_dir()):
                continue
            settled.add(number)
            why = reason or standing.words or "found by a later run"
            cause = CAUSES.get(standing.job.state) if standing.job and number == standing.attempt else None
            found.append(
                result_record(study, registration, standing.run, number, start.batch, why, late=late, cause=cause)
            )
    return found
