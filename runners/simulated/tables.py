"""From the core's records after a run to the four record tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from artifacts.records import GATE_EVENTS, TURN_OUTCOMES, stamped
from registry.plan import Plan
from runners.gate_rules import REFUSED
from runners.simulated.loop import OK
from runners.simulated.scripted import scripts_of
from runners.simulated.setup import ORIGINS, arrival_order
from runners.simulated.state import GATE_EVENT, SAMPLE, SESSION, TURN, Run, column


def turns_table(run: Run, plan: Plan) -> pa.Table:
    """One row a turn that became due, by (planned_s, order of arrival).

    In the simulator the loop wakes on time and the first byte is written at
    once, so `ready_s` is `planned_s` and `submit_s` is `admitted_s`.
    """
    raw = _columns(run.turns, TURN, int(run.loop[0].rows))
    order = np.lexsort((raw["session"], raw["planned_s"]))
    rows = {name: values[order] for name, values in raw.items()}
    names, origins = _names(run, plan)
    ok = rows["outcome"] == OK
    return _table(
        "turns",
        session=names.take(_array(rows["session"], pa.int64())),
        turn=rows["turn"],
        origin=origins.take(_array(rows["session"], pa.int64())),
        planned_s=rows["planned_s"],
        ready_s=rows["planned_s"],
        admitted_s=rows["admitted_s"],
        submit_s=rows["admitted_s"],
        start_s=rows["start_s"],
        first_token_s=rows["first_token_s"],
        done_s=rows["done_s"],
        prompt_tokens=rows["prompt_tokens"],
        reusable_tokens=_reusable(run, plan, rows),
        cached_tokens=_array(rows["cached_tokens"], pa.int64(), rows["cached_tokens"] >= 0),
        output_tokens=np.where(ok, rows["output_tokens"], 0),
        retractions=rows["retractions"],
        outcome=_coded(rows["outcome"], TURN_OUTCOMES),
        detail=pa.nulls(len(order), pa.string()),
    )


def _reusable(run: Run, plan: Plan, rows: dict[str, Any]) -> Any:
    if scripts := scripts_of(plan):
        first_wait = column(run.sessions, SESSION, "first_tool", len(run.sessions))
        return scripts.reusable_tokens[first_wait[rows["session"]] + rows["turn"] - 2]
    reusable = [plan.workload.reusable_tokens(turn) for turn in range(1, plan.workload.turns.max_turns + 1)]
    return np.asarray(reusable)[rows["turn"] - 1]


def sessions_table(run: Run, plan: Plan) -> pa.Table:
    """One row a session that arrived, in order of arrival."""
    count = _arrived(run)
    rows = _columns(run.sessions, SESSION, count)
    names, origins = _names(run, plan)
    return _table(
        "sessions",
        session=names,
        origin=origins,
        arrival_s=rows["arrival_s"],
        planned_turns=rows["turns"],
        turns_done=rows["turns_done"],
        end_s=rows["end_s"],
        outcome=_coded(rows["outcome"], TURN_OUTCOMES),
    )


def gate_table(run: Run, plan: Plan) -> pa.Table:
    """The gate's log before the horizon, and who was refused, in time order.

    An event may be noted after the time that it bears; at one instant the
    gate's own events come before refusals.
    """
    rows = _columns(run.gate_log, GATE_EVENT, int(run.gate[0].events))
    order = np.lexsort((rows["event"] == REFUSED, rows["time_s"]))
    order = order[rows["time_s"][order] < run.loop[0].horizon_s]
    session, event = rows["session"][order], rows["event"][order]
    names, _ = _names(run, plan)
    return _table(
        "gate",
        time_s=rows["time_s"][order],
        event=_coded(event, GATE_EVENTS),
        session=names.take(_array(session, pa.int64(), session >= 0)),
    )


def engine_table(run: Run) -> pa.Table:
    """The gauges of whole seconds 0, 1, 2, …, up to the last before the end."""
    count = int(run.loop[0].next_sample)
    gauges = _columns(run.samples, SAMPLE, count).values()
    names = stamped("engine").names[1:]
    return _table("engine", time_s=np.arange(count, dtype=np.float64), **dict(zip(names, gauges, strict=True)))


def _arrived(run: Run) -> int:
    return int(run.loop[0].sessions if run.sessions[0].closed else run.loop[0].arrived) if len(run.sessions) else 0


def _names(run: Run, plan: Plan) -> tuple[pa.Array, pa.Array]:
    """Name and origin of every session that arrived, in order of arrival."""
    count = _arrived(run)
    if plan.population:
        return _strings([f"population-{i}" for i in range(count)]), _strings(["population"] * count)
    bases = len(plan.base_arrivals_us)
    order = arrival_order(plan)[0][:count]
    burst = (order >= bases).astype(np.int64)
    index = order - burst * bases
    names = [f"{ORIGINS[b]}-{i}" for b, i in zip(burst.tolist(), index.tolist(), strict=True)]
    return _strings(names), _coded(burst, ORIGINS)


def _coded(codes: Any, words: tuple[str, ...]) -> pa.Array:
    return _strings(words).take(_array(codes, pa.int64()))


def _strings(words: Sequence[str]) -> pa.Array:
    """An array of ASCII words."""
    ends = np.cumsum([0, *map(len, words)], dtype=np.int32)
    text = "".join(words).encode("ascii")
    return pa.Array.from_buffers(pa.string(), len(words), [None, pa.py_buffer(ends), pa.py_buffer(text)])


def _array(values: Any, kind: pa.DataType, valid: Any = None) -> pa.Array:
    """Numbers as an array of `kind`; null where not `valid` or not a number.

    From buffers: `pa.array` would import pandas, which takes longer than a run.
    """
    numbers = np.ascontiguousarray(values, kind.to_pandas_dtype())
    if valid is None and numbers.dtype.kind == "f":
        valid = ~np.isnan(numbers)
    bits = None if valid is None or valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(numbers), [bits, pa.py_buffer(numbers)])


def _columns(records: Any, dtype: np.dtype[Any], count: int) -> dict[str, Any]:
    return {name: column(records, dtype, name, count) for name in dtype.names or ()}


def _table(name: str, **columns: Any) -> pa.Table:
    schema = stamped(name)
    arrays = [
        values if isinstance(values := columns[field.name], pa.Array) else _array(values, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
