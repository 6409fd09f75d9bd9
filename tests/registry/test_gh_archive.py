"""GH Archive: a push that stands there is found, whatever stands around it."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from registry.errors import TrapError
from registry.witness import gh_archive
from registry.witness.gh_archive import fetch_hour, find_pushes, hour_name
from tests.loopback import Answer, LoopbackServer

REPOSITORY = 724712
HEAD, BEFORE = "7a8f3ac80e2ad2f6842cb86f576d4bfe2c03e300", "0" * 40


def event(push_id: int = 10115855396, **changes: Any) -> dict[str, Any]:
    """A PushEvent with the fields of GitHub's documentation."""
    payload = {
        "repository_id": REPOSITORY,
        "push_id": push_id,
        "ref": "refs/heads/main",
        "head": HEAD,
        "before": BEFORE,
    }
    return {
        "id": "22249084947",
        "type": "PushEvent",
        "actor": {"id": 583231, "login": "octocat", "url": "https://api.github.com/users/octocat"},
        "repo": {"id": REPOSITORY, "name": "octocat/study", "url": "https://api.github.com/repos/octocat/study"},
        "payload": payload | changes.pop("payload", {}),
        "public": True,
        "created_at": "2026-11-30T04:23:45Z",
    } | changes


def hour(folder: Path, *lines: object, name: str = "2026-11-30-4.json.gz") -> Path:
    path = folder / name
    data = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines) + b"\n"
    path.write_bytes(gzip.compress(data))
    return path


def test_the_hour_is_in_utc_and_not_padded() -> None:
    assert hour_name(datetime(2026, 11, 30, 4, 59, 59, tzinfo=UTC)) == "2026-11-30-4.json.gz"
    assert hour_name(datetime(2026, 12, 1, 1, 0, tzinfo=timezone(timedelta(hours=2)))) == "2026-11-30-23.json.gz"
    assert hour_name(datetime(2026, 1, 2, tzinfo=UTC)) == "2026-01-02-0.json.gz"


def test_a_push_is_found_with_its_time_and_commits(tmp_path: Path) -> None:
    found = find_pushes([hour(tmp_path, {"type": "WatchEvent"}, event())], REPOSITORY)
    (row,) = found.rows
    assert (row.timestamp, row.ref, row.before, row.after) == (
        "2026-11-30T04:23:45Z",
        "refs/heads/main",
        BEFORE,
        HEAD,
    )
    assert (found.skipped, found.broken) == (0, ())


def test_a_repository_is_known_by_its_number_and_not_its_name(tmp_path: Path) -> None:
    renamed = event(1, repo={"id": REPOSITORY, "name": "somebody/else"})
    spoofed = event(2, repo={"id": 99, "name": "octocat/study"}, payload={"repository_id": 99}, note=REPOSITORY)
    longer = event(3, repo={"id": 7247120, "name": "octocat/study"}, payload={"repository_id": 7247120})
    found = find_pushes([hour(tmp_path, renamed, spoofed, longer)], REPOSITORY)
    assert [row.id for row in found.rows] == [1]


def test_pushes_of_several_hours_stand_once_and_in_order(tmp_path: Path) -> None:
    later, earlier = event(7, created_at="2026-11-30T05:00:00Z"), event(8, created_at="2026-11-30T04:00:01Z")
    first, second = hour(tmp_path, later, earlier), hour(tmp_path, later, name="2026-11-30-5.json.gz")
    assert [row.id for row in find_pushes([second, first], REPOSITORY).rows] == [8, 7]


