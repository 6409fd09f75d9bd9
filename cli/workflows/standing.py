"""Where one run stands: decided from its own files, the pushed log and, as a
hint, from what the scheduler says. Pure.

The attempt's final record is the truth. A scheduler is asked only about what has
none, and is not believed against one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from registry.attempt_log import AttemptRecord
from registry.design import RunId
from registry.timestamps import moment
from runners.slurm.scheduler import JobState

MISSING, SUBMITTED, WAITING, RUNNING = "missing", "submitted", "waiting", "running"
FINISHED, FAILED, LOST = "finished", "failed", "lost"
OPEN = frozenset({SUBMITTED, WAITING, RUNNING})
"""States in which something may still come of the run by itself."""


@dataclass(frozen=True)
class AttemptFiles:
    """One attempt's folder: how far it came (seconds of its run), and how it
    ended by its own records; `tail` holds the last lines of its engine's log.
    """

    number: int
    complete: bool = False
    reason: str | None = None
    progress_s: int = 0
    tail: str = ""


@dataclass(frozen=True)
class JobFiles:
    """The job that a run's attempts `first` .. `last` were announced for.

    `job` is None where it was never submitted, as far as is known; `state` where
    the scheduler does not know it (any more), `problem` why it did not answer.
    """

    first: int
    last: int
    job: str | None
    state: JobState | None = None
    problem: str | None = None
    settle_s: float = 0.0
    tail: str = ""


@dataclass(frozen=True)
class RunFiles:
    """All that is known of a run: its records in the pushed log, its attempts on
    disk, its latest job, and whether a `trap run` of this study goes on here.
    """

    run: RunId
    records: Sequence[AttemptRecord]
    attempts: Sequence[AttemptFiles]
    job: JobFiles | None
    running_here: bool
    now: str
    horizon_s: float


@dataclass(frozen=True)
class Standing:
    """A run's state, `words` about it and the last log lines of one that failed.

    `attempt` is the number that this is about, None before the first.
    """

    run: RunId
    state: str
    words: str = ""
    attempt: int | None = None
    job: JobState | None = None
    job_id: str | None = None
    tail: str = ""

    @property
    def open(self) -> bool:
        """Whether to wait for it, and to submit no other attempt."""
        return self.state in OPEN


def standing_of(files: RunFiles) -> Standing:
    """The state of one run."""
    complete = next((attempt for attempt in files.attempts if attempt.complete), None)
    pushed = [record for record in files.records if record.event == "complete"]
    if pushed or complete:
        if pushed:
            return Standing(files.run, FINISHED, "", min(record.attempt for record in pushed))
        return _unreported(files, complete.number) if complete else Standing(files.run, FINISHED)
    settled = {record.attempt for record in files.records if record.event == "abandoned"}
    starts = [record for record in files.records if record.event == "start" and record.attempt not in settled]
    if not starts:
        return _without_open_start(files)
    start = starts[-1]
    if files.job and files.job.first == start.attempt:
        return _of_job(files, files.job)
    return _of_local(files, start.attempt)


def _unreported(files: RunFiles, number: int) -> Standing:
    """A run whose complete attempt nobody has pushed yet, with the job that made it."""
    job = files.job if files.job and files.job.first <= number <= files.job.last else None
    words = "its result is not pushed yet"
    return Standing(files.run, FINISHED, words, number, job.state if job else None, job.job if job else None)


def _without_open_start(files: RunFiles) -> Standing:
    last = max(files.records, key=lambda record: (record.attempt, record.event != "start"), default=None)
    if last is None:
        return Standing(files.run, MISSING)
    folder = _attempt(files, last.attempt)
    return Standing(files.run, FAILED, folder.reason or last.reason or "abandoned", last.attempt, tail=folder.tail)


def _of_local(files: RunFiles, number: int) -> Standing:
    """A run that no job was announced for: it belongs to a `trap run` here, or to one that is gone."""
    begun = any(attempt.number == number for attempt in files.attempts)
    if not files.running_here:
        return Standing(files.run, LOST, "its trap run is gone", number, tail=_attempt(files, number).tail)
    if not begun:
        return Standing(files.run, WAITING, "in the queue", number)
    return Standing(files.run, RUNNING, _progress(files, _attempt(files, number)), number)


def _of_job(files: RunFiles, job: JobFiles) -> Standing:
    """A run that a job was announced for."""
    own = [attempt for attempt in files.attempts if job.first <= attempt.number <= job.last]
    last = own[-1] if own else AttemptFiles(job.first)
    state, words = _of_scheduler(files, job, own)
    tail = (last.tail or job.tail) if state in (FAILED, LOST) else ""
    return Standing(files.run, state, words, last.number, job.state, job.job, tail)


def _of_scheduler(files: RunFiles, job: JobFiles, own: Sequence[AttemptFiles]) -> tuple[str, str]:
    """State and words; `own` are the attempts that the job has begun."""
    state, reason = job.state, own[-1].reason if own else None
    if job.problem is not None:
        return SUBMITTED, f"Slurm does not say: {job.problem}"
    if job.job is None:
        # The submission was cut off; what its job did by itself counts all the same.
        return (FAILED, reason) if reason else (LOST, "no job is known for it")
    if state and state.live:
        if state.waiting:
            return WAITING, (state.reason or state.state) + (f", after {len(own)} attempts" if own else "")
        return RUNNING, _progress(files, own[-1]) if own else "starting"
    if reason:
        return FAILED, reason + (f" (Slurm: {state.state})" if state else "")
    if state is None:
        left = "no final record" if own else "nothing"
        return LOST, f"Slurm has forgotten its job, which left {left}"
    if not _settled(files.now, state, job.settle_s):
        return RUNNING, f"its job is over ({state.state}), its files may still come"
    return FAILED, f"Slurm: {state.state}"


def _settled(now: str, state: JobState, settle_s: float) -> bool:
    """Whether a job's files would show by now: shared file systems are late."""
    if state.ended_at is None:
        return True
    return (moment(now) - moment(state.ended_at)).total_seconds() >= settle_s


def _attempt(files: RunFiles, number: int) -> AttemptFiles:
    return next((attempt for attempt in files.attempts if attempt.number == number), AttemptFiles(number))


def _progress(files: RunFiles, attempt: AttemptFiles) -> str:
    return f"{attempt.progress_s:,} of {files.horizon_s:,.0f} s" if attempt.progress_s else "starting"
