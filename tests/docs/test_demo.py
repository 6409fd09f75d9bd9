"""The demo: the whole main job, its outcome beside the paper's, and its ledger."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support import git


def trapkit(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The installed program, as a user starts it."""
    program = Path(sys.executable).with_name("trapkit")
    return subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, check=False)


def test_the_demo_ends_in_the_proof_count_and_leaves_a_study(tmp_path: Path) -> None:
    result = trapkit(tmp_path, "demo", "study", "--fresh")
    assert result.returncode == 0, result.stdout + result.stderr
    lines = result.stdout.splitlines()
    assert lines[-1] == "3 proofs, 0 failures"
    assert "SIMULATED here, beside the paper's GPU runs" in result.stdout
    zero_hits = next(line for line in lines if "BURST zero_hits" in line)
    assert zero_hits.split() in (["BURST", "zero_hits", "6/6", "6/6"], ["BURST", "zero_hits", "5/6", "6/6"])
    root = tmp_path / "study"
    assert git(root, "status", "--porcelain") == ""
    ledger = json.loads((root / "evidence/ledger.json").read_text())
    assert ledger["last_line"] == "3 proofs, 0 failures"
    assert [entry.get("simulated", False) for entry in ledger["registrations"]] == [True, False, True]
    git(tmp_path, "clone", "-q", "study-remote.git", "auditor")
    assert trapkit(tmp_path / "auditor", "ledger").returncode == 0
    for name in ("ledger.json", "LEDGER.md", "index.html"):
        assert (tmp_path / "auditor/evidence" / name).read_bytes() == (root / "evidence" / name).read_bytes()
    again = trapkit(tmp_path, "demo", "study")
    assert again.returncode == 2 and "not empty" in again.stderr
