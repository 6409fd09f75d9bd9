"""The demo: the whole main job, its outcome beside the paper's, and its ledger."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import command, git


def test_the_demo_ends_in_the_proof_count_and_leaves_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.workflows.rehearse.rehearse.__defaults__", (3, 1000))
    result = command(tmp_path, "demo", "study", "--fresh")
    assert result.code == 0, result.text
    lines = result.out.splitlines()
    assert lines[-1] == "3 proofs, 0 failures"
    assert "SIMULATED here, beside the paper's GPU runs" in result.out
    zero_hits = next(line for line in lines if "BURST zero_hits" in line)
    assert zero_hits.split() in (["BURST", "zero_hits", "6/6", "6/6"], ["BURST", "zero_hits", "5/6", "6/6"])
    root = tmp_path / "study"
    assert git(root, "status", "--porcelain") == ""
    ledger = json.loads((root / "evidence/ledger.json").read_text())
    assert ledger["last_line"] == "3 proofs, 0 failures"
    assert [entry.get("simulated", False) for entry in ledger["registrations"]] == [True, False, True]
    git(tmp_path, "clone", "-q", "study-remote.git", "auditor")
    assert command(tmp_path / "auditor", "ledger").code == 0
    for name in ("ledger.json", "LEDGER.md"):
        assert (tmp_path / "auditor/evidence" / name).read_bytes() == (root / "evidence" / name).read_bytes()
    again = command(tmp_path, "demo", "study")
    assert again.code == 2 and "not empty" in again.err
