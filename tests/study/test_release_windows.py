"""Windows from a release, pairs of arms, closed beside open: run and judged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support import WORKLOAD, command, commit_file, copy_study, empty_study

RULE = f"""schema: trap-draft-1
id: rescue
title: A small rescue
question: Does the engine go on as if there had been no burst once the cap is off?
cell: sglang-300k
calibration: all-miss-small
design:
  horizon_s: 160
{WORKLOAD}
  rates: [1.35]
  seeds: {{values: [0], binding: beacon}}
  arms:
    RESCUE:
      burst: {{sessions: 12, start_s: 30, spread_s: 10}}
      gate: {{cap: 60, engage_s: 50, release_after_s: 5}}
    HELD:
      burst: {{sessions: 12, start_s: 30, spread_s: 10}}
      gate: {{cap: 1, engage_s: 50, release_after_s: 159}}
    NOBURST: {{}}
    ALLMISS: {{population: 8, caching: false}}
  windows:
    judged: {{start_s: 60, end_s: 160}}
    after_release: {{from_release_of: RESCUE, end_s: 160}}
    never: {{from_release_of: HELD, end_s: 160}}
rule:
  runs:
    RESCUE:
      faster: run.after_release.followups_finished >= NOBURST.after_release.followups_finished - 1000.0
      never: run.never.followups_finished >= 1.0
      cheaper: run.judged.uncached_prefill_tokens_per_s < ALLMISS.judged.uncached_prefill_tokens_per_s
    ALLMISS:
      missed: run.judged.reuse_fraction == 0.0
  rate: all(RESCUE.faster) && !any(RESCUE.never) && all(RESCUE.cheaper) && all(ALLMISS.missed)
predictors: []
blindness: none
caveats: []
deviations: []
amendments: []
"""


@pytest.fixture(scope="module")
def rescued(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = empty_study(tmp_path_factory.mktemp("rescued"))
    commit_file(root, "rules/rescue.yaml", RULE)
    for arguments in (("register", "rules/rescue.yaml"), ("run", "rescue")):
        done = command(root, *arguments)
        assert done.code == 0, done.text
    return root


def proof(root: Path) -> dict[str, Any]:
    document = json.loads(command(root, "verify", "--json").out)
    found: dict[str, Any] = next(p for p in document["proofs"] if p["tag"] == "reg/rescue/v1")
    return found


def test_every_arm_is_read_after_the_same_seeds_release(rescued: Path) -> None:
    assert command(rescued, "verify").code == 0
    found = proof(rescued)
    runs = {run["arm"]: run["readings"] for run in found["runs"]}
    assert 55.0 <= runs["RESCUE"]["judged"]["release_s"] < 160.0
    assert runs["NOBURST"]["after_release"]["followups_finished"] > 0
    assert runs["NOBURST"]["never"]["followups_finished"] == 0
    assert runs["NOBURST"]["never"]["mean_prompt_tokens"] is None
    assert set(runs["ALLMISS"]["after_release"].values()) == {None}
    verdicts = {(r["arm"], v["name"]): v["decision"]["value"] for r in found["runs"] for v in r["verdicts"]}
    assert verdicts == {
        ("RESCUE", "faster"): True,
        ("RESCUE", "never"): False,
        ("RESCUE", "cheaper"): True,
        ("ALLMISS", "missed"): True,
    }
    (rate,) = found["rates"]
    assert rate["rate"] == 1.35 and rate["counts"]["ALLMISS.missed"] == [1, 1]
    assert found["verdict"]["words"] == "PASS"
    assert command(rescued, "ledger").code == 0
    shown = command(rescued, "show", "rescue")
    assert "after_release: [release of the same seed's RESCUE run, 160 s)" in shown.out


@pytest.mark.parametrize(
    ("lost", "undecided"),
    [
        ("RESCUE/1.35", {}),
        ("NOBURST/1.35", {"faster": "NOBURST.after_release.followups_finished is absent"}),
        ("HELD/1.35", {"never": "run.never.followups_finished is nan"}),
        ("ALLMISS/closed", {"cheaper": "ALLMISS.judged.uncached_prefill_tokens_per_s is absent"}),
    ],
)
def test_a_run_that_is_gone_leaves_what_needs_it_undecided(
    rescued: Path, tmp_path: Path, lost: str, undecided: dict[str, str]
) -> None:
    root = copy_study(rescued, tmp_path)
    shutil.rmtree(root / "runs/rescue.v1" / lost)
    found = proof(root)
    verdicts = [v for r in found["runs"] if r["arm"] == "RESCUE" for v in r["verdicts"]]
    reasons = {v["name"]: v["decision"]["reason"] for v in verdicts if v["decision"]["value"] is None}
    assert reasons == undecided
    (rate,) = found["rates"]
    assert rate["decision"]["value"] is None and "registered runs" in rate["decision"]["reason"]


def test_a_rehearsal_reads_them_the_same_way(rescued: Path) -> None:
    done = command(rescued, "rehearse", "rules/rescue.yaml", "--seeds", "2", "--json")
    assert done.code == 0, done.text
    (rate,) = json.loads(done.out)["rates"]
    assert rate["verdicts"]["RESCUE.never"] == [0, 2]
    assert rate["verdicts"]["RESCUE.cheaper"] == [2, 2]
    assert rate["verdicts"]["ALLMISS.missed"] == [2, 2]
    assert rate["pass_share"] == 1.0
