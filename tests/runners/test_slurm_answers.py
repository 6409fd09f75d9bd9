"""What Slurm's programs say, and how a batch is asked for: against stand-ins that
print what the real ones print. The real Slurm is in tests/slurm.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from registry.errors import StudyError
from registry.executors import SlurmSetup
from runners.slurm.calls import Call, invoke
from runners.slurm.job import Job
from runners.slurm.scheduler import ask, cancel, job_fields, lives, moment_of, parse
from runners.slurm.submission import largest_array, submit_calls
from tests.programs import SLURM_PROGRAMS, first_on_path, program

LINES = """7_0|trap-a|RUNNING|None|node1|1767225600|1767225660|N/A
7_1|trap-a|PENDING|Priority||1767225600|N/A|N/A
7_[2-9]|trap-a|PENDING|Resources||1767225600|N/A|N/A
8|trap-a|CANCELLED by 1000|None|node2|1767225600|1767225660|1767225700
not a line
9|trap-a|R|N
"""


def test_lines_become_states() -> None:
    found = parse(LINES)
    assert sorted(found) == ["7_0", "7_1", "8"]
    assert (found["7_0"].node, found["7_0"].submitted_at) == ("node1", "2026-01-01T00:00:00.000000Z")
    assert found["7_0"].live and not found["7_0"].waiting and found["7_1"].waiting
    assert (found["8"].state, found["8"].live, found["7_1"].started_at) == ("CANCELLED", False, None)
    assert parse("7|n|RUN\x1b[2J|None||x|y|z\n")["7"].state.isprintable()


@pytest.mark.parametrize("text", ["", "N/A", "Unknown", "2026-01-01T00:00:00", "1", "-1767225600", "9" * 30])
def test_a_time_of_another_form_is_none(text: str) -> None:
    assert moment_of(text) is None


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with stand-ins for Slurm's programs, each of which does nothing yet."""
    folder = tmp_path / "bin"
    folder.mkdir()
    first_on_path(monkeypatch, folder, dict.fromkeys(SLURM_PROGRAMS, "exit 0"))
    return folder


def test_what_squeue_forgot_the_accounts_may_know(programs: Path) -> None:
    program(programs, "squeue", "echo '7_0|t|RUNNING|None|n|1767225600|1767225600|N/A'")
    known = "7_1|t|TIMEOUT|None|n|1767225600|1767225600|1767225700"
    program(programs, "sacct", f"echo \"$*\" > {programs}/asked; echo '{known}'")
    found = ask(["t"], ["7_0", "7_1"])
    assert found.problem is None
    assert {job: state.state for job, state in found.jobs.items()} == {"7_0": "RUNNING", "7_1": "TIMEOUT"}
    assert "-j 7 " in (programs / "asked").read_text()


