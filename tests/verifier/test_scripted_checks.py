"""Runs that follow session scripts are held against them, turn by turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from modelf.cells import CELLS
from modelf.workload import STANDARD_WORKLOAD
from registry.design import Arm, Burst, Design, GateSetting, RunId, Seeds
from registry.plan import make_plan, plan_key
from registry.scripted_workload import ScriptedWorkload
from runners.simulated.run import simulate
from tests.runners.script_support import scripts_of
from verifier.check import Outcome
from verifier.gate_checks import check_gate
from verifier.readings import RunFrames
from verifier.run_checks import PLAN_CHECKS, RunContext, check_conservation, check_turns
from verifier.run_report import frames_of

SESSIONS = [
    [(700, 30, 0, [0, 1, 2, *range(10, 40)]), (900, 5, 2_000_000, [0, 1, 2, *range(10, 50)])],
    [(400, 12, 0, [0, 1, 2, *range(60, 80)])],
    [(150, 3, 0, []), (160, 4, 1_000_000, []), (170, 1, 500_000, [])],
]
WORKLOAD = ScriptedWorkload.following(scripts_of(SESSIONS, 16))
BURST = Arm("BURST", Burst(6, 40.0, 5.0), GateSetting(None, 0.0, None, None, 0.02))
CELL = CELLS["vllm-300k"]


def context_of(arm: Arm) -> tuple[RunContext, RunFrames]:
    design = Design(120.0, WORKLOAD, (), (arm,), (), Seeds((5,), "literal"))
    plan = make_plan(plan_key("", 0, "", 5), design, arm, None if arm.population else 0.3)
    frames = frames_of(simulate(plan, arm, CELL))
    return RunContext(RunId(arm.name, 1.0, 5), arm, design, CELL, plan), frames


@pytest.mark.parametrize("arm", [BURST, Arm("OPEN"), Arm("CLOSED", population=4), Arm("CUT", step_cap=1)])
def test_a_run_of_scripts_holds(arm: Arm) -> None:
    context, frames = context_of(arm)
    assert len(frames.turns) > 20
    for check in (*PLAN_CHECKS, check_gate):
        found = check(frames, context)
        assert found.outcome is Outcome.PROVEN, found
    # First turns have hit a beginning that other sessions left.
    assert (frames.turns.cached_tokens[frames.turns.turn == 1] == 48).any()


def put(column: str, change: Callable[[Any], Any]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def changed(turns: pd.DataFrame) -> pd.DataFrame:
        values = turns[column].tolist()
        values[3] = change(values[3])
        return turns.assign(**{column: pd.Series(values, index=turns.index, dtype=turns[column].dtype)})

    return changed


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (put("prompt_tokens", lambda tokens: tokens + 16), "prompt_tokens is not the workload's"),
        (put("reusable_tokens", lambda tokens: tokens + 16), "reusable_tokens is not the workload's"),
        (put("turn", lambda turn: turn + 3), "of no planned session"),
        (put("turn", lambda turn: 0), "of no planned session"),
        (put("session", lambda name: "base-99999999"), "of no planned session"),
        (put("session", lambda name: "nobody"), "of no planned session"),
    ],
)
def test_turns_that_are_no_scripts_are_refuted(change: Any, told: str) -> None:
    context, frames = context_of(Arm("OPEN"))
    found = check_turns(replace(frames, turns=change(frames.turns)), context)
    assert found.outcome is Outcome.REFUTED and told in found.reason


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (put("output_tokens", lambda tokens: tokens + 1), "output tokens are not the workload's"),
        (put("cached_tokens", lambda tokens: 896), "more cached tokens than could be reused"),
    ],
)
def test_tokens_that_no_script_allows_are_refuted(change: Any, told: str) -> None:
    context, frames = context_of(Arm("OPEN"))
    found = check_conservation(replace(frames, turns=change(frames.turns)), context)
    assert found.outcome is Outcome.REFUTED and told in found.reason


@pytest.mark.parametrize(("block_tokens", "cached", "holds"), [(1, 3, True), (1, 4, False), (16, 1, False)])
def test_prompts_may_begin_alike_by_chance_where_single_tokens_are_found(
    block_tokens: int, cached: int, holds: bool
) -> None:
    arm = Arm("OPEN")
    design = Design(60.0, STANDARD_WORKLOAD, (), (arm,), (), Seeds((5,), "literal"))
    plan = make_plan(plan_key("", 0, "", 5), design, arm, 0.3)
    frames = frames_of(simulate(plan, arm, CELLS["sglang-300k"]))
    first = frames.turns.assign(cached_tokens=frames.turns.cached_tokens.where(frames.turns.turn > 1, cached))
    cell = replace(CELLS["sglang-300k"], cache_block_tokens=block_tokens)
    found = check_conservation(replace(frames, turns=first), RunContext(RunId("OPEN", 1.0, 5), arm, design, cell, plan))
    assert (found.outcome is Outcome.PROVEN) is holds, found
