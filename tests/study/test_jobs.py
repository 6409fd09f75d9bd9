"""Runs as jobs, with stand-ins for Slurm's programs that take jobs and forget them:
what is announced, submitted, reported and made again. The real Slurm is in tests/slurm.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.programs import SLURM_PROGRAMS, first_on_path
from tests.support import Result, command, copy_study, empty_study

EXECUTORS = """executors:
  slurm:
    default: {time_s: 600, attempts: 2, settle_s: 0}
"""


@pytest.fixture(scope="module")
def registered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small study, registered and not run. Copy it."""
    root = empty_study(tmp_path_factory.mktemp("jobs"))
    with (root / "study.yaml").open("a") as file:
        file.write(EXECUTORS)
    done = command(root, "register", "rules/small.yaml")
    assert done.code == 0, done.text
    return root


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Slurm's programs: `says` holds what squeue says, `refuses` makes sbatch refuse."""
    folder = tmp_path / "slurm"
    folder.mkdir()
    scripts = {
        **dict.fromkeys(SLURM_PROGRAMS, "exit 1"),
        "sbatch": f"[ ! -e {folder}/refuses ] && echo batch job 17 || {{ echo invalid partition >&2; exit 1; }}",
        "squeue": f"cat {folder}/says 2>/dev/null; [ ! -e {folder}/silent ]",
        "scancel": f'echo "$*" >> {folder}/cancelled; rm -f {folder}/says',
    }
    first_on_path(monkeypatch, folder, scripts)
    return folder


@pytest.fixture
def study(registered: Path, tmp_path: Path) -> Path:
    return copy_study(registered, tmp_path)


def submit(study: Path, *more: str) -> Result:
    return command(study, "run", "small", "--executor", "slurm", *more)


def batches(study: Path) -> list[Path]:
    return sorted(study.glob("runs/small.v1/.jobs/*/batch.json"), key=lambda path: path.stat().st_mtime_ns)


def says(slurm: Path, study: Path, state: str, *tasks: int) -> None:
    """squeue tells this state of these tasks of the latest batch."""
    token = batches(study)[-1].parent.name
    lines = [f"17_{task}|trap-small.v1-{token}|{state}|None|node1|1767225600|1767225600|N/A" for task in tasks]
    (slurm / "says").write_text("\n".join(lines) + "\n")


def states(study: Path) -> dict[str, list[str]]:
    """The states that status tells, each with its runs' paths."""
    told = json.loads(command(study, "status", "small", "--json").text)
    found: dict[str, list[str]] = {}
    for run in told[-1]["runs"]:
        found.setdefault(run["state"], []).append(f"{run['arm']}/{run['seed']}")
    return found


def test_jobs_are_announced_made_reported_and_proven(study: Path, slurm: Path) -> None:
    done = submit(study, "--no-wait")
    assert done.code == 0 and "submitted" in done.text, done.text
    (file,) = batches(study)
    runs = json.loads(file.read_bytes())["reserved"]
    says(slurm, study, "PENDING", *range(len(runs)))
    assert set(states(study)) == {"waiting"}
    assert "0 runs submitted now" in submit(study, "--no-wait").text, "open jobs are not missing"
    for index in range(len(runs)):
        made = command(study, "run-one", str(file), str(index))
        assert made.code == 0, made.text
    (slurm / "says").unlink()
    assert set(states(study)) == {"finished"}
    assert "run-one" not in submit(study).text
    proven = command(study, "verify", "small")
    assert proven.code == 0 and "0 failures" in proven.text, proven.text
    assert len(batches(study)) == 1


def test_a_job_that_starts_again_makes_the_next_announced_attempt(study: Path, slurm: Path) -> None:
    submit(study, "--seed", "0", "--no-wait")
    (file,) = batches(study)
    run = json.loads(file.read_bytes())["reserved"][0]
    folder = study / "runs/small.v1" / run["arm"] / str(run["rate"]) / str(run["seed"])
    (folder / "attempt-1").mkdir(parents=True)
    assert command(study, "run-one", str(file), "0").code == 0
    assert (folder / "attempt-2/run.json").is_file()
    assert "started it again" in (folder / "attempt-1/abandoned.json").read_text()
    assert command(study, "run-one", str(file), "0").code == 0, "complete: there is nothing to do"
    shutil.rmtree(folder / "attempt-2")
    (folder / "attempt-2").mkdir()
    left = command(study, "run-one", str(file), "0")
    assert left.code == 2 and "every attempt that was announced" in left.text


def test_what_is_lost_is_reported_and_made_again_alone(study: Path, slurm: Path) -> None:
    submit(study, "--no-wait")
    (file,) = batches(study)
    count = len(json.loads(file.read_bytes())["reserved"])
    for index in range(1, count):
        command(study, "run-one", str(file), str(index))
    found = states(study)
    assert len(found["lost"]) == 1 and len(found["finished"]) == count - 1
    again = submit(study, "--no-wait")
    assert "1 runs submitted now" in again.text, again.text
    second = batches(study)[-1]
    (reserved,) = json.loads(second.read_bytes())["reserved"]
    assert reserved["attempt"] == 2, "of the first start's numbers the first is used up"
    assert command(study, "run-one", str(second), "0").code == 0
    assert submit(study).code == 0
    assert command(study, "verify", "small").text.splitlines()[-1].endswith("0 failures")


def test_a_refused_submission_leaves_nothing_open(study: Path, slurm: Path) -> None:
    (slurm / "refuses").touch()
    refused = submit(study)
    assert refused.code == 2 and "invalid partition" in refused.text
    assert set(states(study)) == {"failed"}
    (slurm / "refuses").unlink()
    assert submit(study, "--no-wait").code == 0


def test_a_submission_that_was_cut_off_is_found_by_its_name(study: Path, slurm: Path) -> None:
    submit(study, "--seed", "0", "--no-wait")
    (file,) = batches(study)
    count = len(json.loads(file.read_bytes())["reserved"])
    (file.parent / "jobs.json").unlink()
    says(slurm, study, "RUNNING", *range(count))
    assert len(states(study)["running"]) == count
    assert (file.parent / "jobs.json").is_file()


def test_a_silent_scheduler_leaves_jobs_open(study: Path, slurm: Path) -> None:
    submit(study, "--seed", "0", "--no-wait")
    (slurm / "silent").touch()
    assert "submitted" in states(study)
    assert "0 runs submitted now" in submit(study, "--seed", "0", "--no-wait").text


def test_cancel_ends_jobs_and_reports_them(study: Path, slurm: Path) -> None:
    submit(study, "--no-wait")
    (file,) = batches(study)
    count = len(json.loads(file.read_bytes())["reserved"])
    says(slurm, study, "RUNNING", *range(count))
    done = command(study, "cancel", "small")
    assert done.code == 0 and f"cancelled {count} jobs" in done.text, done.text
    assert len((slurm / "cancelled").read_text().split()) == count
    assert set(states(study)) == {"failed"}
    assert "nothing goes on" in command(study, "cancel", "small").text


def test_executors_are_named(study: Path) -> None:
    done = command(study, "run", "small", "--executor", "pbs")
    assert done.code == 2 and "'pbs' is not one of 'local', 'slurm'" in done.text
