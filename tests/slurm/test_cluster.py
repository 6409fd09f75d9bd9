"""The Slurm that tests run on does what clusters do, with plain jobs."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from tests.slurm.cluster import Cluster, cluster, end_left_over, folder_of, needs_accounts, needs_slurm

pytestmark = needs_slurm
PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster") / "slurm") as found:
        yield found
        assert found.left() == []


def submit(found: Cluster, folder: Path, script: str, *options: str) -> str:
    """A job of this shell script, run in `folder`; its id."""
    return found.said("sbatch", "--parsable", "--output=%A_%a.out", *options, "--wrap", script, cwd=folder)


def test_an_array_of_four_shares_two_gpus(slurm: Cluster, tmp_path: Path) -> None:
    script = "echo $CUDA_VISIBLE_DEVICES > gpu-$SLURM_ARRAY_TASK_ID; until [ -e go ]; do sleep 0.1; done"
    array = submit(slurm, tmp_path, script, "--array=0-3", "--gres=gpu:1")
    tasks = [f"{array}_{number}" for number in range(4)]
    slurm.wait(lambda: len([*tmp_path.glob("gpu-*")]) == 2, 30, "two tasks run")
    assert sorted(dict(slurm.states())[task] for task in tasks) == ["PENDING", "PENDING", "RUNNING", "RUNNING"]
    slurm.wait(lambda: all(file.read_text() for file in tmp_path.glob("gpu-*")), 10, "they told their GPUs")
    assert sorted(file.read_text().strip() for file in tmp_path.glob("gpu-*")) == ["0", "1"]
    (tmp_path / "go").touch()
    slurm.wait(lambda: {dict(slurm.states())[task] for task in tasks} == {"COMPLETED"}, 30, "all tasks complete")
    assert {(tmp_path / f"gpu-{number}").read_text().strip() for number in range(4)} == {"0", "1"}


def test_jobs_fail_are_cancelled_are_requeued_and_run_out_of_time(slurm: Cluster, tmp_path: Path) -> None:
    started = "touch started-$SLURM_JOB_ID; "
    failing = submit(slurm, tmp_path, "exit 3")
    cancelled = submit(slurm, tmp_path, started + "sleep 600 & wait")
    # The grandchild leaves the process group and the session of its job.
    requeued = submit(
        slurm, tmp_path, started + '[ "$SLURM_RESTART_COUNT" = 1 ] || { setsid sleep 600 & wait; }', "--requeue"
    )
    late = submit(slurm, tmp_path, started + "sleep 600", "--partition=short")
    for job in (cancelled, requeued, late):
        slurm.wait((tmp_path / f"started-{job}").exists, 30, "it started")
    now = datetime.now(UTC).astimezone()
    slurm.said("scontrol", "update", f"JobId={late}", f"EndTime={now + timedelta(seconds=1):%Y-%m-%dT%H:%M:%S}")
    slurm.said("scancel", cancelled)
    slurm.said("scontrol", "requeue", requeued)
    for job, state, timeout_s in (
        (failing, "FAILED", 20), (cancelled, "CANCELLED", 20), (requeued, "COMPLETED", 40), (late, "TIMEOUT", 60),
    ):  # fmt: skip
        slurm.wait(lambda job=job, state=state: slurm.state(job) == state, timeout_s, f"{job} is {state}")
    slurm.wait(lambda: slurm.left() == [], 10, "nothing is left of any job")


def test_a_job_of_the_spare_partition_gives_way(slurm: Cluster, tmp_path: Path) -> None:
    script = 'touch began-$SLURM_RESTART_COUNT; [ "$SLURM_RESTART_COUNT" = 1 ] || sleep 600'
    spare = submit(slurm, tmp_path, script, "--partition=spare", "--gres=gpu:2", "--requeue")
    slurm.wait((tmp_path / "began-").exists, 30, "the spare job starts")
    first = submit(slurm, tmp_path, "true", "--gres=gpu:1")
    slurm.wait(lambda: slurm.state(first) == "COMPLETED", 60, "the first job ran")
    slurm.wait(lambda: slurm.state(spare) == "COMPLETED", 60, "the spare job ran again")
    assert (tmp_path / "began-1").exists()


@needs_accounts
def test_the_accounts_know_how_a_job_ended(tmp_path: Path) -> None:
    with cluster(tmp_path / "slurm", accounting=True) as found:
        job = submit(found, tmp_path, "exit 3")
        told = ("sacct", "-X", "-n", "-P", "-j", job, "-o", "State")
        found.wait(lambda: found.said(*told) == "FAILED", 30, "the accounts know it")


def test_a_killed_tests_cluster_is_ended_by_the_next(tmp_path: Path) -> None:
    text = (
        "import sys, time, pathlib; from tests.slurm.cluster import cluster\n"
        "with cluster(pathlib.Path(sys.argv[1])) as found:\n"
        "    found.said('sbatch', '--wrap', 'setsid sleep 600 & touch began; wait', cwd=found.folder)\n"
        "    found.wait((found.folder / 'began').exists, 30, 'it runs')\n"
        "    print('runs', flush=True); time.sleep(600)\n"
    )
    command = [sys.executable, "-c", text, str(tmp_path / "slurm")]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    with process, process.stdout:
        assert process.stdout.readline() == "runs\n"
        process.send_signal(signal.SIGKILL)
    left = {process.name() for process in marked(tmp_path / "slurm")}
    assert left >= {"munged", "slurmctld", "slurmd", "slurmstepd", "slurm_script", "sleep"}
    end_left_over()
    until_s = time.monotonic() + 10
    while marked(tmp_path / "slurm"):
        assert time.monotonic() < until_s
        time.sleep(0.1)


def marked(folder: Path) -> list[psutil.Process]:
    """Processes of the cluster in this folder."""
    return [process for process in psutil.process_iter() if folder_of(process) == str(folder)]
