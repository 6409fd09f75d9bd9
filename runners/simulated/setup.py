"""From a plan, an arm and a cell to the records that the core works on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from modelf.cells import Cell, StepCosts
from registry.design import Arm, EnginePolicy, GateSetting
from registry.plan import MICROSECONDS, Plan
from registry.scripted_workload import unit_tokens_of
from runners.simulated.engine import ARRIVAL_ORDER, LEAST_SERVICE
from runners.simulated.loop import OPEN
from runners.simulated.pool import LATEST_USE, LEAST_RECENT, NOBODY
from runners.simulated.scripted import block_table, engine_values, script_columns, scripts_of
from runners.simulated.state import (
    CONTEXT,
    COSTS,
    ENGINE,
    GATE,
    GATE_EVENT,
    HEAP,
    LOOP,
    SAMPLE,
    SESSION,
    SLOT,
    TURN,
    Run,
    filled,
    numbers,
    table,
)

ORIGINS = ("base", "burst", "population")

_ORDERS = {"fcfs": ARRIVAL_ORDER, "least-attained-service": LEAST_SERVICE}
_EVICTIONS = {"lru": LEAST_RECENT, "longest-wait": LATEST_USE}
_NEVER = math.inf


def prepare(plan: Plan, arm: Arm, cell: Cell, costs: StepCosts, population: int) -> Run:
    """The records of a run before its first event.

    `population`: for how many sessions of a closed population there is room.
    """
    arrivals_s, turns, first_tool, tool_us = _sessions(plan, population)
    scripts = scripts_of(plan)
    count, rows = len(turns), int(turns.sum())
    planned = plan.population or count
    horizon_s = plan.horizon_us / MICROSECONDS
    sessions = table(
        SESSION, count, end_s=math.nan, row=NOBODY, outcome=OPEN, older=NOBODY, newer=NOBODY, next_waiting=NOBODY
    )
    filled(sessions, arrival_s=arrivals_s, turns=turns, first_tool=first_tool)
    filled(sessions, closed=np.full(count, int(bool(plan.population))))
    never = dict.fromkeys(("admitted_s", "start_s", "first_token_s", "done_s"), math.nan)
    columns = {"prompt_tokens": np.array(plan.workload.prompts())}
    if scripts:
        columns = script_columns(scripts, len(tool_us))
        tool_us = np.concatenate([tool_us, scripts.blocks])
    listed = len(columns["prompt_tokens"])
    slots = table(SLOT, max(count, unit_tokens_of(plan.workload, cell), listed))
    filled(slots[:listed], **columns)
    shared = engine_values(scripts, cell.pool_tokens) if scripts else {}
    return Run(
        loop=table(LOOP, 1, horizon_s=horizon_s, planned=planned, sessions=planned, **_loop(plan, arm)),
        engine=table(ENGINE, 1, **(_engine(arm.engine, cell) | shared), caching=int(arm.caching)),
        costs=table(COSTS, 1, **{name: getattr(costs, name) for name in COSTS.names or ()}),
        gate=table(GATE, 1, **_gate(arm.gate, cell.pool_tokens)),
        sessions=sessions,
        turns=table(TURN, rows, planned_s=math.nan, outcome=OPEN, cached_tokens=-1, **never),
        tool_us=numbers(tool_us),
        slots=slots,
        events=table(HEAP, count + 2),
        waiting=table(HEAP, count + 2),
        finishing=table(HEAP, count + 2),
        contexts=block_table(scripts, cell.pool_tokens) if scripts else table(CONTEXT, 2 * count + 3),
        samples=table(SAMPLE, math.ceil(horizon_s)),
        gate_log=table(GATE_EVENT, _log_room(arm, count, rows)),
    )


def _sessions(plan: Plan, population: int) -> tuple[Any, Any, Any, Any]:
    """Arrival (s), turn count and first tool time of every session, in order
    of arrival, and all tool times (us). Base goes before burst at one instant.
    """
    if plan.population:
        draws = plan.draws("population", population)
        return np.zeros(population), draws.turns[:population], draws.first_tool[:population], draws.tool_us
    base, burst = plan.draws("base", len(plan.base_arrivals_us)), plan.draws("burst", len(plan.burst_arrivals_us))
    order, times_us = arrival_order(plan)
    bases = len(plan.base_arrivals_us)
    turns = np.concatenate([base.turns[:bases], burst.turns[: len(order) - bases]])
    # Scripts' waits are the same for both.
    own = base.tool_us if base.script is None else base.tool_us[:0]
    first = np.concatenate([base.first_tool[:bases], burst.first_tool[: len(order) - bases] + len(own)])
    tool_us = np.concatenate([own, burst.tool_us])
    return times_us / MICROSECONDS, turns[order], first[order], tool_us


def arrival_order(plan: Plan) -> tuple[Any, Any]:
    """Indexes into base then burst sessions as they arrive, and when (us)."""
    times_us = np.asarray([*plan.base_arrivals_us, *plan.burst_arrivals_us], dtype=np.int64)
    order = np.argsort(times_us, kind="stable")
    return order, times_us[order]


def _loop(plan: Plan, arm: Arm) -> dict[str, float]:
    shed, slow, gate = arm.shed, arm.tool_slowdown, arm.gate
    adaptive = gate.adaptation if gate else None
    return {
        "gated": int(gate is not None),
        "output_tokens": plan.workload.output_tokens,
        "shed_start_s": shed.start_s if shed else _NEVER,
        "shed_end_s": shed.start_s + shed.duration_s if shed else _NEVER,
        "slow_start_s": slow.start_s if slow else _NEVER,
        "slow_end_s": slow.start_s + slow.duration_s if slow else _NEVER,
        "slow_extra_s": slow.extra_s if slow else 0.0,
        "next_tick_s": gate.engage_s + adaptive.interval_s if gate and adaptive else _NEVER,
    }


def _engine(policy: EnginePolicy, cell: Cell) -> dict[str, float]:
    nobody = ("partial", "idle_oldest", "idle_newest", "pinned_oldest", "pinned_newest")
    return {
        **dict.fromkeys(nobody, NOBODY),
        "next_s": _NEVER,
        "pin_s": policy.pin_s,
        "order": _ORDERS[policy.order],
        "eviction": _EVICTIONS[policy.eviction],
        "mixed": int(cell.scheduler == "mixed"),
        "block_tokens": cell.cache_block_tokens,
        "unit_tokens": cell.unit_tokens,
        "size_units": cell.pool_units,
    }


def gate_values(setting: GateSetting, pool_tokens: int) -> dict[str, float]:
    """The gate's record: its limit in sessions or tokens, and when."""
    adaptation = setting.adaptation
    limit = setting.cap if setting.cap is not None else int((setting.pool_share or 0.0) * pool_tokens)
    return {
        **dict.fromkeys(("paused_first", "paused_last", "new_first", "new_last"), NOBODY),
        "engage_s": setting.engage_s,
        "empty_since_s": setting.engage_s,
        "release_after_s": _NEVER if setting.release_after_s is None else setting.release_after_s,
        "limit": limit,
        "unit_tokens": int(setting.cap is None),
        "interval_s": adaptation.interval_s if adaptation else _NEVER,
        "low_hit": adaptation.low_hit if adaptation else 0.0,
        "decrease": adaptation.decrease if adaptation else 1.0,
        "increase": adaptation.increase if adaptation else 0,
        "least": adaptation.least_cap if adaptation else 1,
    }


def _gate(setting: GateSetting | None, pool_tokens: int) -> dict[str, float]:
    return gate_values(setting or GateSetting(1, _NEVER, None), pool_tokens)


def _log_room(arm: Arm, sessions: int, rows: int) -> int:
    """A cap that stays gives a session at most two events; others two a turn."""
    gate = arm.gate
    moves = gate is not None and (gate.adaptation is not None or gate.cap is None)
    return 4 + sessions * 3 + (2 * rows if moves else 0)
