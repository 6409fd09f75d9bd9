"""The job that an attempt runs in, as the node sees it: evidence of where and when."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import psutil

from registry.timestamps import moment, now, timestamp_of
from runners.machine import gpus
from runners.slurm.scheduler import CAUSES, job_fields, lives, moment_of

_EARLY_S = 60
"""Slurm may send its warning so much sooner than was asked for (sbatch, --signal)."""


@dataclass(frozen=True)
class Job:
    """A Slurm job: `facts` for its attempt's records, `warn_s` as it was asked for."""

    raw_id: str
    facts: dict[str, Any] = field(default_factory=dict)
    limit_s: float | None = None
    warn_s: int = 0

    def earlier_cause(self) -> str | None:
        """What ended the job's life before this one, as a cause, where Slurm's
        accounts show it.
        """
        before = lives(self.raw_id)[: self.facts["restarts"]]
        return CAUSES.get(before[-1]) if before else None

    def why_ended(self) -> tuple[str, str | None]:
        """Why Slurm asks the attempt to end, in words, and the cause of
        `registry.attempt_log.CAUSES` that it shows.
        """
        fields, states = job_fields(self.raw_id), lives(self.raw_id)
        # PreemptTime is told where preemption leaves time to end, PREEMPTED by the accounts.
        if fields.get("PreemptTime") not in (None, "None", "Unknown") or states[-1:] == ["PREEMPTED"]:
            return f"job {self.facts['job']} was preempted", "preempted"
        started = moment(self.facts["started_at"]) if self.facts.get("started_at") else None
        # A warning finds the job running; what was cancelled or requeued is not, any more.
        if started and self.limit_s and fields.get("JobState", "RUNNING") == "RUNNING":
            ran_s = (moment(now()) - started).total_seconds()
            if ran_s >= self.limit_s - self.warn_s - _EARLY_S:
                return f"job {self.facts['job']} came to its time limit of {self.limit_s:.0f} s", None
        return f"job {self.facts['job']} was asked to end: cancelled, requeued or killed", None


def this_job(limit_s: float, warn_s: int) -> Job | None:
    """The job that this process runs in; None outside Slurm."""
    raw = os.environ.get("SLURM_JOB_ID")
    if not raw or not raw.isdecimal():
        return None
    fields = job_fields(raw)
    array, task = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    facts = {
        "scheduler": "slurm",
        "job": f"{array}_{task}" if array else raw,
        "node": os.environ.get("SLURMD_NODENAME"),
        "partition": os.environ.get("SLURM_JOB_PARTITION"),
        "cluster": os.environ.get("SLURM_CLUSTER_NAME"),
        "submitted_at": moment_of(fields.get("SubmitTime", "")),
        "started_at": moment_of(fields.get("StartTime", "")) or timestamp_of(psutil.Process().create_time()),
        "restarts": int(os.environ.get("SLURM_RESTART_COUNT") or 0),
        "devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "gpus": gpus(),
    }
    return Job(raw, facts, limit_s, warn_s)
