"""Where the runs of a registration stand, read from disk, log and scheduler."""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from artifacts.attempt import PROGRESS_FILE, abandoned_reason, attempt_folder, attempt_numbers, is_complete
from cli.workflows.run_progress import seconds_of
from cli.workflows.standing import AttemptFiles, JobFiles, RunFiles, Standing, standing_of
from registry.attempt_log import AttemptRecord
from registry.design import RunId
from registry.registration import Registration
from registry.study import Study
from registry.timestamps import now
from runners.batch import Batch, batches_of, read_jobs, write_jobs
from runners.engines.process import LOG_FILE, log_tail
from runners.slurm.scheduler import Answer, ask

LOCK_FILE = "trap-run.lock"


def job_name(batch: Batch) -> str:
    """The name of a batch's jobs; nobody else's jobs have it."""
    return f"trap-{batch.runs.name}-{batch.token}"


def standings(
    study: Study,
    registration: Registration,
    records: Mapping[RunId, Sequence[AttemptRecord]],
    runs: Iterable[RunId] | None = None,
    *,
    here: bool | None = None,
) -> list[Standing]:
    """Every run of a registration, or these; Slurm is asked once, and only
    where a job may be open. `here` says whether a `trap run` goes on (None: look).
    """
    design, base = registration.draft.design, study.runs / registration.folder
    wanted = list(design.run_ids() if runs is None else runs)
    settled = {run for run in wanted if _is_settled(records.get(run, ()))}
    jobs = _jobs(study, registration, [run for run in wanted if run not in settled])
    here = runs_here(study.root) if here is None else here
    return [
        standing_of(
            RunFiles(
                run,
                records.get(run, ()),
                [
                    _attempt(attempt_folder(study.runs, base.name, run.path, n))
                    for n in attempt_numbers(base / run.path)
                ],
                jobs.get(run),
                here,
                now(),
                design.horizon_of(design.arm(run.arm)),
            )
        )
        for run in wanted
    ]


def _is_settled(records: Sequence[AttemptRecord]) -> bool:
    """Whether nothing of a run is open by the log: then no job is asked about."""
    results = {record.attempt for record in records if record.event != "start"}
    starts = {record.attempt for record in records if record.event == "start"}
    return any(record.event == "complete" for record in records) or starts <= results


def _attempt(folder: Path) -> AttemptFiles:
    number = int(folder.name.removeprefix("attempt-"))
    if is_complete(folder):
        return AttemptFiles(number, complete=True)
    return AttemptFiles(
        number, False, abandoned_reason(folder), seconds_of(folder / PROGRESS_FILE), log_tail(folder / LOG_FILE)
    )


def _jobs(study: Study, registration: Registration, runs: Sequence[RunId]) -> dict[RunId, JobFiles]:
    """The latest job of each of these runs."""
    wanted = set(runs)
    batches = [b for b in batches_of(study.runs / registration.folder) if any(r.run in wanted for r in b.reserved)]
    if not wanted or not batches:
        return {}
    settle_s = study.settings.executors.settle_s(registration.cell.name)
    known = {batch.token: read_jobs(batch) for batch in batches}
    answer = ask([job_name(batch) for batch in batches], [job for jobs in known.values() for job in jobs])
    found: dict[RunId, JobFiles] = {}
    for batch in sorted(batches, key=lambda b: min(r.attempt for r in b.reserved)):
        jobs = known[batch.token] or _recovered(batch, answer)
        for index, reserved in enumerate(batch.reserved):
            if reserved.run in wanted and _is_later(reserved.attempt, found.get(reserved.run)):
                job = jobs[index] if jobs else None
                tail = _log(batch, job)
                state = answer.jobs.get(job or "")
                found[reserved.run] = JobFiles(
                    reserved.attempt, reserved.last_attempt, job, state, answer.problem, settle_s, tail
                )
    return found


def _is_later(attempt: int, other: JobFiles | None) -> bool:
    return other is None or attempt >= other.first


def _recovered(batch: Batch, answer: Answer) -> list[str]:
    """The job ids of a batch whose submission was cut off before it could keep them."""
    own = [job for job, state in answer.jobs.items() if state.name == job_name(batch)]
    ids = sorted(own, key=lambda job: tuple(map(int, job.split("_"))))
    if len(ids) != len(batch.reserved):
        return []
    write_jobs(batch, ids, now())
    return ids


def _log(batch: Batch, job: str | None) -> str:
    """The last lines that a job wrote on its standard error."""
    return log_tail(batch.logs / f"{job}_0_log.err") if job else ""


def runs_here(root: Path) -> bool:
    """Whether a `trap run` of this study goes on, on this machine."""
    try:
        with (root / ".git" / LOCK_FILE).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
