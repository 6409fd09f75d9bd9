"""The witness server with real git over HTTP: what is accepted, refused, logged."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from registry.witness.checkpoint import read_checkpoint, verify_checkpoint
from registry.witness.log import parse_log
from registry.witness.rows import PushRow
from tests.support import git
from tests.witness_server import WitnessServer

NAME = "lab/study"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WitnessServer]:
    with WitnessServer(tmp_path_factory.mktemp("witness"), NAME) as running:
        yield running


@pytest.fixture(scope="module")
def clone(server: WitnessServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with one commit pushed."""
    folder = tmp_path_factory.mktemp("clone")
    git(folder, "clone", "-q", server.remote(NAME), "study")
    root = folder / "study"
    git(root, "config", "user.name", "Ada")
    git(root, "config", "user.email", "ada@example.org")
    commit(root, "one")
    git(root, "push", "-q", "origin", "HEAD:main")
    return root


def commit(root: Path, name: str, data: bytes = b"x") -> str:
    (root / name).write_bytes(data)
    git(root, "add", name)
    git(root, "commit", "-q", "-m", name)
    return git(root, "rev-parse", "HEAD")


def rows(server: WitnessServer, name: str = NAME) -> list[PushRow]:
    checkpoint = requests.get(f"{server.url}/witness/{name}/checkpoint", timeout=10).content
    log = requests.get(f"{server.url}/witness/{name}/log", timeout=10).content
    assert verify_checkpoint(read_checkpoint(checkpoint, name), name, log, [server.key]) == server.key
    return parse_log(log, name)


def refused(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "push", *arguments], cwd=root, capture_output=True, text=True)
    assert done.returncode != 0
    return done.stderr


def test_a_push_is_a_row_before_it_is_answered(server: WitnessServer, clone: Path) -> None:
    before = len(rows(server))
    oid = commit(clone, "two")
    git(clone, "push", "-q", "origin", "HEAD:main")
    found = rows(server)
    assert len(found) == before + 1
    assert (found[-1].ref, found[-1].after, found[-1].activity_type) == ("refs/heads/main", oid, "push")
