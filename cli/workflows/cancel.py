"""Ending runs that go on: jobs of Slurm, or a `trap run` on this machine."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass

import git

from cli.workflows.attempts import records_of
from cli.workflows.registered import Registered
from cli.workflows.run import Selection, only_one
from cli.workflows.run_jobs import report
from cli.workflows.standing import RUNNING, SUBMITTED, WAITING, Standing
from cli.workflows.standings import LOCK_FILE, runs_here, standings
from registry.design import RunId
from registry.errors import StudyError
from registry.registration import Registration
from registry.study import Study
from runners.slurm.scheduler import cancel as cancel_jobs

END_S = 120.0
"""How long cancelled jobs may take to end."""

_LOOK_S = 1.0


@dataclass(frozen=True)
class Cancelled:
    """The jobs that were cancelled, how many results were pushed for them, and
    whether a `trap run` on this machine was interrupted.
    """

    jobs: tuple[str, ...]
    results: int
    interrupted: bool


def cancel(study: Study, repository: git.Repo, registered: Registered, selection: Selection) -> Cancelled:
    """Cancel the open runs of a selection.

    A run that goes on here is interrupted as a whole: it reports for itself.
    Otherwise the results of cancelled jobs are pushed from here.
    """
    registration = registered.registration
    runs = selection.of(registration)
    found = standings(study, registration, records_of(repository, study, registration), runs)
    jobs = tuple(sorted(s.job_id for s in found if s.open and s.job_id))
    problem = cancel_jobs(jobs)
    if problem:
        raise StudyError(f"Slurm did not cancel: {problem}", value=", ".join(jobs))
    local = [s for s in found if s.state in (RUNNING, WAITING) and s.job_id is None]
    if local and runs_here(study.root):
        _interrupt(study)
        return Cancelled(jobs, 0, True)
    if not jobs or runs_here(study.root):
        return Cancelled(jobs, 0, False)
    with only_one(study):
        over = _ended(study, repository, registration, [s.run for s in found if s.job_id in jobs])
        records = records_of(repository, study, registration)
        results = report(study, repository, registration, records, over, reason="cancelled by trapkit cancel")
    return Cancelled(jobs, results, False)


def _ended(study: Study, repository: git.Repo, registration: Registration, runs: list[RunId]) -> list[Standing]:
    """These runs once their jobs are over; those that end too late are left out."""
    until_s = time.monotonic() + END_S
    records = records_of(repository, study, registration)
    while True:
        found = standings(study, registration, records, runs)
        going = [s for s in found if s.state == SUBMITTED or (s.job and s.job.live)]
        if not going or time.monotonic() > until_s:
            return [s for s in found if s not in going]
        time.sleep(_LOOK_S)


def _interrupt(study: Study) -> None:
    """Ask the `trap run` that holds the study's lock to end, as Ctrl-C does."""
    text = (study.root / ".git" / LOCK_FILE).read_text("ascii", "replace").strip()
    with suppress(ValueError, ProcessLookupError):
        os.kill(int(text), signal.SIGTERM)
