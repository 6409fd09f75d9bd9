"""Registration by real git: versions, rejected pushes, the witness."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest

from tests.support import SMALL_CALIBRATION, command, commit_file, empty_study, git

RULE = "rules/all-miss-small.yaml"
TAG = "reg/all-miss-small/v1"


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A study with nothing registered."""
    return empty_study(tmp_path)


def pushes(root: Path) -> list[dict[str, str]]:
    log = root.with_name("study-remote.git") / "trap-witness" / "push-log.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()]


def refuse_pushes(root: Path, refuse: bool) -> None:
    hook = root.with_name("study-remote.git") / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho no room today >&2\nexit 1\n" if refuse else "#!/bin/sh\nexit 0\n")
    hook.chmod(hook.stat().st_mode | stat.S_IXUSR)


def test_branch_and_tag_go_in_one_push_and_the_beacon_comes_after(fresh: Path) -> None:
    result = command(fresh, "register", RULE)
    assert result.code == 0, result.text
    rows = [row for row in pushes(fresh) if row["ref"] == f"refs/tags/{TAG}"]
    assert len(rows) == 1 and re.fullmatch("[0-9a-f]{64}", rows[0]["beacon"])
    branch = [row for row in pushes(fresh) if row["timestamp"] == rows[0]["timestamp"]]
    assert {row["ref"] for row in branch} == {f"refs/tags/{TAG}", "refs/heads/main"}
    assert git(fresh, "cat-file", "-t", TAG) == "tag"
    assert git(fresh, "status", "--porcelain") == ""
    assert "drew the plans" in result.text


def test_the_same_draft_again_changes_nothing(fresh: Path) -> None:
    command(fresh, "register", RULE)
    before = git(fresh, "for-each-ref"), len(pushes(fresh))
    again = command(fresh, "register", RULE)
    assert again.code == 0
    assert "nothing to register" in again.text
    assert (git(fresh, "for-each-ref"), len(pushes(fresh))) == before


def test_a_comment_or_line_ends_make_no_new_version(fresh: Path) -> None:
    command(fresh, "register", RULE)
    commit_file(fresh, RULE, "# a comment\r\n" + SMALL_CALIBRATION.replace("\n", "\r\n"))
    assert "nothing to register" in command(fresh, "register", RULE).text


def test_a_changed_draft_is_a_new_version_beside_the_old(fresh: Path) -> None:
    command(fresh, "register", RULE)
    commit_file(fresh, RULE, SMALL_CALIBRATION.replace("population: 32", "population: 31"))
    assert command(fresh, "register", RULE).code == 0
    assert git(fresh, "tag").splitlines() == [TAG, "reg/all-miss-small/v2"]
    first = json.loads((fresh / "registrations/all-miss-small.v1.json").read_text())
    second = json.loads((fresh / "registrations/all-miss-small.v2.json").read_text())
    assert first["supersedes"] is None
    assert second["supersedes"] is not None
    assert "v1" in command(fresh, "status").out and "v2" in command(fresh, "status").out


def test_a_rejected_push_leaves_no_half_registration(fresh: Path) -> None:
    before = git(fresh, "for-each-ref"), git(fresh, "status", "--porcelain"), git(fresh, "log", "--format=%H")
    refuse_pushes(fresh, True)
    result = command(fresh, "register", RULE)
    assert result.code == 2
    assert "the push to origin was rejected" in result.err
    assert "no room today" in result.err
    assert f"trapkit register {RULE}" in result.err
    after = git(fresh, "for-each-ref"), git(fresh, "status", "--porcelain"), git(fresh, "log", "--format=%H")
    assert after == before
    refuse_pushes(fresh, False)
    assert command(fresh, "register", RULE).code == 0
    assert command(fresh, "verify").code == 3


