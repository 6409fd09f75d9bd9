"""Full simulated runs: their records, the trap and its cure."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from artifacts.records import stamped
from modelf.cells import CELLS
from modelf.workload import STANDARD_WORKLOAD
from registry.design import Arm, Burst, Design, GateSetting, Seeds
from registry.plan import Plan, make_plan, plan_key
from runners.simulated.run import simulate

CELL = CELLS["sglang-300k"]
LAMBDA_REF_PER_S = 0.0720
BURST = Arm("BURST", Burst(200, 1200.0, 60.0))
NOBURST = Arm("NOBURST")
CAPPED = replace(BURST, name="CAPPED", gate=GateSetting(20, 0.0, None))
RESCUE = replace(BURST, name="RESCUE", gate=GateSetting(20, 1800.0, 300.0))
ALL_MISS = Arm("ALL_MISS", population=32, caching=False)
TIMES = ("planned_s", "ready_s", "admitted_s", "submit_s", "start_s", "first_token_s", "done_s")


def plan_of(arm: Arm, rate: float | None = 1.35, seed: int = 0, horizon_s: float = 8700.0) -> Plan:
    design = Design(horizon_s, STANDARD_WORKLOAD, (), (arm,), (), Seeds((seed,), "literal"))
    lambda_per_s = None if rate is None else rate * LAMBDA_REF_PER_S
    return make_plan(plan_key("", 0, "", seed), design, arm, lambda_per_s)


@pytest.fixture(scope="module")
def runs() -> dict[str, dict[str, pa.Table]]:
    """One full run an arm, seed 0, 1.35 lambda_ref."""
    arms = (BURST, NOBURST, CAPPED, RESCUE)
    tables = {arm.name: simulate(plan_of(arm), arm, CELL) for arm in arms}
    tables["ALL_MISS"] = simulate(plan_of(ALL_MISS, None), ALL_MISS, CELL)
    return tables


def floats(table: pa.Table, name: str) -> NDArray[np.float64]:
    """A column as floats, null as NaN."""
    return np.asarray(table[name].to_pandas(), dtype=np.float64)


def followup_hits(turns: pa.Table, start_s: float, end_s: float) -> NDArray[np.bool_]:
    """Full hit or not, of each follow-up finished in [start_s, end_s)."""
    done_s = floats(turns, "done_s")
    chosen = (floats(turns, "turn") > 1) & (done_s >= start_s) & (done_s < end_s)
    best = np.minimum(floats(turns, "reusable_tokens"), floats(turns, "prompt_tokens") - 1)
    hits: NDArray[np.bool_] = (floats(turns, "cached_tokens") >= best)[chosen]
    return hits


def ipc_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def test_tables_have_the_registered_schemas(runs: dict[str, dict[str, pa.Table]]) -> None:
    for tables in runs.values():
        for name, table in tables.items():
            assert table.schema.equals(stamped(name), check_metadata=True)
            table.validate(full=True)
            for field in table.schema:
                assert field.nullable or table[field.name].null_count == 0


def test_causes_come_before_effects(runs: dict[str, dict[str, pa.Table]]) -> None:
    for tables in runs.values():
        turns = tables["turns"]
        for earlier, later in pairwise(TIMES):
            before, after = floats(turns, earlier), floats(turns, later)
            known = ~np.isnan(after)
            assert (before[known] <= after[known]).all()
        assert (np.diff(floats(turns, "planned_s")) >= 0).all()
        assert (floats(turns, "planned_s") < 8700.0).all()
        assert np.nanmax(floats(turns, "done_s")) < 8700.0


def test_turns_follow_the_plan(runs: dict[str, dict[str, pa.Table]]) -> None:
    plan = plan_of(BURST)
    rows: dict[str, list[dict[str, object]]] = {}
    for row in runs["BURST"]["turns"].to_pylist():
        rows.setdefault(row["session"], []).append(row)
    sessions = runs["BURST"]["sessions"].to_pylist()
    arrivals = [(f"{origin}-{i}", time_us / 1e6) for time_us, origin, i in plan.arrivals()]
    assert [(s["session"], s["arrival_s"]) for s in sessions] == arrivals
    for session in sessions:
        origin, _, index = session["session"].partition("-")
        draw = plan.session(origin, int(index))
        assert session["planned_turns"] == draw.turns
        turns = rows[session["session"]]
        assert [row["turn"] for row in turns] == list(range(1, len(turns) + 1))
        assert session["turns_done"] == sum(row["outcome"] == "ok" for row in turns)
        for row, following, tool_us in zip(turns, turns[1:], draw.tool_us, strict=False):
            assert following["planned_s"] == row["done_s"] + tool_us / 1e6  # type: ignore[operator]
        if session["outcome"] == "ok":
            assert session["turns_done"] == draw.turns
            assert session["end_s"] == turns[-1]["done_s"]
        else:
            assert (session["outcome"], session["end_s"]) == ("open at horizon", None)


def test_tokens_are_conserved_once_everything_is_over() -> None:
    short = plan_of(NOBURST, 1.35, 4, horizon_s=600.0)
    plan = replace(short, horizon_us=8_000_000_000)
    tables = simulate(plan, NOBURST, CELL)
    turns, last = tables["turns"], tables["engine"].slice(7999).to_pylist()[0]
    assert set(turns["outcome"].to_pylist()) == {"ok"}
    uncached = floats(turns, "prompt_tokens").sum() - floats(turns, "cached_tokens").sum()
    assert last["uncached_prefill_tokens_total"] == uncached
    assert last["output_tokens_total"] == floats(turns, "output_tokens").sum()
    assert (last["running_requests"], last["waiting_requests"], last["running_tokens"]) == (0, 0, 0)


def test_the_pool_is_never_exceeded(runs: dict[str, dict[str, pa.Table]]) -> None:
    for tables in runs.values():
        engine = tables["engine"]
        used = floats(engine, "running_tokens") + floats(engine, "idle_cached_tokens")
        assert used.max() <= CELL.pool_tokens
        assert (np.diff(floats(engine, "output_tokens_total")) >= 0).all()
        assert (np.diff(floats(engine, "uncached_prefill_tokens_total")) >= 0).all()


def test_the_same_arguments_give_the_same_bytes(runs: dict[str, dict[str, pa.Table]]) -> None:
    again = simulate(plan_of(CAPPED), CAPPED, CELL)
    for name, table in again.items():
        assert ipc_bytes(table) == ipc_bytes(runs["CAPPED"][name])


def test_caching_off_never_hits(runs: dict[str, dict[str, pa.Table]]) -> None:
    tables = runs["ALL_MISS"]
    assert set(tables["turns"]["cached_tokens"].to_pylist()) <= {0, None}
    assert floats(tables["engine"], "idle_cached_tokens").max() == 0
    sessions = tables["sessions"].to_pylist()
    assert [s["session"] for s in sessions] == [f"population-{i}" for i in range(len(sessions))]
    assert sum(s["end_s"] is None for s in sessions) == 32
    ends = sorted(s["end_s"] for s in sessions if s["end_s"] is not None)
    assert [s["arrival_s"] for s in sessions] == [0.0] * 32 + ends


def test_a_burst_traps_for_good_and_nothing_else_does(
    runs: dict[str, dict[str, pa.Table]],
) -> None:
    assert not followup_hits(runs["BURST"]["turns"], 1300.0, 8700.0).any()
    assert followup_hits(runs["NOBURST"]["turns"], 0.0, 8700.0).mean() > 0.99
    assert followup_hits(runs["CAPPED"]["turns"], 5700.0, 8700.0).mean() > 0.99


def test_a_cap_in_an_established_trap_rescues_and_comes_off(
    runs: dict[str, dict[str, pa.Table]],
) -> None:
    gate, turns = runs["RESCUE"]["gate"].to_pylist(), runs["RESCUE"]["turns"]
    assert gate[0] == {"time_s": 1800.0, "event": "engaged", "session": None}
    assert gate[-1]["event"] == "released"
    assert not followup_hits(turns, 1300.0, 1800.0).any()
    assert followup_hits(turns, gate[-1]["time_s"], 8700.0).mean() > 0.99


def test_capped_runs_hold_at_most_cap_sessions(runs: dict[str, dict[str, pa.Table]]) -> None:
    ends = {row["session"]: row["end_s"] for row in runs["CAPPED"]["sessions"].to_pylist()}
    moves = []
    for row in runs["CAPPED"]["gate"].to_pylist():
        assert row["event"] in ("engaged", "admitted")
        if row["event"] == "admitted":
            moves.append((row["time_s"], 1))
            if ends[row["session"]] is not None:
                moves.append((ends[row["session"]], -1))
    holding = np.cumsum([change for _, change in sorted(moves)])
    assert holding.max() == 20


def test_open_turns_keep_only_the_times_that_had_come(
    runs: dict[str, dict[str, pa.Table]],
) -> None:
    for tables in runs.values():
        rows = [r for r in tables["turns"].to_pylist() if r["outcome"] == "open at horizon"]
        for row in rows:
            assert row["output_tokens"] == 0
            assert row["done_s"] is None
            assert (row["cached_tokens"] is None) == (row["start_s"] is None)
    stages = {(r["start_s"] is None, r["first_token_s"] is None) for r in rows}
    assert (False, True) in stages or (False, False) in stages
