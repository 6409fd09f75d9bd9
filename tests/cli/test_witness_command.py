"""`trapkit witness`: made, served as a program of its own, read and checked."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from registry.witness.checkpoint import read_checkpoint, sign_checkpoint
from registry.witness.log import parse_log
from registry.witness.policy_file import load_policy
from registry.witness.served import fetch_log
from registry.witness.server.reconciliation import Busy, push_lock, read_log
from registry.witness.server.repositories import WitnessFolder
from tests.support import command, git

NAME = "lab/study"
TOKEN = "a-token-of-the-lab-0123456789"


@contextlib.contextmanager
def serving(folder: Path, *options: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The program itself on a free port; yields its process and URL."""
    program = [Path(sys.executable).with_name("trapkit"), "witness", "serve", str(folder), "--port", "0", *options]
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | environment
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            assert found, line
            yield process, found[0]
        finally:
            process.kill()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A server's folder with one repository, and what `create` printed."""
    folder = tmp_path_factory.mktemp("witness") / "here"
    result = command(folder.parent, "witness", "create", "here", NAME)
    assert result.code == 0, result.text
    return folder, result.out


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("work")
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "Ada")
    git(root, "config", "user.email", "ada@example.org")
    return root


def push(root: Path, url: str, ref: str = "main") -> None:
    git(root, "commit", "-q", "--allow-empty", "-m", ref)
    git(root, "push", "-q", f"{url}/{NAME}.git", f"HEAD:refs/heads/{ref}")


def test_create_prints_what_study_and_auditor_need(made: tuple[Path, str], tmp_path: Path) -> None:
    folder, printed = made
    assert (folder / "key").stat().st_mode & 0o777 == 0o600
    policy = printed.partition("auditor's policy:\n")[2].replace("URL", "https://witness.example.org")
    (tmp_path / "policy.yaml").write_text(policy)
    (server,) = load_policy(tmp_path / "policy.yaml").witness_servers
    section = printed.partition("study.yaml:\n")[2].partition("for an auditor")[0]
    study = yaml.safe_load(section)
    assert study["server"]["key"] == server.key and study["server"]["repository"] == NAME


def test_served_pushed_to_read_and_checked(made: tuple[Path, str], work: Path, tmp_path: Path) -> None:
    folder, _ = made
    with serving(folder) as (process, url):
        push(work, url)
        log, checkpoint = fetch_log(url, NAME)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert "stopped" in out and f"{NAME}: pushed, now 1 rows" in err
    (tmp_path / "checkpoint.json").write_bytes(checkpoint)
    (tmp_path / "copy.jsonl").write_bytes(log)
    for earlier in ("checkpoint.json", "copy.jsonl"):
        result = command(tmp_path, "witness", "check", str(folder), NAME, "--against", earlier)
        assert (result.code, result.out) == (0, f"{NAME}: ok\n"), result.text
    printed = command(tmp_path, "witness", "log", str(folder), NAME)
    assert re.fullmatch(r" {5}1  \S+Z  branch_creation  000000000000\.\.[0-9a-f]{12}  refs/heads/main\n", printed.out)
    assert command(tmp_path, "witness", "log", str(folder), NAME, "--json").out.encode() == log
    assert read_checkpoint(checkpoint, "checkpoint").rows == 1


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("cut", "the log holds 0 rows, the checkpoint 1"),
        ("edited", "chain is broken"),
        ("refs", "refs/heads/main is gone"),
        ("objects", "objects missing or broken"),
        ("other key", "signed by another key"),
    ],
)
def test_check_finds_damage(tmp_path: Path, work: Path, damage: str, words: str) -> None:
    folder = tmp_path / "witness"
    assert command(tmp_path, "witness", "create", "witness", NAME).code == 0
    repository = WitnessFolder(folder).find("lab", "study")
    assert repository is not None
    git(work, "commit", "-q", "--allow-empty", "-m", damage)
    git(work, "push", "-q", str(repository.path), "HEAD:main", "HEAD:side")
    earlier = tmp_path / "earlier"
    earlier.write_bytes(sign_checkpoint(WitnessFolder(folder).key(), NAME, read_log(repository)))
    log = repository.log_path
    if damage == "cut":
        log.write_bytes(b"")
        words = words.replace("1", "2")
    elif damage == "edited":
        log.write_bytes(log.read_bytes().replace(b"_creation", b"_invention", 1))
    elif damage == "refs":
        git(repository.path, "update-ref", "-d", "refs/heads/main")
    elif damage == "objects":
        oid = git(work, "rev-parse", "HEAD^{tree}")
        (repository.path / "objects" / oid[:2] / oid[2:]).unlink()
    else:
        (folder / "key").unlink()
        assert command(tmp_path, "witness", "create", "witness", "lab/another").code == 0
    result = command(tmp_path, "witness", "check", "witness", NAME, "--against", "earlier")
    assert result.code == 1
    assert words in result.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["create", "here", "study"], "a repository is named OWNER/NAME"),
        (["create", "here", "lab/.."], "a repository is named OWNER/NAME"),
        (["create", "here", "lab/study.git"], "a repository is named OWNER/NAME"),
        (["create", "here", "witness/study"], "a repository is named OWNER/NAME"),
        (["create", "here", NAME], "the repository is there already"),
        (["serve", "nowhere"], "no witness server's folder"),
        (["serve", "here", "--host", "0.0.0.0"], "could push"),
        (["serve", "here", "--url", "https://witness.example.org"], "could push"),
        (["serve", "here", "--private"], "a private server needs a token"),
        (["log", "here", "lab/none"], "no such repository"),
        (["check", "nowhere"], "no witness server's folder"),
        (["check", "here", "--against", "x"], "a copy is of one repository"),
        (["check", "here", NAME, "--against", "x"], "the copy cannot be read"),
    ],
)
def test_bad_input_is_told(made: tuple[Path, str], arguments: list[str], words: str) -> None:
    result = command(made[0].parent, "witness", *arguments)
    assert (result.code, result.out) == (2, "")
    assert words in result.err and "to do:" in result.err


