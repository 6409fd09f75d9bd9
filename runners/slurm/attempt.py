"""One attempt in a job: what `trapkit run-one` does, by hand or on a node.

A job that Slurm starts again makes the next attempt, from a clean start: the
one before is dead, and is marked so where it could not say it itself.
"""

from __future__ import annotations

from pathlib import Path

from artifacts.attempt import ABANDONED_FILE, abandon, is_complete
from registry.errors import EngineError, RecordError
from runners.batch import Batch, read_batch
from runners.engines.process import wait_until_gone
from runners.run_one import AttemptOrder, execute
from runners.slurm.job import Job, this_job

CALL = "runners.slurm.attempt:make_attempt"
"""The function that a batch's jobs call."""

ENGINE_END_S = 30.0
"""How long the last processes of an earlier attempt's engine may take to go."""


def make_attempt(file: str, index: int) -> None:
    """Make the next attempt of the run at `index` of a batch.

    Nothing where one is complete already; RecordError where all that were
    announced have been made, and whatever the attempt itself fails with.
    """
    batch = read_batch(Path(file))
    if not 0 <= index < len(batch.reserved):
        raise RecordError("the batch has no such run", where=file, value=index)
    number = next_number(batch, index)
    if number is None:
        return
    job = this_job(batch.limit_s, batch.warn_s)
    reserved = batch.reserved[index]
    for earlier in range(reserved.attempt, number):
        _settle(batch.attempt(index, earlier), job if earlier == number - 1 else None)
    order = AttemptOrder(
        batch.registration,
        reserved.run,
        number,
        batch.attempt(index, number),
        batch.beacon,
        batch.token,
        root=batch.root,
    )
    execute(order, job)


def next_number(batch: Batch, index: int) -> int | None:
    """The first announced attempt that nobody has begun; None where one is
    complete. RecordError where none is left.
    """
    numbers = batch.reserved[index].attempts
    if any(is_complete(batch.attempt(index, number)) for number in numbers):
        return None
    for number in numbers:
        if not batch.attempt(index, number).exists():
            return number
    raise RecordError(
        "every attempt that was announced for this job has been made",
        where=batch.reserved[index].run.path,
        value=f"{numbers.start} to {numbers.stop - 1}",
        remedy="trapkit run announces others; executors.slurm says how many a job gets (attempts)",
    )


def _settle(folder: Path, job: Job | None) -> None:
    """Mark an attempt of an earlier life of this job, once its engine is gone;
    `job` says what ended the last of them.
    """
    if not wait_until_gone(folder, ENGINE_END_S):
        raise EngineError("an engine of an earlier attempt is still there", where=str(folder))
    if folder.is_dir() and not (folder / ABANDONED_FILE).is_file():
        cause = job.earlier_cause() if job else None
        abandon(folder, "the job ended without a word, and Slurm started it again", cause)