@pytest.mark.parametrize(
    "line",
    [
        json.dumps(event()).encode()[:-1],
        json.dumps(event()).encode().replace(b"octocat", b"\xff\xfe"),
        json.dumps(event()).encode().replace(b'"id": "22', b'"type": "PushEvent", "id": "22'),
        json.dumps(event()).encode().replace(b"724712", b"724712, " + b"[" * 999, 1),
        json.dumps(event(payload={"repository_id": 5})).encode(),
        json.dumps(event(payload={"push_id": "10115855396"})).encode(),
        json.dumps(event(payload={"push_id": True})).encode(),
        json.dumps(event(payload={"head": "HEAD"})).encode(),
        json.dumps(event(payload={"before": None})).encode(),
        json.dumps(event(payload={"ref": "main"})).encode(),
        json.dumps(event(payload={"ref": "refs/heads/\u202e"})).encode(),
        json.dumps(event(created_at="2026-11-30 04:23:45")).encode(),
        json.dumps(event(created_at=None)).encode(),
        json.dumps(event() | {"payload": 724712}).encode(),
        json.dumps(["PushEvent", 724712]).encode(),
    ],
)
def test_a_bad_line_is_counted_and_hides_no_other(tmp_path: Path, line: bytes) -> None:
    found = find_pushes([hour(tmp_path, event(1), line, b"\x00\xff", event(2))], REPOSITORY)
    assert ([row.id for row in found.rows], found.skipped, found.broken) == ([1, 2], 1, ())


def test_an_endless_line_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gh_archive, "MAX_LINE_BYTES", 1000)
    found = find_pushes([hour(tmp_path, event(1), b"x" * 5500, event(2))], REPOSITORY)
    assert ([row.id for row in found.rows], found.skipped) == ([1, 2], 1)


@pytest.mark.parametrize("newline", [b"\n", b""])
def test_a_bomb_is_left_at_the_cap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newline: bytes) -> None:
    monkeypatch.setattr(gh_archive, "MAX_HOUR_BYTES", 300_000)
    monkeypatch.setattr(gh_archive, "MAX_LINE_BYTES", 10_000)
    bomb = hour(tmp_path, event(1), (b"0" * 999 + newline) * 50_000, name="bomb.json.gz")
    found = find_pushes([bomb, hour(tmp_path, event(2))], REPOSITORY)
    assert [row.id for row in found.rows] == [1, 2]
    assert found.broken == ("bomb.json.gz: over 300000 bytes when decompressed",)


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"<html>", lambda data: data[:-8] + bytes(8)])
def test_a_broken_file_is_named_and_hides_no_other(tmp_path: Path, damage: Any) -> None:
    broken = hour(tmp_path, event(1), name="broken.json.gz")
    broken.write_bytes(damage(broken.read_bytes()))
    found = find_pushes([broken, tmp_path / "missing.json.gz", hour(tmp_path, event(2))], REPOSITORY)
    assert 2 in [row.id for row in found.rows]
    assert [text.split(":")[0] for text in found.broken] == ["broken.json.gz", "missing.json.gz"]


WHEN = datetime(2026, 11, 30, 4, 30, tzinfo=UTC)


def test_an_hour_is_fetched_once_and_whole(tmp_path: Path) -> None:
    data = gzip.compress(json.dumps(event()).encode())
    with LoopbackServer(lambda _: Answer(body=data, kind="application/gzip")) as server:
        path = fetch_hour(server.url, WHEN, tmp_path / "hours")
        assert fetch_hour(server.url + "/", WHEN, tmp_path / "hours") == path
        assert [question.path for question in server.questions] == ["/2026-11-30-4.json.gz"]
    assert len(find_pushes([path], REPOSITORY).rows) == 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer(404, b"", "application/xml"),
        Answer(body=b"<html>", kind="text/html"),
        Answer(body=b"not gzip", kind="application/gzip"),
        Answer(body=gzip.compress(b"x"), kind="application/gzip", length=5000),
    ],
)
def test_a_failed_download_leaves_nothing_behind(tmp_path: Path, answer: Answer) -> None:
    with LoopbackServer(lambda _: answer) as server, pytest.raises(TrapError):
        fetch_hour(server.url, WHEN, tmp_path)
    assert list(tmp_path.iterdir()) == []
