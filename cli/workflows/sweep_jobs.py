"""A sweep's missing shards as Slurm jobs; nobody waits for them."""

from __future__ import annotations

import hashlib
import secrets
from itertools import pairwise
from pathlib import Path

from cli.workflows.sweep_frozen import SWEEP_FILE
from registry.errors import StudyError
from registry.study import open_study
from runners.slurm.calls import Call
from runners.slurm.scheduler import ask
from runners.slurm.submission import check_slurm, submit_calls

CALL = "cli.workflows.sweep_shards:make_shards"
JOBS_FOLDER = "jobs"


def submit_shards(out: Path, cell: str, missing: list[int]) -> list[str]:
    """Submit the missing shards, an array whose jobs make several each where
    there are more than `parallel`; the job ids. What a job asks for is said by
    the study around the current folder.

    StudyError where jobs of this sweep are still there, or Slurm does not answer.
    """
    setup = open_study(Path()).settings.executors.slurm_for(cell)
    check_slurm()
    name = f"trap-sweep-{hashlib.sha256((out / SWEEP_FILE).read_bytes()).hexdigest()[:16]}"
    answer = ask([name], [])
    live = [job for job, state in answer.jobs.items() if state.live]
    if answer.problem or live:
        raise StudyError(
            "jobs of this sweep may still be there",
            where=str(out),
            value=answer.problem or f"{len(live)} jobs, {live[0]} the first",
            remedy="repeat the command when they have ended: it submits what is missing then",
        )
    calls = [Call(CALL, (str(out.resolve()), *part)) for part in parts(missing, setup.parallel)]
    return submit_calls(calls, out.resolve() / JOBS_FOLDER / secrets.token_hex(4), setup, name) if calls else []


def parts(missing: list[int], most: int) -> list[tuple[int, int]]:
    """First and last shard of at most `most` parts, of sizes as equal as can be;
    shards in between that are done already are left alone.
    """
    count = min(most, len(missing))
    bounds = [len(missing) * part // count for part in range(count + 1)] if count else []
    return [(missing[first], missing[last - 1]) for first, last in pairwise(bounds)]
