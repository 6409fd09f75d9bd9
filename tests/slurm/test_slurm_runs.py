"""Runs as jobs of a real Slurm: complete, failing, killed, out of time, requeued,
preempted and cancelled, with accounts and without.

All go on at once, in one study. Each engine has a process in a session of its
own, whose parent is gone: nothing may be left of it either.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# In this process the core is decorated before compilation is switched off for children.
import runners.gate
from tests.slurm.cluster import Cluster, cluster, needs_accounts, needs_slurm
from tests.slurm.studies import SlurmStudy, rule
from tests.support import command

assert runners.gate
pytestmark = needs_slurm

STRAY = "--stub-strays 1"
LOADING = f"{STRAY} --stub-start-s 600"
FAILING, KILLED, REQUEUED = range(3)
RULES: dict[str, tuple[list[int], float]] = {
    "spare": ([0], 0.6),
    "late": ([0], 300),
    "ends": ([FAILING, KILLED, REQUEUED], 0.6),
    "cancelled": ([0], 300),
    "good": ([0, 1, 2, 3], 0.6),
}
"""Seeds and horizon (s) of each registration."""

SETUPS: dict[str, dict[str, Any]] = {
    "late": {"time_s": 60},
    "ends": {},
    "cancelled": {},
    "spare": {"partition": "spare", "gpus": 2},
    "good": {"gpus": 1},
}
"""What their jobs ask for, in the order of submission."""

OPTIONS = {
    **{(name, seed): STRAY for name, (seeds, _) in RULES.items() for seed in seeds},
    ("ends", FAILING): f"{STRAY} --stub-exit 3",
    ("ends", KILLED): LOADING,
    ("ends", REQUEUED): LOADING,
    ("spare", 0): LOADING,
}
"""How each run's engine behaves at first."""

