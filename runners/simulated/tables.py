"""From what a simulated run left in memory to the four record tables."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

import pyarrow as pa

from artifacts.records import stamped
from modelf.workload import Workload
from runners.gate import GateEvent
from runners.simulated.request import Request, Session


def turns_table(requests: list[Request], sessions: dict[str, Session], workload: Workload) -> pa.Table:
    """One row a turn that became due, by (planned_s, order of arrival).

    In the simulator the loop wakes on time and the first byte is written at
    once, so `ready_s` is `planned_s` and `submit_s` is `admitted_s`.
    """
    rows = sorted(requests, key=attrgetter("planned_s", "order"))
    planned_s = _column(rows, "planned_s")
    admitted_s = _column(rows, "admitted_s")
    turns = [row.turn for row in rows]
    reusable = [workload.reusable_tokens(k) for k in range(1, workload.turns.max_turns + 1)]
    outcomes = _column(rows, "outcome")
    return _table(
        "turns",
        session=_column(rows, "session"),
        turn=turns,
        origin=[sessions[row.session].origin for row in rows],
        planned_s=planned_s,
        ready_s=planned_s,
        admitted_s=admitted_s,
        submit_s=admitted_s,
        start_s=_column(rows, "start_s"),
        first_token_s=_column(rows, "first_token_s"),
        done_s=_column(rows, "done_s"),
        prompt_tokens=_column(rows, "prompt_tokens"),
        reusable_tokens=[reusable[turn - 1] for turn in turns],
        cached_tokens=_column(rows, "cached_tokens"),
        output_tokens=[row.output_tokens if row.outcome == "ok" else 0 for row in rows],
        retractions=[0] * len(rows),
        outcome=outcomes,
        detail=_column(rows, "detail"),
    )


def sessions_table(sessions: Iterable[Session]) -> pa.Table:
    """One row a session that arrived, in order of arrival."""
    rows = list(sessions)
    return _table(
        "sessions",
        session=_column(rows, "name"),
        origin=_column(rows, "origin"),
        arrival_s=_column(rows, "arrival_s"),
        planned_turns=[row.draw.turns for row in rows],
        turns_done=_column(rows, "turns_done"),
        end_s=_column(rows, "end_s"),
        outcome=_column(rows, "outcome"),
    )


def gate_table(log: Iterable[GateEvent], horizon_s: float) -> pa.Table:
    """The gate's log before the horizon; empty where there was no gate."""
    rows = [event for event in log if event.time_s < horizon_s]
    return _table(
        "gate",
        time_s=_column(rows, "time_s"),
        event=_column(rows, "event"),
        session=_column(rows, "session"),
    )


def engine_table(samples: list[tuple[int, ...]]) -> pa.Table:
    """The gauges of whole seconds 0, 1, 2, …, as `Engine.gauges` gives them."""
    gauges = zip(*samples, strict=True)
    names = stamped("engine").names[1:]
    seconds = [float(second) for second in range(len(samples))]
    return _table("engine", time_s=seconds, **dict(zip(names, gauges, strict=True)))


def _column(rows: list[Request] | list[Session] | list[GateEvent], name: str) -> list[object]:
    return list(map(attrgetter(name), rows))


def _table(name: str, **columns: object) -> pa.Table:
    schema = stamped(name)
    arrays = [pa.array(columns[field.name], type=field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)
