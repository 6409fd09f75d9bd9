"""The load generator on session scripts: equal ids are equal tokens, and nothing else is."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.design import Arm, Burst, GateSetting
from registry.plan import Plan, SessionDraw, plan_key
from registry.scripted_workload import ScriptedWorkload
from runners.load.client_gate import load_rules
from runners.load.conversation import conversation_of
from runners.load.token_ids import TokenSource
from tests.engines.sglang_stub import SGLangStub
from tests.runners.load_support import Driven, design_of, drive, refuted
from tests.runners.script_support import STEP_US, scripted_workloads, scripts_of
from verifier.turn_sizes import session_number

STEMMED = [(13, 2, 0, [0, 1, 6]), (21, 3, STEP_US, [0, 1, 6, 7, 8]), (15, 2, STEP_US, [0, 1, 6])]
SHRUNK = [(17, 1, 0, [0, 1, 9, 10]), (9, 4, STEP_US, [0, 1]), (30, 2, STEP_US, [0, 1, 11, 12, 13, 14, 15])]
ALONE = [(10, 2, 0, [16, 17])]
WORKLOAD = ScriptedWorkload.following(scripts_of([STEMMED, SHRUNK, ALONE], shared=2))
ARMS = (
    Arm("PLAIN"),
    Arm("CAPPED", burst=Burst(8, 0.3, 0.1), gate=GateSetting(3, 0.0, None)),
    Arm("POPULATION", population=3),
)


@pytest.fixture(scope="module")
def runs() -> dict[str, Driven]:
    load_rules()

    async def together() -> list[Driven]:
        design = design_of(ARMS[0], workload=WORKLOAD)
        on_sglang = drive(ARMS[0], design, kind=SGLangStub)
        return await asyncio.gather(*(drive(arm, design_of(arm, workload=WORKLOAD)) for arm in ARMS), on_sglang)

    return dict(zip(("PLAIN", "CAPPED", "POPULATION", "SGLANG"), asyncio.run(together()), strict=True))


def script_row(driven: Driven, session: str) -> int:
    draw = driven.context.plan.session(session.partition("-")[0], session_number(session))
    assert draw.script_row is not None
    return draw.script_row


@pytest.mark.parametrize("name", ["PLAIN", "CAPPED", "POPULATION", "SGLANG"])
def test_the_verifier_s_checks_hold(runs: dict[str, Driven], name: str) -> None:
    driven = runs[name]
    assert refuted(driven) == []
    assert (driven.turns.outcome == "ok").sum() > 3
    assert (driven.turns.outcome == "error").sum() == 0, set(driven.turns.detail)


@pytest.mark.parametrize("name", ["PLAIN", "SGLANG"])
def test_turns_are_the_script_s_and_hit_what_was_there(runs: dict[str, Driven], name: str) -> None:
    driven, scripts = runs[name], WORKLOAD.scripts
    done = driven.turns[driven.turns.outcome == "ok"]
    for row in done.itertuples():
        at = script_row(driven, row.session) + row.turn - 1
        assert row.prompt_tokens == scripts.prompt_tokens[at] and row.output_tokens == scripts.output_tokens[at]
        # The pool holds everything: what the last prompt began with is there, and no more than whole blocks.
        assert scripts.reusable_tokens[at] <= row.cached_tokens <= (row.prompt_tokens - 1) // 4 * 4
    stemmed = done[(done.turn == 1) & (done.cached_tokens == 8)]
    assert len(stemmed), "a first turn hits what other sessions left"


def asked_by(driven: Driven) -> dict[str, list[Any]]:
    asked: dict[str, list[Any]] = {}
    for turn in driven.stub.turns:
        asked.setdefault(turn.headers["X-Session-Id"], []).append(turn)
    return asked


def test_what_the_engine_generated_is_discarded(runs: dict[str, Driven]) -> None:
    pairs = 0
    for turns in asked_by(runs["PLAIN"]).values():
        for before, after in pairwise(turns):
            pairs += 1
            place = len(before.prompt)
            assert after.prompt[place : place + len(before.output)] != before.output
    assert pairs


def prompts_of(workload: ScriptedWorkload, script: int, session: str, stream: str = "run/attempt-1") -> list[list[int]]:
    """All prompts of a session that follows a script."""
    scripts = workload.scripts
    first, turns = int(scripts.first_turn[script]), int(scripts.turns[script])
    plan = Plan(plan_key("", 0, "", 0), workload, 10**6, (), (), 1)
    conversation = conversation_of(plan, TokenSource(plan.key, stream, 50_000), session, SessionDraw(turns, (), first))
    return [[int(token) for token in conversation.prompt(turn, ()).split(b",")] for turn in range(1, turns + 1)]


def common(one: list[int], other: list[int]) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@given(scripted_workloads(), st.data())
@settings(max_examples=60, deadline=None)
def test_prompts_share_the_blocks_whose_ids_they_share(workload: ScriptedWorkload, data: Any) -> None:
    scripts = workload.scripts
    chosen = st.integers(0, len(scripts.turns) - 1)
    one, other = data.draw(chosen), data.draw(chosen)
    same = data.draw(st.booleans()) and one == other
    mine = prompts_of(workload, one, "base-0")
    others = mine if same else prompts_of(workload, other, "base-1")
    for i, a in enumerate(mine):
        for j, b in enumerate(others):
            if same and i == j:
                continue
            rows = (int(scripts.first_turn[one]) + i, int(scripts.first_turn[other]) + j)
            ids = [scripts.blocks[scripts.first_block[row] : scripts.first_block[row + 1]].tolist() for row in rows]
            shared = [x if same or x < scripts.shared_blocks else -1 for x in ids[0]]
            blocks = common(shared, ids[1])
            # Two of 50,000 tokens may be the same by chance.
            assert 4 * blocks <= common(a, b) <= 4 * blocks + 1
            assert len(a) == scripts.prompt_tokens[rows[0]]


def test_another_attempt_shares_nothing() -> None:
    first, second = (prompts_of(WORKLOAD, 0, "base-0", f"run/attempt-{n}") for n in (1, 2))
    assert common(first[0], second[0]) <= 1
    assert prompts_of(WORKLOAD, 0, "base-0") == first
