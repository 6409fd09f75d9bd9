"""Laws of the simulated engine on random workloads, small pools and any arm.

The compiled core and the interpreted one must agree in every bit.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from modelf.cells import Cell, StepCosts
from modelf.turn_law import TruncatedGeometric
from modelf.workload import Workload
from registry.design import Adaptation, Arm, Burst, Design, EnginePolicy, GateSetting, Seeds, Shed, ToolSlowdown
from registry.plan import Plan, make_plan
from runners.simulated.run import simulate
from tests.core import interpreted

HORIZON_S = 120.0
COSTS = st.builds(
    StepCosts,
    # A closed population of turns that cost nothing would never reach the horizon.
    prefill_request_s=st.sampled_from([0.01, 0.05]),
    prefill_token_s=st.floats(1e-5, 1e-3),
    prefill_pair_s=st.sampled_from([0.0, 1e-8, 1e-6]),
    decode_step_s=st.floats(1e-3, 5e-2),
    decode_kv_token_s=st.sampled_from([0.0, 1e-7, 1e-5]),
    chunk_tokens=st.sampled_from([16, 100, 8192]),
)
WORKLOADS = st.builds(
    Workload,
    turns=st.builds(TruncatedGeometric, mean_turns=st.integers(1, 8), max_turns=st.integers(1, 12)),
    first_prompt_tokens=st.integers(1, 300),
    output_tokens=st.integers(1, 40),
    tool_output_tokens=st.integers(1, 120),
    mean_tool_s=st.sampled_from([0.0, 0.5, 5.0]),
)
ADAPTATION = Adaptation(interval_s=7.0, low_hit=0.5, decrease=0.5, increase=2, least_cap=1)
GATES = st.sampled_from(
    [
        None,
        GateSetting(3, 0.0, None),
        GateSetting(2, 40.0, 10.0),
        GateSetting(6, 20.0, None, ADAPTATION),
        GateSetting(None, 30.0, None, None, 0.8),
    ]
)
POLICIES = st.sampled_from(
    [
        EnginePolicy(),
        EnginePolicy(order="least-attained-service"),
        EnginePolicy(eviction="longest-wait"),
        EnginePolicy(pin_s=2.0),
    ]
)


@st.composite
def runs(draw: Any) -> tuple[Plan, Arm, Cell]:
    """A plan, an arm and a cell whose pool holds a few of its turns."""
    workload = draw(WORKLOADS)
    scheduler, cache = draw(st.sampled_from(["prefill-first", "mixed"])), draw(st.sampled_from(["token", "block"]))
    block = draw(st.sampled_from([1, 4, 16]))
    pool = workload.longest_turn_tokens() + block + draw(st.integers(0, 3000))
    cell = Cell("any", "", "", "", "", pool, block, draw(COSTS), (), scheduler, f"{cache}-lru")
    population = draw(st.sampled_from([None, None, None, 1, 9]))
    arm = Arm("ANY", engine=draw(POLICIES), caching=draw(st.sampled_from([True, True, False])), population=population)
    if population is None:
        arm = replace(
            arm,
            burst=draw(st.sampled_from([None, Burst(20, 30.0, 5.0)])),
            gate=draw(GATES),
            shed=draw(st.sampled_from([None, Shed(50.0, 20.0)])),
            tool_slowdown=draw(st.sampled_from([None, ToolSlowdown(10.0, 60.0, 3.0)])),
        )
    design = Design(HORIZON_S, workload, (1.0,), (arm,), (), Seeds((0,), "literal"))
    rate = None if population else draw(st.floats(0.05, 1.5))
    return make_plan(draw(st.binary(min_size=32, max_size=32)), design, arm, rate), arm, cell


def columns(tables: dict[str, pa.Table]) -> dict[str, dict[str, list[Any]]]:
    return {name: table.to_pydict() for name, table in tables.items()}


@given(runs())
@settings(max_examples=30, deadline=None)
def test_compiled_and_interpreted_runs_agree_to_the_bit(run: tuple[Plan, Arm, Cell]) -> None:
    assert columns(simulate(*run)) == columns(interpreted()["run"].simulate(*run))


@given(runs())
@settings(max_examples=60, deadline=None)
def test_no_turn_is_lost_and_every_token_is_counted(run: tuple[Plan, Arm, Cell]) -> None:
    plan, arm, cell = run
    tables = simulate(*run)
    turns, sessions = tables["turns"].to_pandas(), tables["sessions"].to_pandas()
    done = turns[turns.outcome == "ok"].groupby("session").size()
    assert (done.reindex(sessions.session, fill_value=0).to_numpy() == sessions.turns_done.to_numpy()).all()
    ended = sessions.outcome == "ok"
    assert (sessions.turns_done[ended] == sessions.planned_turns[ended]).all()
    if not arm.population:
        assert len(sessions) == len(plan.arrivals())
    else:
        assert (~ended).sum() == arm.population
    for name, group in turns.groupby("session"):
        assert list(group.turn) == list(range(1, len(group) + 1)), name
    reuse = turns.cached_tokens.dropna()
    assert (reuse % cell.cache_block_tokens == 0).all()
    assert (reuse <= turns.prompt_tokens[reuse.index] - 1).all()
    if not arm.caching:
        assert (reuse == 0).all()


@given(runs())
@settings(max_examples=60, deadline=None)
def test_the_pool_is_never_overfull_and_times_run_forwards(run: tuple[Plan, Arm, Cell]) -> None:
    _, _, cell = run
    tables = simulate(*run)
    engine, turns = tables["engine"].to_pandas(), tables["turns"].to_pandas()
    used = engine.running_tokens + engine.idle_cached_tokens
    assert (used <= cell.pool_tokens).all()
    assert (engine[["running_tokens", "idle_cached_tokens"]] >= 0).all().all()
    for counter in ("uncached_prefill_tokens_total", "output_tokens_total"):
        assert engine[counter].is_monotonic_increasing
    for earlier, later in pairwise(("planned_s", "admitted_s", "start_s", "first_token_s", "done_s")):
        both = turns[[earlier, later]].dropna()
        assert (both[earlier] <= both[later]).all(), (earlier, later)


@given(runs())
@settings(max_examples=60, deadline=None)
def test_turns_start_in_the_order_in_which_they_were_submitted(run: tuple[Plan, Arm, Cell]) -> None:
    plan, arm, cell = run
    turns = simulate(plan, replace(arm, engine=EnginePolicy()), cell)["turns"].to_pandas()
    started = turns.dropna(subset="start_s").sort_values(["start_s", "submit_s"])
    assert np.all(np.diff(started.submit_s.to_numpy()) >= 0)
