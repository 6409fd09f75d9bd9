"""Runs as jobs of a real Slurm: complete, failing, killed, out of time, requeued,
preempted and cancelled, with accounts and without.

All go on at once, in one study. Each engine has a process in a session of its
own, whose parent is gone: nothing may be left of it either.
"""

from __future__ import annotations

import json
from pathlib import Path

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
RIGHT_S = 45
"""States are right so soon after what changes them, on a machine that is busy with all of these runs."""


@pytest.mark.parametrize("accounts", [pytest.param(True, marks=needs_accounts), False], ids=["accounts", "no-accounts"])
def test_jobs_come_to_every_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accounts: bool) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with cluster(tmp_path / "slurm", accounting=accounts, min_job_age_s=2) as slurm:
        for name, value in slurm.environment.items():
            monkeypatch.setenv(name, value)
        study = _submitted(tmp_path, slurm)
        _is_killed_and_requeued(study)
        _is_cancelled(study)
        _fails(study)
        _complete(study, slurm)
        _gives_way(study)
        _makes_only_what_is_missing(study)
        _runs_out_of_time(study)
        slurm.wait(lambda: slurm.left() == [], 20, "nothing is left of any job")
        print({event: round(took_s, 1) for event, took_s in study.took_s.items()})


def _submitted(folder: Path, slurm: Cluster) -> SlurmStudy:
    study = SlurmStudy(
        folder, slurm, rule("good", [0, 1, 2, 3]), rule("ends", [FAILING, KILLED, REQUEUED]),
        rule("late", [0], 300), rule("cancelled", [0], 300), rule("spare", [0]),
    )  # fmt: skip
    for seed in range(4):
        study.options("good", seed, STRAY)
    for seed, options in ((FAILING, f"{STRAY} --stub-exit 3"), (KILLED, LOADING), (REQUEUED, LOADING)):
        study.options("ends", seed, options)
    for name in ("late", "cancelled"):
        study.options(name, 0, STRAY)
    study.options("spare", 0, LOADING)
    gives_way = {"partition": "spare", "gpus": 2}
    for name, setup in (("spare", gives_way), ("late", {"time_s": 60}), ("ends", {}), ("cancelled", {})):
        done = study.submit(name, **setup)
        assert done.code == 0 and "submitted" in done.text, done.text
    study.wait(lambda: study.under_way("spare", 0), 60, "the spare run's engine loads")
    study.options("spare", 0, STRAY)
    done = study.submit("good", gpus=1)
    assert done.code == 0 and "submitted" in done.text, done.text
    (array,) = {str(run["job"]).partition("_")[0] for run in study.status("good").values()}
    assert array.isdecimal(), "four runs are one array"
    return study


def _is_killed_and_requeued(study: SlurmStudy) -> None:
    for seed in (KILLED, REQUEUED):
        study.wait(lambda seed=seed: study.under_way("ends", seed), 60, "the engine loads")
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
    study.wait(lambda: study.under_way("cancelled", 0), 60, "the engine is there")
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


def _complete(study: SlurmStudy, slurm: Cluster) -> None:
    for seed in range(4):
        study.wait_state("good", seed, ("finished",), RIGHT_S, f"good {seed}")
    said = study.finish("good")
    assert all(study.pushed("good", seed) == [(1, "complete")] for seed in range(4)), said
    jobs = [
        json.loads((study.run_folder("good", seed) / "attempt-1/run.json").read_bytes())["job"] for seed in range(4)
    ]
    node = slurm.said("sinfo", "--noheader", "--partition=gpu", "--format=%n")
    for job in jobs:
        assert job["scheduler"] == "slurm" and job["node"] == node and job["restarts"] == 0
        assert job["submitted_at"] <= job["started_at"]
    assert [job["job"].partition("_")[2] for job in jobs] == ["0", "1", "2", "3"]
    assert {job["devices"] for job in jobs} == {"0", "1"}, "two GPUs, one for each run"
    proven = command(study.root, "verify", "good")
    assert proven.text.rstrip().endswith("0 failures"), proven.text
    assert f"slurm job {jobs[0]['job']} on {node}" in (study.root / "evidence/LEDGER.md").read_text()


def _gives_way(study: SlurmStudy) -> None:
    study.wait_state("spare", 0, ("finished",), RIGHT_S, "preempted")
    told = study.abandoned("spare", 0)
    assert told["cause"] == "preempted" and "was preempted" in told["reason"]
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
    study.wait_state("late", 0, ("failed",), 100, "late")
    assert "came to its time limit of 60 s" in study.abandoned("late", 0)["reason"]
    assert study.engines() == []
