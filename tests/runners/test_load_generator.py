"""The load generator against a stub: what is due has its row, as the plan says,
and the verifier's own checks hold.
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from modelf.turn_law import TruncatedGeometric
from registry.design import Adaptation, Arm, Burst, Cut, GateSetting, Shed, ToolSlowdown
from registry.plan import MICROSECONDS
from runners.load.client_gate import load_rules
from tests.engines.faults import Fault
from tests.runners.load_support import HORIZON_S, RATE_PER_S, WORKLOAD, Driven, design_of, drive, refuted
from verifier.check import Outcome

BURST = Burst(10, 0.3, 0.1)
ARMS = (
    Arm("PLAIN"),
    Arm("BURST", burst=BURST),
    Arm("CAPPED", burst=BURST, gate=GateSetting(3, 0.0, None)),
    Arm("RESCUED", burst=BURST, gate=GateSetting(5, 0.35, 0.3)),
    Arm("SHARED", burst=BURST, gate=GateSetting(None, 0.2, None, None, 0.05)),
    Arm("ADAPTED", burst=BURST, gate=GateSetting(4, 0.2, None, Adaptation(0.15, 0.5, 0.5, 1, 1))),
    Arm("SHED", shed=Shed(0.3, 2.0)),
    Arm("CUT", cut=Cut(0.5, RATE_PER_S / 4)),
    Arm("SLOW", tool_slowdown=ToolSlowdown(0.2, 0.5, 0.1)),
    Arm("ALLMISS", population=3, caching=False),
    Arm("STEPPED", step_cap=2),
    Arm("SHORT", horizon_s=0.6),
)
NAMES = [arm.name for arm in ARMS]


@pytest.fixture(scope="module")
def runs() -> dict[str, Driven]:
    """Every arm once, four of them in one loop: little comes on time, all must be right."""
    load_rules()

    async def together(arms: tuple[Arm, ...]) -> list[Driven]:
        return await asyncio.gather(*map(drive, arms))

    found = [driven for start in range(0, len(ARMS), 4) for driven in asyncio.run(together(ARMS[start : start + 4]))]
    return dict(zip(NAMES, found, strict=True))


def rows_of(driven: Driven) -> dict[str, list[Any]]:
    """Turns by session, in order."""
    grouped: dict[str, list[Any]] = {}
    for row in driven.turns.sort_values(["session", "turn"]).itertuples():
        grouped.setdefault(row.session, []).append(row)
    return grouped


@pytest.mark.parametrize("name", NAMES)
def test_the_verifier_s_checks_hold_for_every_arm(runs: dict[str, Driven], name: str) -> None:
    driven = runs[name]
    assert refuted(driven) == []
    found = driven.checks()
    # A stub does not tell its pool's use; a follow-up may not have finished before a burst.
    silent = {"arm_pool", "arm_caching"} if driven.context.arm.burst or name == "SHORT" else {"arm_pool"}
    assert {key for key, check in found.items() if check.outcome is Outcome.UNPROVABLE} <= silent
    assert (driven.turns.outcome == "ok").sum() > 1, "the stub answered"
    assert (driven.turns.outcome == "error").sum() == 0, set(driven.turns.detail)


@pytest.mark.parametrize("name", NAMES)
def test_every_turn_that_became_due_has_a_row_and_its_chain_is_exact(runs: dict[str, Driven], name: str) -> None:
    driven = runs[name]
    plan, arm, horizon_s = driven.context.plan, driven.context.arm, driven.context.horizon_s
    for session, rows in rows_of(driven).items():
        origin, _, index = session.partition("-")
        draw = plan.session(origin, int(index))
        assert [row.turn for row in rows] == list(range(1, len(rows) + 1))
        for before, after in pairwise(rows):
            tool_s = draw.tool_us[before.turn - 1] / MICROSECONDS
            if arm.tool_slowdown:
                tool_s += arm.tool_slowdown.added_s(before.done_s)
            assert after.planned_s == before.done_s + tool_s, "bit for bit"
        last = rows[-1]
        if last.outcome == "ok" and last.turn < draw.turns:
            assert last.done_s + draw.tool_us[last.turn - 1] / MICROSECONDS + 0.1 >= horizon_s
        assert len(rows) <= min(draw.turns, arm.step_cap or draw.turns)
        assert all(row.planned_s < horizon_s for row in rows)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "ALLMISS"])
def test_arrivals_are_the_plan_s(runs: dict[str, Driven], name: str) -> None:
    driven = runs[name]
    planned = [(f"{o}-{i}", o, t / MICROSECONDS) for t, o, i in driven.context.plan.arrivals()]
    sessions = driven.sessions
    assert list(zip(sessions.session, sessions.origin, sessions.arrival_s, strict=True)) == planned
    first = driven.turns[driven.turns.turn == 1].set_index("session").planned_s.to_dict()
    assert first == {session: arrival_s for session, _, arrival_s in planned}


def test_nothing_is_early(runs: dict[str, Driven]) -> None:
    for driven in runs.values():
        turns = driven.turns
        assert (turns.ready_s.dropna() >= turns.planned_s[turns.ready_s.notna()]).all()


def test_an_arm_s_own_horizon_ends_its_run(runs: dict[str, Driven]) -> None:
    turns = runs["SHORT"].turns
    moments = turns[["planned_s", "ready_s", "admitted_s", "submit_s", "first_token_s", "done_s"]]
    assert 0.3 < moments.max().max() < 0.6
    assert runs["PLAIN"].turns.done_s.max() > 0.6


def test_the_gates_held_some_sessions_back(runs: dict[str, Driven]) -> None:
    for name in ("CAPPED", "RESCUED", "SHARED", "ADAPTED"):
        assert runs[name].frames.gate.event.tolist()[0] == "engaged", name
    # Ten sessions at once before three slots; a slower machine only makes them wait longer.
    turns = runs["CAPPED"].turns
    waited = (turns.admitted_s - turns.ready_s > 0.005) | (turns.admitted_s.isna() & turns.ready_s.notna())
    assert waited.sum() >= 2


def test_prompts_carry_the_engine_s_own_output_ids(runs: dict[str, Driven]) -> None:
    driven = runs["PLAIN"]
    asked: dict[str, list[Any]] = {}
    for turn in driven.stub.turns:
        asked.setdefault(turn.headers["X-Session-Id"], []).append(turn)
    pairs = 0
    for session, rows in rows_of(driven).items():
        for number, (before, after) in enumerate(pairwise(asked.get(session, ()))):
            pairs += 1
            assert after.prompt[: len(before.prompt)] == before.prompt
            grown = after.prompt[len(before.prompt) :]
            assert grown[: WORKLOAD.output_tokens] == before.output
            assert len(grown) == WORKLOAD.output_tokens + WORKLOAD.tool_output_tokens
            assert len(after.prompt) == rows[number + 1].prompt_tokens
    assert pairs > 0
    assert all(0 <= token < 1000 for turn in driven.stub.turns for token in turn.prompt)
    assert all(turn.output_tokens == WORKLOAD.output_tokens for turn in driven.stub.turns)


def test_no_two_sessions_or_attempts_share_a_beginning() -> None:
    async def both() -> tuple[Driven, Driven]:
        arm, design = Arm("A"), design_of(Arm("A"), 0.5)
        return await drive(arm, design, "run/attempt-1"), await drive(arm, design, "run/attempt-2")

    first, second = asyncio.run(both())
    beginnings = [
        tuple(turn.prompt[:8])
        for driven in (first, second)
        for turn in driven.stub.turns
        if len(turn.prompt) == WORKLOAD.first_prompt_tokens
    ]
    assert len(beginnings) >= 4
    assert len(set(beginnings)) == len(beginnings)
    # The plan is the same: only the token ids differ.
    assert first.sessions.arrival_s.tolist() == second.sessions.arrival_s.tolist()


def test_an_answer_that_began_is_heard_out_and_stays_open() -> None:
    """At the horizon two answers have begun: they are open, and tell what was cached."""
    arm = Arm("POPULATED", population=2)
    workload = replace(WORKLOAD, turns=TruncatedGeometric(1000, 9), output_tokens=60, mean_tool_s=0.0)
    driven = asyncio.run(drive(arm, design_of(arm, 0.8, workload), output_token_s=0.008))
    open_turns = driven.turns[driven.turns.outcome == "open at horizon"]
    begun = open_turns[open_turns.first_token_s.notna()]
    assert len(begun) == 2
    assert begun.done_s.isna().all() and (begun.output_tokens == 0).all()
    assert begun.cached_tokens.notna().all(), "heard out"
    assert (begun.cached_tokens[begun.turn > 1] > 0).all()
    assert refuted(driven) == []
    # In a window that ends at the horizon nothing is unknown that began in it.
    readings = driven.readings(0.0, 0.8)
    for name in ("uncached_prefill_tokens_per_s", "outstanding", "turnover_s"):
        assert math.isfinite(readings[name]), name


def test_readings_are_known_in_a_window_that_ends_at_the_horizon(runs: dict[str, Driven]) -> None:
    known = ("uncached_prefill_tokens_per_s", "outstanding", "turns_per_s", "goodput_per_s", "delayed")
    of_followups = ("followup_hit_fraction", "reuse_fraction", "mean_prompt_tokens", "sojourn_s")
    for name in ("PLAIN", "BURST", "CAPPED", "SHARED", "SLOW"):
        readings = runs[name].readings(0.2, HORIZON_S)
        finished = readings["followups_finished"] > 0
        unknown = [r for r in (*known, *(of_followups if finished else ())) if not math.isfinite(readings[r])]
        assert unknown == [], name
        assert readings["followup_hit_fraction"] > 0.5 or not finished
    assert runs["PLAIN"].readings(0.2, HORIZON_S)["followups_finished"] > 0


def test_with_caching_off_nothing_is_reused(runs: dict[str, Driven]) -> None:
    driven = runs["ALLMISS"]
    assert driven.readings(0.2, HORIZON_S)["reuse_fraction"] == 0.0
    assert len(driven.sessions) > 3, "a session that ends is replaced"


def test_shed_sessions_never_reach_the_engine(runs: dict[str, Driven]) -> None:
    driven = runs["SHED"]
    refused = set(driven.sessions.session[driven.sessions.outcome == "refused"])
    assert refused == set(driven.sessions.session[driven.sessions.arrival_s >= 0.3])
    assert refused and not refused & {turn.headers["X-Session-Id"] for turn in driven.stub.turns}


def test_a_turn_that_fails_ends_its_session_and_is_not_sent_again() -> None:
    arm = Arm("FAILS", population=3)
    driven = asyncio.run(drive(arm, design_of(arm, 0.4), faults={Fault.CUT_LINE}, good_turns=5))
    failed = driven.turns[driven.turns.outcome == "error"]
    assert len(failed) > 2 and refuted(driven) == []
    assert set(driven.sessions.outcome[driven.sessions.session.isin(failed.session)]) == {"error"}
    assert failed.done_s.notna().all() and failed.detail.str.len().min() > 10
    sent = [(turn.headers["X-Session-Id"], len(turn.prompt)) for turn in driven.stub.turns]
    assert len(sent) == len(set(sent))


def test_what_a_guard_raises_ends_the_run_at_once() -> None:
    async def guard() -> None:
        await asyncio.sleep(0.2)
        raise RuntimeError("enough")

    arm = Arm("A", population=2)
    with pytest.raises(RuntimeError, match="enough"):
        asyncio.run(asyncio.wait_for(drive(arm, design_of(arm, 600.0), guards=(guard(),)), 10))


@pytest.mark.parametrize(
    "arm", [Arm("A"), Arm("SHED", shed=Shed(0.3, 2.0)), Arm("B", burst=BURST)], ids=lambda a: a.name
)
def test_a_client_that_stood_still_at_the_end_still_accounts_for_what_was_due(arm: Arm) -> None:
    async def stall() -> None:
        await asyncio.sleep(0.15)
        time.sleep(0.8)

    driven = asyncio.run(drive(arm, design_of(arm, 0.6), guards=(stall(),)))
    assert len(driven.sessions) == len(driven.context.plan.arrivals())
    assert driven.turns.ready_s.isna().any(), "some had no time to start"
    assert refuted(driven) == []
