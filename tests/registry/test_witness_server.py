"""The witness server with real git over HTTP: what is accepted, refused, logged."""

from __future__ import annotations

import gzip
import json
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import requests

from registry.errors import WitnessError
from registry.witness.checkpoint import read_checkpoint, verify_checkpoint
from registry.witness.log import MAX_LOG_BYTES, parse_log
from registry.witness.post_receive import new_lines
from registry.witness.pre_receive import ROW_BYTES
from registry.witness.rows import PushRow
from registry.witness.served import broken_promises, fetch_log
from registry.witness.server.inspection import problems_of
from registry.witness.server.reconciliation import push_lock
from tests.support import git, push_log
from tests.witness_server import WitnessServer

NAME = "lab/study"
ZERO = "0" * 40


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WitnessServer]:
    with WitnessServer(tmp_path_factory.mktemp("witness"), NAME) as running:
        yield running


@pytest.fixture(scope="module")
def clone(server: WitnessServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with two commits and a tag pushed."""
    root = cloned(server, tmp_path_factory.mktemp("clone") / "study")
    commit(root, "one")
    commit(root, "two")
    git(root, "tag", "-a", "fixed", "-m", "fixed")
    git(root, "push", "-q", "origin", "HEAD:main", "fixed")
    return root


def cloned(server: WitnessServer, root: Path, name: str = NAME) -> Path:
    git(root.parent, "clone", "-q", server.remote(name), str(root))
    git(root, "config", "user.name", "Ada")
    git(root, "config", "user.email", "ada@example.org")
    return root


def commit(root: Path, name: str, data: bytes = b"x") -> str:
    (root / name).write_bytes(data)
    git(root, "add", name)
    git(root, "commit", "-q", "-m", name)
    return git(root, "rev-parse", "HEAD")


def rows(server: WitnessServer, name: str = NAME) -> list[PushRow]:
    """The rows as a client gets them, checked against checkpoint, promises and refs."""
    log, checkpoint = fetch_log(server.url, name)
    assert verify_checkpoint(read_checkpoint(checkpoint, name), name, log, [server.key]) == server.key
    found = parse_log(log, name)
    assert broken_promises(found) == []
    assert problems_of(server.repository(name)) == []
    return found


def refused(root: Path, *arguments: str | bytes) -> str:
    done = subprocess.run(["git", "push", *arguments], cwd=root, capture_output=True)
    assert done.returncode != 0
    return done.stderr.decode("utf-8", "replace")


def test_a_push_is_a_row_before_it_is_answered(server: WitnessServer, clone: Path) -> None:
    before = rows(server)
    oid = commit(clone, "three")
    git(clone, "push", "-q", "origin", "HEAD:main")
    (row,) = rows(server)[len(before) :]
    assert (row.ref, row.before, row.after, row.activity_type) == ("refs/heads/main", before[0].after, oid, "push")
    assert row.timestamp >= before[-1].timestamp


def test_a_large_atomic_push_of_branch_and_tag_is_two_rows_and_a_draw(server: WitnessServer, clone: Path) -> None:
    before = len(rows(server))
    oid = commit(clone, "large", bytes(range(256)) * 8192 + bytes(str(time.monotonic_ns()), "ascii"))
    (clone / "large").write_bytes(b"")
    git(clone, "tag", "-a", "reg/e2/v1", "-m", "registration")
    tag = git(clone, "rev-parse", "reg/e2/v1")
    git(clone, "-c", "core.compression=0", "push", "-q", "--atomic", "origin", "HEAD:main", "reg/e2/v1")
    branch_row, tag_row = rows(server)[before:]
    assert (branch_row.after, tag_row.after) == (oid, tag)
    assert branch_row.timestamp == tag_row.timestamp
    assert branch_row.beacon is None and tag_row.beacon is not None


def test_what_was_pushed_can_be_cloned(server: WitnessServer, clone: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", server.remote(NAME), "again")
    git(tmp_path, "clone", "-q", "-c", "protocol.version=0", "--depth", "1", server.remote(NAME), "shallow")
    assert git(tmp_path / "again", "rev-parse", "origin/main", "fixed") == git(clone, "rev-parse", "HEAD", "fixed")
    git(tmp_path / "again", "fsck", "--strict")


def test_a_compressed_fetch_request_is_understood(server: WitnessServer, clone: Path) -> None:
    want = f"want {git(clone, 'rev-parse', 'HEAD')} ofs-delta\n"
    request = f"{len(want) + 4:04x}{want}00000009done\n".encode()
    answer = requests.post(
        f"{server.remote(NAME)}/git-upload-pack",
        data=gzip.compress(request),
        headers={"Content-Encoding": "gzip", "Content-Type": "application/x-git-upload-pack-request"},
        timeout=10,
    )
    assert answer.status_code == 200
    assert answer.content.startswith(b"0008NAK\nPACK")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-f", "origin", "main~1:refs/tags/fixed"], "a tag can never be moved"),
        (["origin", ":refs/tags/fixed"], "nothing can be deleted here"),
        (["origin", ":refs/heads/main"], "nothing can be deleted here"),
        (["-f", "origin", "main~1:refs/heads/main"], "non-fast-forward"),
        (["origin", "main:refs/notes/commits"], "only branches and tags can be pushed"),
        (["origin", "main:refs/replace/" + "a" * 40], "only branches and tags can be pushed"),
        (["origin", "main:refs/pull/1/head"], "only branches and tags can be pushed"),
        (["origin", "main:refs/trap/x"], "only branches and tags can be pushed"),
        (["--mirror", "origin"], "only branches and tags can be pushed"),
        (["origin", "main:refs/heads/" + "a/" * 130 + "a"], "the name is longer than 255 bytes"),
        (["origin", b"main:refs/heads/\xff"], "the name is not UTF-8"),
        # One refused ref, and the whole push is refused.
        (["origin", "main:refs/heads/good", ":refs/tags/fixed"], "nothing can be deleted here"),
    ],
)
def test_refused_pushes_leave_refs_and_log_as_they_were(
    server: WitnessServer, clone: Path, arguments: list[str | bytes], words: str
) -> None:
    bare = server.repository(NAME).path
    before = git(bare, "for-each-ref"), server.repository(NAME).log_path.read_bytes()
    assert words in refused(clone, *arguments)
    assert (git(bare, "for-each-ref"), server.repository(NAME).log_path.read_bytes()) == before


def test_a_tag_is_not_moved_by_a_lie_about_its_old_value(server: WitnessServer, clone: Path) -> None:
    """The hook sees the old value that the pusher names; git compares it with the ref."""
    pack = subprocess.run(
        ["git", "pack-objects", "--stdout", "-q"], cwd=clone, input=b"", capture_output=True, check=True
    ).stdout
    update = f"{ZERO} {git(clone, 'rev-parse', 'main~1')} refs/tags/fixed\0report-status\n".encode()
    body = f"{len(update) + 4:04x}".encode() + update + b"0000" + pack
    kind = {"Content-Type": "application/x-git-receive-pack-request"}
    answer = requests.post(f"{server.remote(NAME)}/git-receive-pack", data=body, headers=kind, timeout=10)
    assert b"ng refs/tags/fixed" in answer.content
    assert git(server.repository(NAME).path, "rev-parse", "refs/tags/fixed") == git(clone, "rev-parse", "fixed")
    assert rows(server)


def test_pushes_at_once_are_all_logged(server: WitnessServer, clone: Path) -> None:
    before = len(rows(server))
    commands = [["git", "push", "-q", "origin", f"HEAD:refs/heads/at-once-{n}"] for n in range(6)]
    pushing = [subprocess.Popen(command, cwd=clone, stderr=subprocess.DEVNULL) for command in commands]
    assert [process.wait(60) for process in pushing] == [0] * 6
    assert {row.ref for row in rows(server)[before:]} == {f"refs/heads/at-once-{n}" for n in range(6)}


def test_of_two_pushes_to_one_branch_one_is_refused(server: WitnessServer, clone: Path, tmp_path: Path) -> None:
    others = [cloned(server, tmp_path / name) for name in ("a", "b")]
    oids = [commit(root, f"by-{root.name}") for root in others]
    before = len(rows(server))
    pushing = [
        subprocess.Popen(["git", "push", "-q", "origin", "HEAD:race"], cwd=root, stderr=subprocess.DEVNULL)
        for root in others
    ]
    codes = [process.wait(60) for process in pushing]
    assert sorted(codes) == [0, 1]
    (row,) = rows(server)[before:]
    assert row.after == oids[codes.index(0)]


# --- deaths in the middle -----------------------------------------------------


@pytest.fixture
def other(server: WitnessServer, tmp_path: Path, request: pytest.FixtureRequest) -> tuple[str, Path]:
    """A repository of its own with one commit pushed, and its clone."""
    name = f"lab/{tmp_path.name}"
    server.folder.create(name)
    root = cloned(server, tmp_path / "clone", name)
    commit(root, "one")
    git(root, "push", "-q", "origin", "HEAD:main")
    return name, root


@pytest.mark.parametrize("victim", ["$$", "$PPID"])
def test_a_push_whose_hook_was_killed_is_logged_still(
    server: WitnessServer, other: tuple[str, Path], victim: str
) -> None:
    name, root = other
    hook = server.repository(name).path / "hooks" / "post-receive"
    hook.write_text(f"#!/bin/sh\nkill -9 {victim}\n")
    git(root, "tag", "-a", "reg/e2/v1", "-m", "registration")
    subprocess.run(["git", "push", "-q", "origin", "reg/e2/v1"], cwd=root, capture_output=True)
    first, row = parse_log(server.repository(name).log_path.read_bytes(), name)
    assert (row.ref, row.after) == ("refs/tags/reg/e2/v1", git(root, "rev-parse", "reg/e2/v1"))
    assert row.beacon is not None and row.timestamp > first.timestamp
    assert len(rows(server, name)) == 2


def test_a_line_cut_off_by_a_crash_is_written_anew(server: WitnessServer, other: tuple[str, Path]) -> None:
    name, root = other
    log = server.repository(name).log_path
    with log.open("ab") as file:
        file.write(b'{"activity_type": "pu')
    assert len(parse_log(fetch_log(server.url, name)[0], name)) == 1
    commit(root, "two")
    git(root, "push", "-q", "origin", "HEAD:main")
    assert len(rows(server, name)) == 2
    assert log.read_bytes().endswith(b"}\n")


def test_a_ref_that_stands_unlogged_is_logged_before_the_next_answer(
    server: WitnessServer, other: tuple[str, Path]
) -> None:
    name, root = other
    git(server.repository(name).path, "update-ref", "refs/heads/late", git(root, "rev-parse", "HEAD"))
    activity = requests.get(f"{server.url}/api/v3/repos/{name}/activity", timeout=10).json()
    assert activity[0]["ref"] == "refs/heads/late"
    assert len(rows(server, name)) == 2


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["update-ref", "-d", "refs/heads/main"], "refs/heads/main is gone"),
        (["update-ref", "refs/tags/fixed", "main"], "refs/tags/fixed was moved"),
        (["symbolic-ref", "refs/heads/main", "refs/heads/side"], "does not follow from what was logged"),
    ],
)
def test_what_no_push_could_have_done_stops_the_repository(
    server: WitnessServer, other: tuple[str, Path], command: list[str], words: str
) -> None:
    name, root = other
    git(root, "tag", "-a", "fixed", "-m", "fixed")
    git(root, "switch", "-q", "--orphan", "side")
    git(root, "commit", "-q", "--allow-empty", "-m", "side")
    git(root, "push", "-q", "origin", "fixed", "side")
    log = server.repository(name).log_path.read_bytes()
    git(server.repository(name).path, *command)
    assert words in problems_of(server.repository(name))[0]
    assert "503" in refused(root, "origin", "HEAD:another")
    assert any(words in line for line in server.told)
    assert fetch_log(server.url, name)[0] == log


def test_a_push_waits_for_the_one_before_and_gives_up(
    server: WitnessServer, other: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, root = other
    monkeypatch.setattr("registry.witness.server.git_backend.PUSH_WAIT_S", 0.05)
    with push_lock(server.repository(name), 1.0):
        assert "503" in refused(root, "origin", "HEAD:another")
        assert len(parse_log(fetch_log(server.url, name)[0], name)) == 1
    git(root, "push", "-q", "origin", "HEAD:another")


def test_a_git_that_hangs_is_killed(
    server: WitnessServer, other: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, root = other
    hook = server.repository(name).path / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nsleep 600\n")
    monkeypatch.setattr("registry.witness.server.git_backend.GIT_TIMEOUT_S", 0.2)
    commit(root, "two")
    assert "504" in refused(root, "origin", "HEAD:another")
    with push_lock(server.repository(name), 1.0):  # whatever git started would hold it still
        assert len(rows(server, name)) == 1


def test_a_push_that_could_fill_the_log_is_not_taken(server: WitnessServer, other: tuple[str, Path]) -> None:
    name, root = other
    script = server.repository(name).path / "hooks" / "pre_receive.py"
    script.write_text(script.read_text().replace(f"MAX_LOG_BYTES = {MAX_LOG_BYTES:_}", "MAX_LOG_BYTES = 1500"))
    refs = [f"HEAD:a{number}" for number in range(2)]
    assert "the push log is full" in refused(root, "origin", *refs)
    git(root, "push", "-q", "origin", refs[0])
    assert server.repository(name).log_path.stat().st_size < 1500


def test_no_row_is_larger_than_the_hook_reckons() -> None:
    drawn = "refs/tags/reg/" + "x" * 63 + "/v999999"
    for name in (drawn, "refs/heads/" + "\U0001f600" * 61, "refs/tags/" + "é" * 120):
        (line,) = new_lines(b"", [f"{ZERO} {'a' * 40} {name}"], datetime.now(UTC))
        assert len(line) <= ROW_BYTES + 6 * len(name.encode())


def test_a_log_written_anew_does_not_fit_an_earlier_checkpoint(server: WitnessServer, other: tuple[str, Path]) -> None:
    name, _ = other
    _, earlier = fetch_log(server.url, name)
    log = server.repository(name).log_path
    log.write_bytes(push_log([json.loads(log.read_bytes()) | {"timestamp": "2020-01-01T00:00:00.000000Z"}]))
    written_anew, checkpoint = fetch_log(server.url, name)
    assert verify_checkpoint(read_checkpoint(checkpoint, name), name, written_anew, [server.key])
    with pytest.raises(WitnessError, match="not the one that the checkpoint was made of"):
        verify_checkpoint(read_checkpoint(earlier, name), name, written_anew, [server.key])