RIGHT_S = 90
"""States are right so soon after what changes them, on a machine that is busy
with all of these runs and others; `took_s` has what it was (a few seconds on a
free one).
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster that forgets its jobs at once, for this process, too."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with cluster(tmp_path / "slurm", accounting=request.param, min_job_age_s=2) as found:
        for name, value in found.environment.items():
            monkeypatch.setenv(name, value)
        yield found


@needs_accounts
@pytest.mark.parametrize("slurm", [True], ids=["accounts"], indirect=True)
def test_jobs_come_to_every_end(tmp_path: Path, slurm: Cluster) -> None:
    study = SlurmStudy(tmp_path, slurm, *(rule(name, *RULES[name]) for name in RULES))
    _is_submitted(study)
    _is_killed_and_requeued(study)
    _is_cancelled(study)
    _fails(study)
    _complete(study)
    _gives_way(study, cause="preempted", told="was preempted")
    _makes_only_what_is_missing(study)
    _runs_out_of_time(study)
    _is_over(study)


@pytest.mark.parametrize("slurm", [False], ids=["no-accounts"], indirect=True)
def test_jobs_that_nobody_remembers(tmp_path: Path, slurm: Cluster) -> None:
    study = SlurmStudy(tmp_path, slurm, *(rule(name, *RULES[name]) for name in RULES))
    _is_submitted(study)
    _is_killed_and_requeued(study)
    _is_cancelled(study)
    study.wait(lambda: "good" not in slurm.said("squeue", "--states=all", "-o", "%j"), 60, "squeue has forgotten all")
    _fails(study)
    _complete(study)
    # What gave way says so only where accounts, or a grace time, keep it.
    _gives_way(study, cause=None, told="asked to end: cancelled, requeued or killed")
    _makes_only_what_is_missing(study)
    _runs_out_of_time(study)
    _is_over(study)


def _is_submitted(study: SlurmStudy) -> None:
    """Jobs of all registrations go on, those that wait for a GPU apart."""
    for (name, seed), options in OPTIONS.items():
        study.options(name, seed, options)
    for name, setup in SETUPS.items():
        done = study.submit(name, **setup)
        assert done.code == 0 and "submitted" in done.text, done.text
        if name == "spare":
            study.wait(lambda: study.under_way("spare", 0), 90, "the spare run's engine loads")
            study.options("spare", 0, STRAY)
    (array,) = {str(run["job"]).partition("_")[0] for run in study.status("good").values()}
    assert array.isdecimal(), "four runs are one array"


def _is_killed_and_requeued(study: SlurmStudy) -> None:
    for seed in (KILLED, REQUEUED):
        study.wait(lambda seed=seed: study.under_way("ends", seed), 90, "the engine loads")
        assert study.status("ends")[seed]["state"] == "running"
    study.options("ends", REQUEUED, STRAY)
    jobs = {seed: run["job"] for seed, run in study.status("ends").items()}
    study.slurm.said("scontrol", "requeue", jobs[REQUEUED])
    study.slurm.said("scancel", "--signal=KILL", jobs[KILLED])
    study.wait_state("ends", KILLED, ("failed", "lost"), RIGHT_S, "killed")
    assert not (study.run_folder("ends", KILLED) / "attempt-1/run.json").exists()
    study.wait_state("ends", REQUEUED, ("finished",), RIGHT_S, "requeued")
    assert "asked to end: cancelled, requeued or killed" in study.abandoned("ends", REQUEUED)["reason"]
    assert (study.run_folder("ends", REQUEUED) / "attempt-2/run.json").exists()
    study.wait(lambda: study.engines("ends") == [], 20, "their engines are gone")


def _is_cancelled(study: SlurmStudy) -> None:
    study.wait(lambda: study.under_way("cancelled", 0), 90, "the engine is there")
    done = command(study.root, "cancel", "cancelled")
    assert done.code == 0 and "cancelled 1 jobs, reported 1 attempts" in done.text, done.text
    study.wait_state("cancelled", 0, ("failed",), 10, "cancelled")
    assert study.engines("cancelled") == []
    assert study.pushed("cancelled", 0) == [(1, "abandoned")]
    assert "nothing goes on" in command(study.root, "cancel", "cancelled").text


def _fails(study: SlurmStudy) -> None:
    run = study.wait_state("ends", FAILING, ("failed",), RIGHT_S, "failing")
    assert "never got ready: it exited with 3" in run["about"]
    assert "stub: the engine cannot start" in run["log"]


def _complete(study: SlurmStudy) -> None:
    for seed in range(4):
        study.wait_state("good", seed, ("finished",), RIGHT_S, f"good {seed}")
    said = study.finish("good")
    assert all(study.pushed("good", seed) == [(1, "complete")] for seed in range(4)), said
    jobs = [
        json.loads((study.run_folder("good", seed) / "attempt-1/run.json").read_bytes())["job"] for seed in range(4)
    ]
    node = study.slurm.said("sinfo", "--noheader", "--partition=gpu", "--format=%n")
    for job in jobs:
        assert job["scheduler"] == "slurm" and job["node"] == node and job["restarts"] == 0
        assert job["submitted_at"] <= job["started_at"]
    assert [job["job"].partition("_")[2] for job in jobs] == ["0", "1", "2", "3"]
    assert {job["devices"] for job in jobs} == {"0", "1"}, "two GPUs, one for each run"
    proven = command(study.root, "verify", "good")
    assert proven.text.rstrip().endswith("0 failures"), proven.text
    assert f"4 runs were jobs, by their own records; the first: slurm job {jobs[0]['job']} on {node}" in proven.text


def _gives_way(study: SlurmStudy, *, cause: str | None, told: str) -> None:
    study.wait_state("spare", 0, ("finished",), RIGHT_S, "preempted")
    abandoned = study.abandoned("spare", 0)
    assert abandoned["cause"] == cause and told in abandoned["reason"]
    assert (study.run_folder("spare", 0) / "attempt-2/run.json").exists()


def _makes_only_what_is_missing(study: SlurmStudy) -> None:
    for seed in (FAILING, KILLED):
        study.options("ends", seed, STRAY)
    said = study.finish("ends")
    # A killed job's second number was announced and never begun.
    assert study.pushed("ends", REQUEUED) == [(1, "abandoned"), (2, "complete")], said
    for seed in (FAILING, KILLED):
        *before, (last, event) = study.pushed("ends", seed)
        assert event == "complete" and {e for _, e in before} == {"abandoned"}, said
        assert (study.run_folder("ends", seed) / f"attempt-{last}/run.json").exists()
    assert len([*study.run_folder("ends", REQUEUED).glob("attempt-*")]) == 2, "what was complete is not made again"


def _runs_out_of_time(study: SlurmStudy) -> None:
    study.wait_state("late", 0, ("failed",), RIGHT_S + 60, "late")
    assert "came to its time limit of 60 s" in study.abandoned("late", 0)["reason"]


def _is_over(study: SlurmStudy) -> None:
    study.wait(lambda: study.slurm.left() == [], 30, "nothing is left of any job")
    assert study.engines() == []
    print({event: round(took_s, 1) for event, took_s in study.took_s.items()})
