"""GitHub answers badly, while a study is registered and while it is verified."""

from __future__ import annotations

import functools
import json
import socket
import subprocess
from collections import deque
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from registry.witness.archive import GITHUB_FOLDER
from registry.witness.github import GitHubClient
from tests.registry.github_stub import raw, reply
from tests.study.hosted import Hosts, github_study, hosts, trusted
from tests.support import Result, command, commit_file, copy_study, git

TOKEN = "ghp_planted0123456789"
NOW_S = 1_800_000_000.0
MOST_S = 60.0
ARCHIVED = f"{GITHUB_FOLDER}/reg-all-miss-small.v1.json"
Fault = Callable[[BaseHTTPRequestHandler], None]
FAULTS: dict[str, tuple[Fault, str]] = {
    "429 without Retry-After": (reply(429, {"message": "slow down"}), "its rate limit is used up"),
    "403 with a reset an hour away": (
        reply(403, {"message": "no"}, X_RateLimit_Remaining="0", X_RateLimit_Reset=str(int(NOW_S) + 3600)),
        "its rate limit is used up",
    ),
    "502": (reply(502, "Bad Gateway", Content_Type="text/html"), "it answers 502, a fault of its own"),
    "truncated": (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n[{"), "GitHub gives no answer"),
    "a web page": (reply(200, "<html>Sign in</html>", Content_Type="text/html"), "it is a web page"),
}


class Always(deque[Fault]):
    """The same fault, for whoever asks."""

    def popleft(self) -> Fault:
        return self[0]


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with hosts(tmp_path_factory.mktemp("hosts")) as found, trusted(found):
        yield found


@pytest.fixture(scope="module")
def empty(services: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with nothing registered. Copy it."""
    root = github_study(tmp_path_factory.mktemp("github"), services)
    settings = (root / "study.yaml").read_text().replace("[github, timestamps]", "[github]")
    commit_file(root, "study.yaml", settings)
    return root


@pytest.fixture
def slept_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What clients waited, in seconds; nobody does."""
    waits: list[float] = []
    client = functools.partial(GitHubClient, sleep=waits.append, clock=lambda: NOW_S)
    monkeypatch.setattr("cli.workflows.github.GitHubClient", client)
    monkeypatch.setattr("cli.workflows.github.wait_for_row.__defaults__", (waits.append,))
    monkeypatch.setattr("cli.workflows.github.BETWEEN_S", 15.0)
    monkeypatch.setattr("cli.workflows.github.TRIES", 5)
    monkeypatch.setenv("TRAP_GITHUB_TOKEN", TOKEN)
    return waits


@pytest.fixture
def study(empty: Path, services: Hosts, tmp_path: Path) -> Iterator[Path]:
    root = copy_study(empty, tmp_path)
    services.github.bare = root.with_name("study-remote.git")
    services.github.asked.clear()
    services.policy()
    yield root
    services.github.faults = deque()


def register(root: Path) -> Result:
    return command(root, "register", "rules/all-miss-small.yaml", "--no-wait")


def assert_whole(root: Path, *results: Result) -> None:
    """Nothing half-written, and the token nowhere."""
    assert git(root, "status", "--porcelain", "--ignored") == ""
    assert git(root, "rev-parse", "HEAD") == git(root, "ls-remote", "origin", "refs/heads/main").split()[0]
    for folder in (root, root.with_name("study-remote.git")):
        for path in folder.rglob("*"):
            assert not path.name.endswith(".partial")
            assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path
        everything = ["git", "cat-file", "--batch-all-objects", "--batch", "--buffer"]
        objects = subprocess.run(everything, cwd=folder, check=True, capture_output=True).stdout
        assert b"registration" in objects and TOKEN.encode() not in objects
    assert not any(TOKEN in done.text for done in results)


@pytest.mark.parametrize("name", FAULTS)
def test_a_registration_stands_without_github_s_answer(
    name: str, study: Path, services: Hosts, slept_s: list[float]
) -> None:
    fault, words = FAULTS[name]
    services.github.faults = Always([fault])
    done = register(study)
    assert done.code == 0, done.text
    assert "warning: no receipt from GitHub: " in done.text and words in done.text
    assert "the next draw or run asks again" in done.text
    assert sum(slept_s) <= MOST_S
    assert not (study / ARCHIVED).exists()
    assert_whole(study, done)


def test_draw_archives_what_register_could_not(study: Path, services: Hosts, slept_s: list[float]) -> None:
    services.github.faults = Always([FAULTS["502"][0]])
    first = register(study)
    services.github.faults = deque()
    second = command(study, "draw", "all-miss-small")
    assert (first.code, second.code) == (0, 0), first.text + second.text
    assert "warning" not in second.text
    assert json.loads((study / ARCHIVED).read_bytes())["repository_id"] == services.github.number
    assert {authorization for _, _, authorization in services.github.asked} == {f"token {TOKEN}"}
    assert_whole(study, first, second)


def test_a_log_that_never_shows_the_push_is_not_waited_for_long(
    study: Path, services: Hosts, slept_s: list[float]
) -> None:
    services.github.bare, services.github.rows = None, []
    done = register(study)
    assert done.code == 0, done.text
    assert "GitHub's activity log does not show the push within 60 s" in done.text
    assert sum(slept_s) <= MOST_S
    assert not (study / ARCHIVED).exists()
    assert_whole(study, done)


def test_an_unreachable_github_is_a_warning(study: Path, services: Hosts, slept_s: list[float], tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        api = f"http://127.0.0.1:{taken.getsockname()[1]}"
        settings = (study / "study.yaml").read_text().replace(services.github.api, api)
        commit_file(study, "study.yaml", settings)
        services.policy(github_apis=[api])
        done = register(study)
    assert done.code == 0, done.text
    assert "warning: no receipt from GitHub: " in done.text
    assert sum(slept_s) <= MOST_S
    assert_whole(study, done)


@pytest.fixture(scope="module")
def registered(empty: Path, services: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with its registration, seen by GitHub. Clone it."""
    root = copy_study(empty, tmp_path_factory.mktemp("registered"))
    services.github.bare = root.with_name("study-remote.git")
    services.policy()
    done = command(root, "register", "rules/all-miss-small.yaml")
    assert done.code == 0, done.text
    return root


@pytest.mark.parametrize("name", FAULTS)
def test_an_auditor_is_told_and_falls_back_to_the_archive(
    name: str, registered: Path, services: Hosts, slept_s: list[float], tmp_path: Path
) -> None:
    fault, words = FAULTS[name]
    services.policy()
    clone = clone_of_branch(registered, tmp_path)
    services.github.faults = Always([fault])
    try:
        done = command(clone, "verify", "--online")
    finally:
        services.github.faults = deque()
    assert done.code == 3, done.text
    assert "asked: " in done.out and words in done.out
    assert sum(slept_s) <= MOST_S
    assert git(clone, "status", "--porcelain") == ""
    assert TOKEN not in done.text


def test_a_log_whose_rows_are_gone_neither_proves_nor_refutes(
    registered: Path, services: Hosts, slept_s: list[float], tmp_path: Path
) -> None:
    services.policy()
    services.github.bare, services.github.rows = None, []
    done = command(clone_of_branch(registered, tmp_path), "verify", "--online")
    assert done.code == 3, done.text
    assert "GitHub's log does not show all of these pushes now" in done.out
    assert done.out.rstrip().endswith("1 proofs, 0 failures")


def test_the_token_stays_from_an_api_that_only_the_study_names(
    registered: Path, services: Hosts, slept_s: list[float], tmp_path: Path
) -> None:
    services.policy(github_apis=None)
    services.github.asked.clear()
    done = command(clone_of_branch(registered, tmp_path), "verify", "--online")
    assert done.code == 3, done.text
    assert services.github.asked == []
    assert f"your policy does not name {services.github.api}" in done.out


def clone_of_branch(root: Path, folder: Path) -> Path:
    """An auditor's clone of a study without attempts."""
    git(folder, "clone", "-q", str(root.with_name("study-remote.git")), "clone")
    return folder / "clone"
