"""The stub answers in the form that GitHub publishes."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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


def test_the_rows_of_a_real_repository_fit(stub: GitHubStub, tmp_path: Path) -> None:
    log = tmp_path / "trap-witness/push-log.jsonl"
    log.parent.mkdir()
    row = {"id": 1, "timestamp": "2026-01-01T00:00:00.000001Z", "before": "0" * 40, "after": A}
    tag = {**row, "id": 2, "ref": "refs/tags/x", "activity_type": "tag_creation"}
    log.write_text(json.dumps({**row, "ref": "refs/heads/main", "activity_type": "branch_creation"}) + "\n")
    with log.open("a") as file:
        file.write(json.dumps(tag) + "\n")
    stub.follow(tmp_path)
    assert [each["ref"] for each in stub.rows] == ["refs/heads/main"]
    validate(f"{REPO}/activity", "GET", *ask(stub, "/repos/octo/study/activity"))
