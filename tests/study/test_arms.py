"""Arms that shed, cut arrivals or slow tools: run, proven, and not forged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from modelf.cells import CELLS
from registry.design import Arm, Cut, Design, Shed, ToolSlowdown
from registry.draft import load_draft
from registry.plan import cut_arrivals_us, make_plan, plan_key
from runners.simulated.run import simulate
from tests.support import SMALL_RULE, command, commit_file, empty_study
from verifier.arm_checks import check_refusals
from verifier.check import Outcome
from verifier.run_checks import PLAN_CHECKS, RunContext
from verifier.run_report import frames_of

DESIGN = load_draft(SMALL_RULE.encode(), "small").design
CELL = CELLS["sglang-300k"]
LAMBDA = 1.35 * 0.072
SHED = Arm("SHED", shed=Shed(60.0, 100.0))
CUT = Arm("CUT", cut=Cut(100.0, 0.4))
SLOW = Arm("SLOW", tool_slowdown=ToolSlowdown(50.0, 60.0, 30.0))


def records(arm: Arm, design: Design = DESIGN) -> tuple[object, RunContext]:
    from registry.design import RunId

    plan = make_plan(plan_key("", 0, "", 3), design, arm, LAMBDA, 1.35)
    frames = frames_of(simulate(plan, arm, CELL))
    return frames, RunContext(RunId(arm.name, 1.35, 3), arm, design, CELL, plan)


@pytest.mark.parametrize("arm", [SHED, CUT, SLOW], ids=lambda a: a.name)
def test_the_records_of_an_arm_hold_its_checks(arm: Arm) -> None:
    frames, context = records(arm)
    for check in (*PLAN_CHECKS, check_refusals):
        assert check(frames, context).outcome is Outcome.PROVEN, check(frames, context)  # type: ignore[arg-type]


def test_shedding_refuses_exactly_the_sessions_that_arrive_then() -> None:
    frames, context = records(SHED)
    sessions = frames.sessions  # type: ignore[attr-defined]
    inside = (sessions.arrival_s >= 60) & (sessions.arrival_s < 160)
    assert inside.any()
    assert (sessions.outcome == "refused").tolist() == inside.tolist()
    never = replace(context, arm=replace(SHED, shed=None))
    assert check_refusals(frames, never).outcome is Outcome.REFUTED  # type: ignore[arg-type]
    longer = replace(context, arm=replace(SHED, shed=Shed(60.0, 180.0)))
    assert check_refusals(frames, longer).outcome is Outcome.REFUTED  # type: ignore[arg-type]


def test_a_slowdown_lengthens_the_tool_calls_that_start_in_its_span_only() -> None:
    frames, context = records(SLOW)
    unslowed = replace(context, arm=replace(SLOW, tool_slowdown=None))
    found = [check(frames, unslowed) for check in PLAN_CHECKS]  # type: ignore[arg-type]
    assert any(check.outcome is Outcome.REFUTED and "the plan says" in check.reason for check in found)


def test_a_cut_keeps_the_arrivals_before_it_and_stretches_those_after() -> None:
    uncut = make_plan(plan_key("", 0, "", 3), DESIGN, Arm("A"), LAMBDA, 1.35).base_arrivals_us
    cut = make_plan(plan_key("", 0, "", 3), DESIGN, CUT, LAMBDA, 1.35).base_arrivals_us
    before = [t for t in uncut if t < 100_000_000]
    assert list(cut[: len(before)]) == before
    slower = 1.35 / 0.4
    moved = [round(100_000_000 + (t - 100_000_000) * slower) for t in uncut[len(before) :]]
    assert list(cut[len(before) :]) == [t for t in moved if t < 240_000_000]
    raised = make_plan(plan_key("", 0, "", 3), DESIGN, Arm("A", cut=Cut(100.0, 5.4)), LAMBDA, 1.35)
    assert len(raised.base_arrivals_us) > len(uncut)
    assert cut_arrivals_us((1, 5, 9), 5, 2.0, 20) == (1, 5, 13)


def test_a_registration_with_these_arms_is_run_and_proven(tmp_path: Path) -> None:
    root = empty_study(tmp_path)
    text = SMALL_RULE.replace(
        "    NOBURST: {}\n",
        "    NOBURST: {}\n"
        "    SHED: {shed: {start_s: 60, duration_s: 100}}\n"
        "    CUT: {cut: {at_s: 100, to_rate: 0.4}}\n"
        "    SLOW: {tool_slowdown: {start_s: 50, duration_s: 60, extra_s: 30}}\n",
    )
    commit_file(root, "rules/small.yaml", text)
    assert command(root, "register", "rules/small.yaml").code == 0
    assert command(root, "run", "small").code == 0
    result = command(root, "verify", "--json")
    assert result.code == 0, result.text
    runs = json.loads(result.out)["proofs"][-1]["runs"]
    shed = next(run for run in runs if run["arm"] == "SHED")
    assert shed["readings"]["judged"]["refused"] > 0
    folder = root / "runs/small.v1/SHED/1.35/0/attempt-1"
    assert "refused" in pq.read_table(folder / "turns.parquet").column("outcome").to_pylist()
    assert "refused" in pq.read_table(folder / "gate.parquet").column("event").to_pylist()


def test_these_arms_need_open_arrivals() -> None:
    from registry.errors import TrapError
    from tests.support import SMALL_CALIBRATION

    bad = SMALL_CALIBRATION.replace(
        "{population: 32, caching: false}", "{population: 32, shed: {start_s: 1, duration_s: 1}}"
    )
    with pytest.raises(TrapError) as caught:
        load_draft(bad.encode(), "x.yaml")
    assert "a closed population takes no shed" in caught.value.diagnostics()


@pytest.mark.parametrize(("cap", "after_s", "released"), [(14, 10.0, True), (14, 5.0, True), (10, 5.0, False)])
def test_a_release_is_held_against_the_waits_of_the_turns(cap: int, after_s: float, released: bool) -> None:
    from registry.design import Burst, GateSetting
    from verifier.gate_checks import check_release

    arm = Arm("RESCUE", burst=Burst(12, 30.0, 10.0), gate=GateSetting(cap, 31.0, after_s))
    frames, context = records(arm)
    found = check_release(frames, context)  # type: ignore[arg-type]
    assert found.outcome is Outcome.PROVEN, found
    assert found.reason.startswith("released at" if released else "never released")
    gate = frames.gate  # type: ignore[attr-defined]
    moved = gate.assign(time_s=gate.time_s.where(gate.event != "released", gate.time_s + 1.0))
    added = gate.iloc[:1].assign(event="released", time_s=60.0)
    for forged in [moved, gate[gate.event != "released"]] if released else [added]:
        check = check_release(replace(frames, gate=forged), context)  # type: ignore[arg-type, type-var]
        assert check.outcome is Outcome.REFUTED and "it was due at" in check.reason