def test_a_remote_that_moved_on_is_explained(fresh: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(fresh.with_name("study-remote.git")), "other")
    git(tmp_path / "other", "config", "user.email", "other@localhost")
    git(tmp_path / "other", "config", "user.name", "other")
    commit_file(tmp_path / "other", "notes.md", "elsewhere")
    result = command(fresh, "register", RULE)
    assert result.code == 2
    assert "git pull --rebase" in result.err
    git(fresh, "pull", "-q", "--rebase")
    assert command(fresh, "register", RULE).code == 0


def test_a_registration_made_in_another_clone_is_noticed(fresh: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(fresh), "other")
    git(tmp_path / "other", "remote", "set-url", "origin", str(fresh.with_name("study-remote.git")))
    command(fresh, "register", RULE)
    result = command(tmp_path / "other", "register", RULE)
    assert result.code == 2
    assert "the remote holds registrations that this clone lacks" in result.err


def test_no_wait_leaves_drawing_to_draw(fresh: Path) -> None:
    result = command(fresh, "register", RULE, "--no-wait")
    assert "next: trapkit draw all-miss-small" in result.out
    assert sorted(p.name for p in (fresh / "evidence").rglob("*") if p.is_file()) == ["push-log.jsonl"]
    drawn = command(fresh, "draw", "all-miss-small")
    assert drawn.code == 0 and "drew the plans" in drawn.text
    assert "already" not in drawn.text
    archive = (fresh / "evidence/witness/local/push-log.jsonl").read_text()
    assert TAG in archive
    again = command(fresh, "draw", "all-miss-small")
    assert again.code == 0


def test_the_beacon_is_drawn_once_for_a_tag_and_differs_between_tags(fresh: Path) -> None:
    command(fresh, "register", RULE)
    git(fresh, "push", "-q", "origin", f":refs/tags/{TAG}")
    git(fresh, "push", "-q", "origin", TAG)
    drawn = [row["beacon"] for row in pushes(fresh) if "beacon" in row]
    assert len(drawn) == 1


def test_literal_seeds_need_no_draw_and_rest_on_run_clocks(fresh: Path) -> None:
    commit_file(fresh, RULE, SMALL_CALIBRATION.replace("binding: beacon", "binding: literal"))
    assert "literal seeds" in command(fresh, "register", RULE).text
    assert command(fresh, "run", "all-miss-small").code == 0
    result = command(fresh, "verify", "--json")
    assert result.code == 0
    checks = json.loads(result.out)["proofs"][0]["check"]["children"]
    drawn = next(c for c in checks if c["name"] == "drawn_after_push")
    assert (drawn["outcome"], drawn["needed"]) == ("UNPROVABLE", False)
    assert "run clocks" in drawn["reason"]


def test_a_missing_calibration_is_registered_drawn_and_run_first(finished: Path) -> None:
    assert git(finished, "tag").splitlines() == ["reg/all-miss-small/v1", "reg/small/v1"]
    frozen = json.loads((finished / "registrations/small.v1.json").read_text())
    assert frozen["calibration"]["registration"] == "all-miss-small"
    assert set(frozen["calibration"]["runs"]) == {"ALLMISS/closed/0", "ALLMISS/closed/1"}
    assert len(frozen["rehearsal"]["seeds"]) == 20


def test_a_claim_beyond_the_witness_fails_the_proof(fresh: Path) -> None:
    commit_file(fresh, RULE, SMALL_CALIBRATION + "claim: pre-registered\n")
    command(fresh, "register", RULE)
    command(fresh, "run", "all-miss-small")
    result = command(fresh, "verify")
    assert result.code == 1
    assert "the claim pre-registered exceeds the status registered" in result.out
    assert result.out.splitlines()[-1] == "1 proofs, 1 failures"


def test_real_git_verifies_the_tag(finished: Path, tmp_path: Path) -> None:
    settings = (finished / "study.yaml").read_text()
    match = re.search(r'signing_key: "([^"]+)"', settings)
    assert match
    (tmp_path / "allowed").write_text(f"author {match[1]}\n")
    git(finished, "-c", "gpg.format=ssh", "-c", f"gpg.ssh.allowedSignersFile={tmp_path / 'allowed'}",
        "verify-tag", "reg/small/v1")  # fmt: skip
