"""Laws of scripted runs: conservation, an endless pool, the compiled core beside the interpreted one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelf.cells import CELLS, Cell, StepCosts
from registry.design import Adaptation, Arm, Burst, EnginePolicy, GateSetting
from registry.errors import TrapError
from registry.plan import Plan
from registry.scripted_workload import ScriptedWorkload
from registry.traces.description import InfiniteCache
from registry.traces.session_table import TraceTurn
from runners.simulated.run import simulate
from tests.core import interpreted
from tests.runners.script_support import scripted_workloads, scripts_of

BLOCK = 4
GATES = [
    None,
    GateSetting(3, 0.0, None),
    GateSetting(4, 5.0, None, Adaptation(3.0, 0.5, 0.5, 2, 1)),
    GateSetting(None, 0.0, None, None, 0.8),
]


@st.composite
def scripted_runs(draw: Any, chunk_tokens: int | None = None, endless: bool = False) -> tuple[Plan, Arm, Cell]:
    """A plan of arrivals or of a closed population that follow random scripts."""
    workload = draw(scripted_workloads(BLOCK))
    times = tuple(sorted(draw(st.lists(st.integers(0, 30_000_000), min_size=1, max_size=25))))
    chunk = chunk_tokens or draw(st.sampled_from([8, 32, 1024]))
    costs = StepCosts(0.25, draw(st.floats(1e-5, 1e-2)), 1e-6, draw(st.floats(1e-3, 5e-2)), 1e-5, chunk)
    pool = 10**6 if endless else workload.longest_turn_tokens() + BLOCK + draw(st.integers(0, 300))
    cell = Cell("any", "", "", "", "", pool, 1, costs, (), draw(st.sampled_from(["mixed", "prefill-first"])))
    population = None if endless else draw(st.sampled_from([None, None, 3]))
    arm = Arm(
        "ANY",
        population=population,
        engine=EnginePolicy(draw(st.sampled_from(["fcfs"] * 2 + ["least-attained-service"]))),
    )
    if population is None and not endless:
        arm = replace(arm, gate=draw(st.sampled_from(GATES)), burst=draw(st.sampled_from([None, Burst(6, 5.0, 1.0)])))
    burst = (5_000_000,) * 3 if arm.burst else ()
    key = bytes([draw(st.integers(0, 255))]) * 32
    base = () if population else times
    return Plan(key, workload, 40_000_000, base, burst, population or 0, draw(st.sampled_from([None, 2]))), arm, cell


def served(plan: Plan, arm: Arm, cell: Cell) -> tuple[pd.DataFrame, list[int]]:
    """The turns in the order in which they were admitted, and what a cache
    that keeps every block would have reused of each, in whole blocks.
    """
    assert isinstance(plan.workload, ScriptedWorkload)
    scripts = plan.workload.scripts
    turns = simulate(plan, arm, cell)["turns"].to_pandas().dropna(subset="start_s")
    firsts = {origin: plan.draws(origin, len(turns)).script for origin in ("base", "burst", "population")}
    own = {session: 10**6 * number for number, session in enumerate(dict.fromkeys(turns.session), 1)}
    turns = turns.sort_values(["start_s", "submit_s"], kind="stable")
    cache, best = InfiniteCache(), []
    for row in turns.itertuples():
        first = firsts[row.origin]
        assert first is not None
        at = int(first[int(row.session.split("-")[1])]) + row.turn - 1
        ids = scripts.blocks[scripts.first_block[at] : scripts.first_block[at + 1]].tolist()
        blocks = tuple(block if block < scripts.shared_blocks else own[row.session] + block for block in ids)
        turn = TraceTurn(row.session, None, row.turn, None, None, True, row.prompt_tokens, 1, blocks, 0, BLOCK, 0)
        best.append(min(cache.reused(turn) // BLOCK, (row.prompt_tokens - 1) // BLOCK) * BLOCK)
    return turns, best


@given(scripted_runs(chunk_tokens=10**6, endless=True))
@settings(max_examples=50, deadline=None)
def test_an_endless_pool_reuses_what_a_cache_of_every_block_would(run: tuple[Plan, Arm, Cell]) -> None:
    plan, arm, cell = run
    turns, best = served(plan, replace(arm, engine=EnginePolicy()), cell)
    assert turns.cached_tokens.tolist() == best


@given(scripted_runs())
@settings(max_examples=50, deadline=None)
def test_no_pool_reuses_more_and_none_is_ever_overfull(run: tuple[Plan, Arm, Cell]) -> None:
    plan, arm, cell = run
    tables = simulate(*run)
    engine, turns = tables["engine"].to_pandas(), tables["turns"].to_pandas()
    used = engine.running_tokens + engine.idle_cached_tokens
    assert (used <= cell.pool_tokens).all() and (engine[["running_tokens", "idle_cached_tokens"]] >= 0).all().all()
    cached = turns.cached_tokens.dropna()
    assert ((cached >= 0) & (cached % BLOCK == 0)).all() and (cached < turns.prompt_tokens[cached.index]).all()
    ordered, best = served(plan, replace(arm, engine=EnginePolicy()), cell)
    assert (ordered.cached_tokens.to_numpy() <= np.array(best)).all()
    ok = turns[turns.outcome == "ok"]
    assert (ok.output_tokens > 0).all() and (turns[turns.outcome != "ok"].output_tokens == 0).all()


@given(scripted_runs())
@settings(max_examples=25, deadline=None)
def test_the_compiled_core_equals_the_interpreted_one(run: tuple[Plan, Arm, Cell]) -> None:
    slow = interpreted()["run"].simulate(*run)
    for name, table in simulate(*run).items():
        assert table.equals(slow[name]), name


def test_turns_are_the_scripts_and_waits_come_between_them() -> None:
    turns = [(9, 3, 0, [6]), (21, 5, 2_000_000, [6, 7]), (7, 2, 500_000, [6])]
    workload = ScriptedWorkload.following(scripts_of([turns]))
    plan = Plan(bytes(32), workload, 60_000_000, (1_000_000,), (), 0)
    rows = simulate(plan, Arm("ANY"), CELLS["sglang-300k"])["turns"].to_pylist()
    assert [(r["prompt_tokens"], r["output_tokens"]) for r in rows] == [(9, 3), (21, 5), (7, 2)]
    assert [r["planned_s"] for r in rows] == [1.0, rows[0]["done_s"] + 2.0, rows[1]["done_s"] + 0.5]
    assert [r["reusable_tokens"] for r in rows] == [0, 4, 4]
    assert [r["cached_tokens"] for r in rows] == [0, 4, 4]


def test_a_shared_beginning_is_hit_by_a_first_turn_and_an_own_one_is_not() -> None:
    workload = ScriptedWorkload.following(scripts_of([[(17, 2, 0, [0, 1, 6, 7])]]))
    plan = Plan(bytes(32), workload, 60_000_000, (0, 30_000_000), (), 0)
    rows = simulate(plan, Arm("ANY"), CELLS["vllm-300k"])["turns"].to_pylist()
    assert [r["cached_tokens"] for r in rows] == [0, 8]


@pytest.mark.parametrize("policy", [EnginePolicy(pin_s=1.0), EnginePolicy(eviction="longest-wait")])
def test_policies_over_whole_contexts_are_refused(policy: EnginePolicy) -> None:
    plan = Plan(bytes(32), ScriptedWorkload.following(scripts_of([[(9, 1, 0, [6])]])), 10**6, (0,), (), 0)
    with pytest.raises(TrapError, match="blocks that sessions share"):
        simulate(plan, Arm("ANY", engine=policy), CELLS["sglang-300k"])


def test_a_pool_of_too_many_blocks_is_refused() -> None:
    plan = Plan(bytes(32), ScriptedWorkload.following(scripts_of([[(9, 1, 0, [6])]])), 10**6, (0,), (), 0)
    with pytest.raises(TrapError, match="too many blocks"):
        simulate(plan, Arm("ANY"), replace(CELLS["sglang-300k"], pool_tokens=10**9))


def test_a_population_that_outgrows_its_room_goes_on_as_if_it_had_not(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [[(17, 2, 0, [0, 1, 6, 7]), (30, 3, 900, [0, 1, 6, 7, 8])], [(12, 1, 0, [0, 3]), (18, 2, 5, [0, 3, 9])]]
    workload = ScriptedWorkload.following(scripts_of(turns))
    plan, arm = Plan(bytes(32), workload, 60_000_000, (), (), 5), Arm("ANY", population=5)
    cell = replace(CELLS["vllm-300k"], pool_tokens=160)
    roomy = simulate(plan, arm, cell)
    monkeypatch.setattr("runners.simulated.run._SPARE_SESSIONS", 1)
    narrow = simulate(plan, arm, cell)
    assert len(roomy["sessions"]) > 100
    assert all(table.equals(narrow[name]) for name, table in roomy.items())
