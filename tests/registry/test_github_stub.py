"""The stub answers in the form that GitHub publishes."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from registry.witness.github import GitHubClient
from registry.witness.local import create_remote
from tests.github_schema import validate
from tests.registry.github_stub import GitHubStub

A, B, C = "a" * 40, "b" * 40, "c" * 40
REPO = "/repos/{owner}/{repo}"


@pytest.fixture
def stub() -> Iterator[GitHubStub]:
    with GitHubStub() as running:
        running.push(A, "2026-01-01T00:00:00Z", kind="branch_creation")
        running.push(B, "2026-01-01T00:00:01Z", before=A)
        running.rows[0]["actor"] = None
        running.ancestor = lambda commit, head: None if C in (commit, head) else commit <= head
        running.bundles["sha1:" + A] = [{"mediaType": "x", "verificationMaterial": {}, "dsseEnvelope": {}}]
        yield running


def ask(stub: GitHubStub, path: str, content: Any = None) -> tuple[int, Any]:
    data = None if content is None else json.dumps(content).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(stub.api + path, data)) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.mark.parametrize(
    ("template", "path", "expected"),
    [
        (REPO, "", 200),
        (f"{REPO}/activity", "/activity", 200),
        (f"{REPO}/activity", "/activity?per_page=1", 200),
        (f"{REPO}/compare/{{basehead}}", f"/compare/{A}...{B}", 200),
        (f"{REPO}/compare/{{basehead}}", f"/compare/{B}...{A}", 200),
        (f"{REPO}/compare/{{basehead}}", f"/compare/{C}...{A}", 404),
        (f"{REPO}/commits/{{ref}}/statuses", f"/commits/{A}/statuses", 200),
        (f"{REPO}/attestations/{{subject_digest}}", f"/attestations/sha1:{A}", 200),
    ],
)
def test_answers_fit_the_description(stub: GitHubStub, template: str, path: str, expected: int) -> None:
    status, body = ask(stub, f"/repos/octo/study{path}")
    assert status == expected
    validate(template, "GET", status, body)


def test_statuses_fit_when_posted_and_when_listed(stub: GitHubStub) -> None:
    posted = ask(stub, f"/repos/octo/study/statuses/{A}", {"context": "trap", "description": "x", "state": "success"})
    validate(f"{REPO}/statuses/{{sha}}", "POST", *posted)
    listed = ask(stub, f"/repos/octo/study/commits/{A}/statuses")
    assert listed[1] == [posted[1]]
    validate(f"{REPO}/commits/{{ref}}/statuses", "GET", *listed)


def test_another_repository_is_missing(stub: GitHubStub) -> None:
    status, body = ask(stub, "/repos/octo/other")
    assert status == 404
    validate(REPO, "GET", status, body)


def git(folder: Path, *arguments: str) -> str:
    named = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *named, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_a_real_repository_can_stand_behind_it(stub: GitHubStub, tmp_path: Path) -> None:
    bare, work = tmp_path / "bare.git", tmp_path / "work"
    create_remote(bare)
    work.mkdir()
    git(work, "init", "-q")
    commits = []
    for number in range(2):
        git(work, "commit", "-q", "--allow-empty", "-m", str(number))
        commits.append(git(work, "rev-parse", "HEAD"))
        git(work, "push", "-q", str(bare), "main", f"HEAD:refs/tags/t{number}")
    stub.follow(bare)
    validate(f"{REPO}/activity", "GET", *ask(stub, "/repos/octo/study/activity"))
    client = GitHubClient(stub.api, "octo/study", None)
    rows = client.activity()
    assert [(row.ref, row.activity_type, row.after) for row in rows] == [
        ("refs/heads/main", "push", commits[1]),
        ("refs/heads/main", "branch_creation", commits[0]),
    ]
    assert client.contains(commits[0], commits[1]) is True
    assert client.contains(commits[1], commits[0]) is False
    assert client.contains(commits[0], C) is None
