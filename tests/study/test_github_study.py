"""A study on GitHub: proven by timestamp tokens offline, by asking GitHub online."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger.audit_statement import read_audit
from tests.study.hosted import Hosts, clone_of
from tests.support import command, copy_study


@pytest.fixture
def study(github_finished: Path, tmp_path: Path) -> Path:
    return copy_study(github_finished, tmp_path)


@pytest.fixture
def clone(github_finished: Path, services: Hosts, tmp_path: Path) -> Path:
    return clone_of(github_finished, tmp_path)


def test_tokens_prove_it_offline(clone: Path) -> None:
    done = command(clone, "verify")
    assert done.code == 0, done.text
    assert "status pre-registered: timestamp authority had seen it" in done.out
    assert done.out.rstrip().endswith("2 proofs, 0 failures")


def test_github_proves_it_online(clone: Path, services: Hosts) -> None:
    services.policy(timestamp_roots=None)
    offline = command(clone, "verify")
    assert offline.code == 3, offline.text
    assert "run trapkit verify --online" in offline.out
    online = command(clone, "verify", "--online")
    assert online.code == 0, online.text
    assert "status pre-registered: GitHub (127.0.0.1" in online.out


def test_an_auditor_states_what_github_answered(clone: Path, services: Hosts, tmp_path: Path) -> None:
    file = tmp_path / "audit.json"
    done = command(clone, "verify", "--online", "--statement", str(file))
    said = read_audit(file.read_bytes(), "audit.json").predicate
    assert said["exit_code"] == done.code and said["online"] and said["unanswered"] == []
    assert any("/activity" in answer["what"] for answer in said["asked"])
    assert {(answer["status"], len(answer["sha256"])) for answer in said["asked"]} == {(200, 64)}
    checked = command(tmp_path, "ledger", "verify", "audit.json")
    assert checked.code == 0 and "answers, by their digests" in checked.out


def test_the_ledger_is_the_same_on_two_clones(study: Path, clone: Path) -> None:
    pages = []
    for root in (study, clone):
        assert command(root, "ledger").code == 3
        pages.append([(root / "evidence" / name).read_bytes() for name in ("ledger.json", "LEDGER.md", "index.html")])
    assert pages[0] == pages[1]
    entries = json.loads(pages[0][0])["registrations"]
    assert all("your policy does not name" in entry["status"]["reason"] for entry in entries)
    assert {entry["push"]["witness"][:6] for entry in entries} == {"GitHub"}


def test_a_ledger_by_a_policy_of_one_s_own_says_so(clone: Path, services: Hosts) -> None:
    done = command(clone, "ledger", "--policy", str(services.policy_file))
    assert done.code == 0, done.text
    assert "Judged by a trust policy of its writer's own" in (clone / "evidence/LEDGER.md").read_text()
