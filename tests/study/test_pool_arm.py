"""An arm with a smaller pool: run on it, read with it, proven, not forged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from modelf.cells import CELLS
from registry.design import Arm, RunId, cell_under
from registry.draft import load_draft
from registry.errors import TrapError
from registry.plan import make_plan, plan_key
from runners.simulated.run import simulate
from tests.support import SMALL_RULE, command, commit_file, empty_study
from verifier.arm_checks import check_pool
from verifier.check import Outcome
from verifier.run_checks import RunContext
from verifier.run_report import frames_of

CELL = CELLS["sglang-300k"]
SMALLER = Arm("SMALLER", pool_tokens=60_000)
RULE = SMALL_RULE.replace("    NOBURST: {}\n", "    NOBURST: {pool_tokens: 60000}\n").replace(
    "good: run.judged.followup_hit_fraction >= 0.5",
    "good: run.judged.followup_hit_fraction >= 0.0 && run.judged.turnover_s < 0.01 * pool_tokens",
)


def test_an_arm_without_a_pool_runs_on_the_cell_s() -> None:
    assert cell_under(Arm("A"), CELL) is CELL
    assert cell_under(SMALLER, CELL) == replace(CELL, pool_tokens=60_000)


def test_a_larger_pool_in_the_records_is_refuted() -> None:
    design = load_draft(SMALL_RULE.encode(), "small").design
    plan = make_plan(plan_key("", 0, "", 3), design, SMALLER, 1.35 * 0.072, 1.35)
    own = cell_under(SMALLER, CELL)
    context = RunContext(RunId("SMALLER", 1.35, 3), SMALLER, design, own, plan)
    proven = check_pool(frames_of(simulate(plan, SMALLER, own)), context)
    assert proven.outcome is Outcome.PROVEN and "60000" in proven.reason
    forged = check_pool(frames_of(simulate(plan, SMALLER, CELL)), context)
    assert forged.outcome is Outcome.REFUTED and "in a pool of 60000" in forged.reason


def test_it_is_registered_run_and_proven(tmp_path: Path) -> None:
    root = empty_study(tmp_path)
    commit_file(root, "rules/small.yaml", RULE)
    assert command(root, "register", "rules/small.yaml").code == 0
    assert "pool_tokens 60000" in command(root, "show", "small").out
    assert command(root, "run", "small").code == 0
    result = command(root, "verify", "--json")
    assert result.code == 0, result.text
    runs = {(run["arm"], run["seed"]): run for run in json.loads(result.out)["proofs"][-1]["runs"]}
    turnover = {arm: runs[arm, 0]["readings"]["judged"]["turnover_s"] for arm in ("NOBURST", "BURST")}
    assert turnover["NOBURST"] < 0.5 * turnover["BURST"]
    assert [verdict["name"] for verdict in runs["NOBURST", 0]["verdicts"]] == ["good"]
    record = json.loads((root / "runs/small.v1/NOBURST/1.35/0/attempt-1/run.json").read_text())
    assert record["pool_tokens"] == 60_000


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        ("300001", "an arm's pool is larger than its cell's"),
        ("0", "the number is too small"),
        ("1.5", "write a whole number"),
    ],
)
def test_a_pool_that_cannot_be(pool: str, words: str) -> None:
    with pytest.raises(TrapError) as caught:
        load_draft(RULE.replace("pool_tokens: 60000", f"pool_tokens: {pool}").encode(), "small.yaml")
    assert words in caught.value.diagnostics()
