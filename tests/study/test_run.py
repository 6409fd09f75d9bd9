"""Running: what is missing, what is refused, and what a kill leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import SMALL_CALIBRATION, command, commit_file, copy_study, empty_study, git

RULE = "rules/all-miss-small.yaml"
LONG = SMALL_CALIBRATION.replace("horizon_s: 120", "horizon_s: 60000").replace("[0, 1]", "[0, 1, 2, 3]")


@pytest.fixture(scope="session")
def registered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with `small` registered, its calibration run, itself not run."""
    root = empty_study(tmp_path_factory.mktemp("registered"))
    assert command(root, "register", "rules/small.yaml").code == 0
    return root


@pytest.fixture
def unrun(registered: Path, tmp_path: Path) -> Path:
    return copy_study(registered, tmp_path)


def test_one_seed_alone_leaves_the_others_missing_and_no_verdict(unrun: Path) -> None:
    ran = command(unrun, "run", "small", "--seed", "0")
    assert "3 runs made now (simulated), 3 of 3 complete" in ran.out
    result = command(unrun, "verify")
    assert result.code == 3
    for arm in ("BURST", "NOBURST", "CAPPED"):
        assert f"MISSING  {arm}/1.35/1: never started" in result.out
    assert "NOT DECIDABLE  rate 1.35: 3 of 6 registered runs are missing" in result.out
    assert result.out.splitlines()[-1] == "2 proofs, 0 failures"
    status = command(unrun, "status", "small").out
    assert "3 finished, 3 missing" in status
    rest = command(unrun, "run", "small")
    assert "3 runs made now (simulated), 6 of 6 complete" in rest.out
    assert command(unrun, "verify").code == 0
    assert "0 runs made now" in command(unrun, "run", "small").out


def test_arm_and_rate_narrow_the_selection(unrun: Path) -> None:
    ran = command(unrun, "run", "small", "--arm", "CAPPED", "--rate", "1.35", "--seed", "1")
    assert "1 runs made now (simulated), 1 of 1 complete" in ran.out


@pytest.mark.parametrize(
    ("option", "value", "known"),
    [("--arm", "BRUST", "BURST, CAPPED, NOBURST"), ("--seed", "7", "0, 1"), ("--rate", "1.5", "1.35")],
)
def test_an_unknown_selection_names_what_is_registered(registered: Path, option: str, value: str, known: str) -> None:
    result = command(registered, "run", "small", option, value)
    assert result.code == 2
    assert f"unknown {option.removeprefix('--')}" in result.err
    assert known in result.err


def test_what_is_not_registered_is_refused(registered: Path) -> None:
    result = command(registered, "run", "e2")
    assert result.code == 2
    assert "not registered" in result.err and "all-miss-small, small" in result.err


def test_a_registration_whose_tag_left_the_remote_is_refused(unrun: Path) -> None:
    git(unrun, "push", "-q", "origin", ":refs/tags/reg/small/v1")
    result = command(unrun, "run", "small")
    assert result.code == 2
    assert "the registration tag is not on the remote" in result.err


def test_a_run_draws_if_the_round_is_out(tmp_path: Path) -> None:
    root = empty_study(tmp_path)
    command(root, "register", RULE, "--no-wait")
    assert command(root, "run", "all-miss-small").code == 0
    assert command(root, "verify").code == 0


def test_exploratory_runs_are_marked_for_ever_and_never_count(unrun: Path) -> None:
    result = command(unrun, "run", "small", "--exploratory", "--seed", "0", "--arm", "BURST")
    assert result.code == 0, result.text
    folder = unrun / "runs/exploratory/small/BURST/1.35/0/attempt-1"
    assert json.loads((folder / "run.json").read_text())["exploratory"] is True
    verified = command(unrun, "verify")
    assert verified.code == 3
    assert "1 exploratory runs beside them" in verified.out
    target = unrun / "runs/small.v1/BURST/1.35/0/attempt-1"
    target.parent.mkdir(parents=True)
    folder.rename(target)
    assert "MISSING  BURST/1.35/0: unrecorded" in command(unrun, "verify").out


def test_start_records_are_pushed_before_and_results_after(finished: Path) -> None:
    files = git(finished, "ls-tree", "--name-only", "attempts", "attempts/").splitlines()
    kinds = [name.rpartition("-")[2] for name in files]
    assert kinds == ["start.jsonl", "result.jsonl"] * 2
    start = json.loads(git(finished, "show", f"attempts:{files[2]}").splitlines()[0])
    assert (start["event"], start["attempt"], start["registration"]) == ("start", 1, "small")


