"""A study on a real witness server, from `init` to what an auditor makes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from registry.witness.archive import SERVER_CHECKPOINT, SERVER_LOG
from registry.witness.checkpoint import chain_name, sign_checkpoint
from tests.support import SMALL_CALIBRATION, Result, command, git, push_log
from tests.witness_server import WitnessServer

NAME = "lab/study"


@dataclass
class Served:
    """The author's study and the server that it is pushed to."""

    server: WitnessServer
    root: Path

    def policy(self, folder: Path, **server: str) -> str:
        """A policy file that trusts the server's key; `server` changes the entry."""
        path = folder / "policy.yaml"
        entries = {"schema": "trap-policy-1", "witness_servers": [{"key": self.server.key, **server}]}
        path.write_text(yaml.safe_dump(entries))
        return str(path)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    with WitnessServer(folder / "witness", NAME) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_DISABLE_JIT", "1")
        patch.setattr("cli.workflows.rehearse.rehearse.__defaults__", (4, 1000))
        arguments = ("init", "study", "--server", server.url, "--repository", NAME, "--commit-runs")
        made = command(folder, *arguments)
        assert made.code == 0, made.text
        assert server.key in made.out
        root = folder / "study"
        (root / "rules" / "all-miss-small.yaml").write_text(SMALL_CALIBRATION)
        git(root, "add", "rules")
        git(root, "commit", "-q", "-m", "a small rule")
        git(root, "push", "-q", "-u", "origin", "main")
        for each in (("register", "rules/all-miss-small.yaml"), ("run", "all-miss-small")):
            done = command(root, *each)
            assert done.code == 0, done.text
            assert "warning" not in done.text
        git(root, "push", "-q", "origin", "main")
        yield Served(server, root)


@pytest.fixture
def clone(served: Served, tmp_path: Path) -> Path:
    """An auditor's clone."""
    git(tmp_path, "clone", "-q", served.server.remote(NAME), "clone")
    git(tmp_path / "clone", "fetch", "-q", "origin", "attempts")
    return tmp_path / "clone"


def proofs(done: Result) -> dict[str, dict[str, str]]:
    """By tag, the outcome of each of its checks."""
    found = json.loads(done.out)["proofs"]
    return {proof["tag"]: {each["name"]: each["outcome"] for each in proof["check"]["children"]} for proof in found}


def test_a_policy_that_names_the_key_proves_it_offline(served: Served, clone: Path, tmp_path: Path) -> None:
    done = command(clone, "verify", "--policy", served.policy(tmp_path))
    assert done.code == 0, done.text
    assert f"status pre-registered: witness server {served.server.url.removeprefix('http://')}" in done.out
    assert "signed by a key of your policy" in done.out
    settings = yaml.safe_load((clone / "study.yaml").read_text())
    assert settings["witnesses"] == ["server"] and settings["server"]["key"] == served.server.key
    frozen = json.loads((clone / "registrations/all-miss-small.v1.json").read_text())
    assert frozen["beacon"] == {"chain": chain_name(served.server.key), "round": 0}
    assert frozen["claim"] == "pre-registered"
    assert done.out.rstrip().endswith("1 proofs, 0 failures")


def test_without_a_policy_the_key_is_only_the_study_s(clone: Path) -> None:
    done = command(clone, "verify")
    assert done.code == 3, done.text
    assert "your policy does not name the key ssh-ed25519" in done.out
    assert "status registered" in done.out and "status pre-registered" not in done.out
    assert done.out.rstrip().endswith("1 proofs, 0 failures")


def test_online_the_server_is_asked_and_compared(served: Served, clone: Path, tmp_path: Path) -> None:
    done = command(clone, "verify", "--online", "--policy", served.policy(tmp_path, url=served.server.url))
    assert done.code == 0, done.text
    assert "asked online, signed by a key of your policy" in done.out


def test_a_server_that_is_gone_leaves_the_archive(served: Served, clone: Path, tmp_path: Path) -> None:
    policy = served.policy(tmp_path, url="http://127.0.0.1:9")
    text = (clone / "study.yaml").read_text().replace(served.server.url, "http://127.0.0.1:9")
    tampered(clone, {"study.yaml": text.encode()})
    done = command(clone, "verify", "--online", "--policy", policy)
    assert done.code == 0, done.text
    assert "archived by the author (the server could not be reached), signed by a key of your policy" in done.out


def tampered(clone: Path, files: dict[str, bytes]) -> None:
    """Commit other contents of files in an auditor's clone."""
    for path, data in files.items():
        (clone / path).write_bytes(data)
    git(clone, "add", "-A")
    git(clone, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-q", "-m", "tamper")


def test_an_edited_archive_is_refuted(served: Served, clone: Path, tmp_path: Path) -> None:
    lines = (clone / SERVER_LOG).read_bytes().splitlines(keepends=True)
    tampered(clone, {SERVER_LOG: b"".join([lines[0].replace(b"branch_creation", b"push"), *lines[1:]])})
    done = command(clone, "verify", "--json", "--policy", served.policy(tmp_path))
    assert done.code == 1, done.text
    assert {each["push_witnessed"] for each in proofs(done).values()} == {"REFUTED"}


def test_a_server_that_broke_its_promises_is_not_believed(served: Served, clone: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (clone / SERVER_LOG).read_bytes().splitlines()]
    moved = rows[-1] | {"before": rows[-1]["after"], "activity_type": "force_push"}
    log = push_log([*rows, moved])
    checkpoint = sign_checkpoint(served.server.folder.key(), NAME, log)
    tampered(clone, {SERVER_LOG: log, SERVER_CHECKPOINT: checkpoint})
    done = command(clone, "verify", "--json", "--policy", served.policy(tmp_path))
    assert done.code == 1, done.text
    assert {each["push_witnessed"] for each in proofs(done).values()} == {"REFUTED"}
    assert f"row {len(rows) + 1}: {moved['ref']} was rewritten" in done.out


def rewritten(log: bytes) -> bytes:
    """The log with its first row a day earlier, numbered and chained again."""
    rows = [json.loads(line) for line in log.splitlines()]
    rows[0]["timestamp"] = "2020-01-01" + rows[0]["timestamp"][10:]
    return push_log(rows)


def test_a_log_rewritten_by_its_owner_is_refuted_online(served: Served, clone: Path, tmp_path: Path) -> None:
    path = served.server.repository(NAME).log_path
    before = path.read_bytes()
    path.write_bytes(rewritten(before))
    try:
        done = command(
            clone, "verify", "--json", "--online", "--policy", served.policy(tmp_path, url=served.server.url)
        )
    finally:
        path.write_bytes(before)
    assert done.code == 1, done.text
    assert {each["push_witnessed"] for each in proofs(done).values()} == {"REFUTED"}
    assert "is not the beginning of the server's own" in done.out