def test_a_port_in_use_is_told(made: tuple[Path, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = command(made[0].parent, "witness", "serve", "here", "--port", str(taken.getsockname()[1]))
    assert result.code == 2
    assert "cannot listen: Address already in use" in result.err


def test_a_push_outlives_a_server_that_is_killed(made: tuple[Path, str], work: Path, tmp_path: Path) -> None:
    """git goes on, keeps the lock until its row is written, and the next server finds all well."""
    folder, _ = made
    repository = WitnessFolder(folder).find("lab", "study")
    assert repository is not None
    hook = repository.path / "hooks" / "post-receive"
    with serving(folder, TRAP_WITNESS_TOKEN=TOKEN) as (process, url):
        whole = hook.read_text()
        waits = f"touch {tmp_path}/started\nwhile ! test -e {tmp_path}/go; do sleep 0.01; done\n"
        hook.write_text(whole.replace("exec", f"{waits}exec"))
        git(work, "commit", "-q", "--allow-empty", "-m", "outlives")
        target = url.replace("//", f"//ada:{TOKEN}@") + f"/{NAME}.git"
        pushing = subprocess.Popen(["git", "push", "-q", target, "HEAD:outlives"], cwd=work, stderr=subprocess.DEVNULL)
        while not (tmp_path / "started").exists():
            time.sleep(0.005)
        process.kill()
        assert pushing.wait(20) != 0
    with pytest.raises(Busy), push_lock(repository, 0.0):
        pass
    (tmp_path / "go").touch()
    with push_lock(repository, 20.0):
        row = parse_log(repository.log_path.read_bytes(), NAME)[-1]
    assert (row.ref, row.after) == ("refs/heads/outlives", git(work, "rev-parse", "HEAD"))
    assert command(folder.parent, "witness", "check", "here").code == 0


def test_a_new_start_logs_what_a_crash_left_out(made: tuple[Path, str], work: Path) -> None:
    folder, _ = made
    repository = WitnessFolder(folder).find("lab", "study")
    assert repository is not None
    git(work, "commit", "-q", "--allow-empty", "-m", "late")
    (repository.path / "hooks" / "post-receive").unlink()
    git(work, "push", "-q", str(repository.path), "HEAD:late")
    assert "is not logged yet" in command(folder.parent, "witness", "check", "here").out
    with serving(folder) as (process, url):
        assert parse_log(fetch_log(url, NAME)[0], NAME)[-1].ref == "refs/heads/late"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "1 rows logged late" in err
    assert (repository.path / "hooks" / "post-receive").exists()