def test_without_accounts_a_forgotten_job_is_unknown_and_no_error(programs: Path) -> None:
    program(programs, "sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    found = ask(["t"], ["7_0"])
    assert (found.jobs, found.problem) == ({}, None)


def test_a_scheduler_that_does_not_answer_is_a_problem_in_words(programs: Path) -> None:
    program(programs, "squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    assert "Unable to contact" in (ask(["t"], ["7"]).problem or "")
    program(programs, "scancel", "echo no >&2; exit 1")
    assert cancel(["7"]) == "no" and cancel([]) is None


def test_many_calls_are_one_sbatch_and_carry_no_secret(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret-token")
    monkeypatch.setenv("KEPT", "yes")
    program(programs, "sbatch", f'cp "$1" {tmp_path}/script.$$; env > {tmp_path}/env; echo Submitted batch job 17')
    program(programs, "scontrol", "echo 'MaxArraySize            = 1001'")
    setup = SlurmSetup(3601, partition="gpu", account="lab", gpus=2, cpus=4, memory_gib=8, modules=("cuda/12",))
    setup = SlurmSetup(**{**vars(setup), "python": ("my python", "-x"), "environment": (("A", "b'c"),)})
    ids = submit_calls([Call("os.path:join", ("a", str(n))) for n in range(40)], tmp_path / "logs", setup, "trap-x")
    assert ids == [f"17_{n}" for n in range(40)]
    scripts = list(tmp_path.glob("script.*"))
    assert len(scripts) == 1
    text = scripts[0].read_text()
    for line in ("--array=0-39%40", "--time=61", "--partition=gpu", "--account=lab", "--gres=gpu:2", "--mem=8GB"):
        assert f"#SBATCH {line}" in text, line
    assert "--cpus-per-task=4" in text and "--signal=USR2@90" in text and "--requeue" in text
    assert "module load cuda/12" in text and "export A='b'\"'\"'c'" in text and "'my python' -x -u -m" in text
    assert "secret-token" not in (tmp_path / "env").read_text() and "KEPT=yes" in (tmp_path / "env").read_text()
    assert os.environ["GITHUB_TOKEN"] == "secret-token"


def test_arrays_are_split_where_the_cluster_says_so(programs: Path, tmp_path: Path) -> None:
    program(programs, "scontrol", "echo 'MaxArraySize            = 3'")
    program(programs, "sbatch", f"echo x >> {tmp_path}/calls; echo Submitted batch job $(wc -l < {tmp_path}/calls)")
    assert largest_array() == 3
    ids = submit_calls([Call("os.path:join", (str(n),)) for n in range(7)], tmp_path / "logs", SlurmSetup(60), "t")
    assert ids == ["1_0", "1_1", "1_2", "2_0", "2_1", "2_2", "3"]


def test_a_refusal_is_told_in_slurm_s_words(programs: Path, tmp_path: Path) -> None:
    program(programs, "sbatch", "echo 'sbatch: error: invalid partition specified: gpu' >&2; exit 1")
    with pytest.raises(StudyError) as caught:
        submit_calls([Call("os.path:join", ("a",))], tmp_path / "logs", SlurmSetup(60), "t")
    assert "invalid partition" in caught.value.what


def test_without_slurm_nothing_is_submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StudyError) as caught:
        submit_calls([Call("os.path:join", ("a",))], tmp_path / "logs", SlurmSetup(60), "t")
    assert "sbatch" in str(caught.value.value)


def test_a_call_is_made_by_name_and_what_fails_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    invoke(Call("os:mkdir", ("made",)))
    assert (tmp_path / "made").is_dir()
    for call in (Call("runners.slurm.attempt:make_attempt", ("no/batch.json", 0)), Call("os.system", ("true",))):
        with pytest.raises(SystemExit) as ended:
            invoke(call)
        assert ended.value.code == 2 and "error: " in capsys.readouterr().err


def test_a_call_that_slurm_asks_to_end_ends_with_words(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("SIGUSR2", "SIGTERM"):
        with pytest.raises(SystemExit):
            invoke(Call("signal:raise_signal", (int(getattr(signal, name)),)))
        assert name in capsys.readouterr().err


def test_a_task_whose_id_is_also_its_array_s_is_told_apart(programs: Path) -> None:
    program(programs, "scontrol", "echo JobId=17 JobState=RUNNING StartTime=1; echo JobId=18 JobState=PENDING")
    program(programs, "sacct", "echo '17|PREEMPTED'; echo '18|FAILED'; echo '17|CANCELLED by 0'")
    assert job_fields("17") == {"JobId": "17", "JobState": "RUNNING", "StartTime": "1"}
    assert lives("17") == ["PREEMPTED", "CANCELLED"] and lives("19") == [] and job_fields("19") == {}


@pytest.mark.parametrize(
    ("fields", "accounts", "words", "cause"),
    [
        ("JobState=RUNNING", "17|RUNNING", "came to its time limit of 60 s", None),
        ("JobState=COMPLETING", "17|CANCELLED by 0", "cancelled, requeued or killed", None),
        ("JobState=COMPLETING", "17|RUNNING", "cancelled, requeued or killed", None),
        ("JobState=COMPLETING", "17|PREEMPTED", "was preempted", "preempted"),
        ("JobState=RUNNING PreemptTime=1767225600", "", "was preempted", "preempted"),
    ],
)
def test_why_a_job_is_asked_to_end(programs: Path, fields: str, accounts: str, words: str, cause: str | None) -> None:
    program(programs, "scontrol", f"echo JobId=17 {fields}")
    program(programs, "sacct", f"echo '{accounts}'")
    why, found = Job("17", {"job": "17", "started_at": "2026-01-01T00:00:00.000000Z"}, 60.0, 5).why_ended()
    assert words in why and found == cause
