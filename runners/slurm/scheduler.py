"""What the scheduler says of jobs: a hint, never the truth about a run.

squeue knows jobs that are there and, for MinJobAge (5 minutes by default), those
that just ended; sacct knows older ones where the cluster keeps accounts. A
scheduler that does not answer leaves everything open.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from registry.plain_text import plain
from registry.timestamps import timestamp_of

LIVE = frozenset(
    {
        "PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED",
        "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED", "SPECIAL_EXIT", "RESV_DEL_HOLD",
    }
)  # fmt: skip
"""States of squeue(1) in which a job is not over; every other state is final."""

WAITING = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"})
CAUSES = {"PREEMPTED": "preempted", "NODE_FAIL": "node_failed"}
"""Final states that are a cause of `registry.attempt_log.CAUSES`."""

_ASK_S = 60.0
_SQUEUE = "%i|%j|%T|%r|%N|%V|%S|%e"
_SACCT = "JobID,JobName,State,Reason,NodeList,Submit,Start,End"
_TASK = re.compile(r"([0-9]+)(?:_([0-9]+))?")


@dataclass(frozen=True)
class JobState:
    """One job as the scheduler told it; times as the study writes them, in UTC."""

    job: str
    name: str
    state: str
    reason: str | None = None
    node: str | None = None
    submitted_at: str | None = None
    started_at: str | None = None
    ended_at: str | None = None

    @property
    def live(self) -> bool:
        """Whether the job may still do something."""
        return self.state in LIVE

    @property
    def waiting(self) -> bool:
        """Whether it has yet to start, or to start again."""
        return self.state in WAITING


@dataclass(frozen=True)
class Answer:
    """The jobs that the scheduler knows; `problem` says why it did not answer.

    Without a problem, a job that is not in `jobs` is over and forgotten.
    """

    jobs: dict[str, JobState]
    problem: str | None = None


def ask(names: Iterable[str], ids: Iterable[str]) -> Answer:
    """The jobs of these names, and those of `ids` that only the accounts know."""
    # By name: an id that squeue has forgotten would make it refuse the whole question.
    queue = _said(["squeue", "--noheader", "--array", "--states=all", f"--name={','.join(names)}", "-o", _SQUEUE])
    if queue.problem:
        return Answer({}, queue.problem)
    jobs = parse(queue.text)
    forgotten = sorted({job.partition("_")[0] for job in ids if job not in jobs}, key=int)
    if forgotten:
        # No accounts, no answer: then the runs' own files are all that is known.
        kept = _said(["sacct", "-X", "-P", "-n", "-j", ",".join(forgotten), "-o", _SACCT])
        jobs = {**parse(kept.text), **jobs}
    return Answer(jobs)


def cancel(ids: Iterable[str]) -> str | None:
    """Cancel jobs, whatever state they are in; what Slurm said where it refused."""
    wanted = sorted(ids)
    return _said(["scancel", *wanted]).problem if wanted else None


def parse(text: str) -> dict[str, JobState]:
    """Jobs from lines of fields in the order of squeue's and sacct's formats here."""
    found = {}
    for line in text.splitlines():
        fields = [plain(field.strip(), 200) for field in line.split("|")]
        if len(fields) != 8 or not _TASK.fullmatch(fields[0]):
            continue
        job, name, state, reason, node, *times = fields
        # sacct: CANCELLED by 1000
        word = state.partition(" ")[0].upper()
        found[job] = JobState(job, name, word, _known(reason), _known(node), *map(moment_of, times))
    return found


def _known(text: str) -> str | None:
    return None if text in ("", "None", "(null)", "n/a", "N/A", "Unknown", "None assigned") else text


def moment_of(text: str) -> str | None:
    """A time of Slurm's as the study writes it: whole seconds since 1970 (by
    SLURM_TIME_FORMAT) become UTC; None for anything else.
    """
    return timestamp_of(int(text)) if re.fullmatch(r"[0-9]{9,11}", text) else None


@dataclass(frozen=True)
class _Said:
    text: str
    problem: str | None = None


def _said(command: list[str]) -> _Said:
    environment = {**os.environ, "SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_S, check=False, env=environment)
    except FileNotFoundError:
        return _Said("", f"no {command[0]} on PATH")
    except subprocess.TimeoutExpired:
        return _Said("", f"{command[0]} did not answer in {_ASK_S:.0f} s")
    if done.returncode:
        return _Said("", plain(done.stderr.strip() or f"{command[0]} ended with {done.returncode}", 300))
    return _Said(done.stdout)


def lives(raw: str) -> list[str]:
    """The states in which the lives of a job ended, the current one's last; a
    job has one more for each time that Slurm started it again. Empty without
    accounts. `raw` is SLURM_JOB_ID: the accounts learn later which task of an
    array a job is.
    """
    text = _said(["sacct", "-X", "-D", "-P", "-n", "-j", raw, "-o", "JobIDRaw,State"]).text
    # An array's own id is that of one of its tasks, too, and asks for all of them.
    found = [line.partition("|") for line in text.splitlines()]
    return [state.partition(" ")[0].upper() for job, _, state in found if job == raw and state]


def job_fields(raw: str) -> dict[str, str]:
    """What `scontrol show job` says of one job, by its SLURM_JOB_ID; empty where it says nothing."""
    for line in _said(["scontrol", "--oneliner", "show", "job", raw]).text.splitlines():
        fields = {name: value for name, _, value in (word.partition("=") for word in line.split()) if name}
        # As above: of an array it may tell every task.
        if fields.get("JobId") == raw:
            return fields
    return {}