def test_a_rejected_start_record_runs_nothing(unrun: Path) -> None:
    hook = unrun.with_name("study-remote.git") / "hooks" / "update"
    hook.write_text('#!/bin/sh\ntest "$1" != refs/heads/attempts\n')
    hook.chmod(0o755)
    result = command(unrun, "run", "small")
    assert result.code == 2
    assert "rejected" in result.err
    assert not (unrun / "runs/small.v1").exists()


def children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout.split()
    return [int(p) for p in found]


def alive(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and ") Z" not in state.read_text()


def start_long_run(root: Path) -> tuple[subprocess.Popen[bytes], list[int]]:
    """Start a long run; returns once an attempt is under way."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cli.app", "run", "all-miss-small"], cwd=root,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    until = time.monotonic() + 60
    while not list(root.glob("runs/all-miss-small.v1/*/*/*/attempt-1")):
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.02)
    return process, children(process.pid)


@pytest.fixture(scope="session")
def long_registered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = empty_study(tmp_path_factory.mktemp("long"))
    text = LONG.replace("horizon_s: 60000", "horizon_s: 20000")
    commit_file(root, RULE, text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cli.workflows.rehearse.SEEDS", 1)
        patch.setattr("cli.workflows.rehearse.rehearse.__defaults__", (4, 1000))
        assert command(root, "register", RULE).code == 0
    return root


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_leaves_abandoned_attempts_and_no_process(
    long_registered: Path, tmp_path: Path, how: signal.Signals
) -> None:
    root = copy_study(long_registered, tmp_path)
    process, workers = start_long_run(root)
    os.kill(process.pid, how)
    process.wait(30)
    until = time.monotonic() + 20
    while any(alive(pid) for pid in workers):
        assert time.monotonic() < until, "a worker outlived its parent"
        time.sleep(0.02)
    begun = list(root.glob("runs/all-miss-small.v1/*/*/*/attempt-1"))
    half = [folder for folder in begun if not (folder / "run.json").exists()]
    assert half
    before = command(root, "verify")
    assert before.code == 3
    assert ": abandoned" in before.out
    again = command(root, "run", "all-miss-small")
    assert again.code == 0, again.text
    assert "4 of 4 complete" in again.out
    after = command(root, "verify")
    assert after.code == 0, after.out
    attempts = [p.name for p in root.glob("runs/all-miss-small.v1/*/*/*/attempt-2") if (p / "run.json").exists()]
    assert len(attempts) >= len(half)
    ledger = command(root, "ledger")
    assert ledger.code == 0
    assert "abandoned" in (root / "evidence/LEDGER.md").read_text()


def test_two_runs_in_one_study_do_not_meet(long_registered: Path, tmp_path: Path) -> None:
    root = copy_study(long_registered, tmp_path)
    process, _ = start_long_run(root)
    try:
        result = command(root, "run", "all-miss-small")
        assert result.code == 2
        assert "another trap run is under way" in result.err
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def test_cancel_interrupts_the_run_that_goes_on_and_status_says_where_runs_stand(
    long_registered: Path, tmp_path: Path
) -> None:
    root = copy_study(long_registered, tmp_path)
    process, _ = start_long_run(root)
    told = {run["state"] for run in json.loads(command(root, "status", "all-miss-small", "--json").out)[0]["runs"]}
    assert "running" in told and told <= {"running", "waiting", "finished"}
    done = command(root, "cancel", "all-miss-small")
    assert done.code == 0 and "interrupted" in done.out, done.text
    assert process.wait(60) == 130
    shown = command(root, "status", "all-miss-small")
    assert "failed" in shown.out and "interrupted" in shown.out, "it reported what it had"
    assert "nothing goes on" in command(root, "cancel", "all-miss-small").out


def test_a_complete_run_without_a_result_record_is_pushed_late(unrun: Path, tmp_path: Path) -> None:
    hook = unrun.with_name("study-remote.git") / "hooks" / "update"
    hook.write_text('#!/bin/sh\ntest "$1" != refs/heads/attempts || test ! -e "$GIT_DIR/refuse"\n')
    hook.chmod(0o755)
    from cli.workflows import run_batch as workflow

    real = workflow.append

    def cut_off(repository: object, remote: str, kind: str, records: object) -> None:
        if kind == "start":
            real(repository, remote, kind, records)  # type: ignore[arg-type]
        else:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workflow, "append", cut_off)
        assert command(unrun, "run", "small").code == 130
    before = command(unrun, "verify")
    assert before.code == 3
    assert "unrecorded" in before.out
    assert "0 runs made now (simulated), 6 of 6 complete" in command(unrun, "run", "small").out
    after = command(unrun, "verify", "--json")
    assert after.code == 0
    attempts = json.loads(after.out)["proofs"][-1]["attempts"]
    assert {a["late"] for a in attempts if a["event"] == "complete"} == {True}
