"""The rows of a real run, kept while it lasts, and the tables made of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa

from artifacts.records import TURN_OUTCOMES, stamped
from runners.gate import GateEvent

OK, REFUSED, ERROR, OPEN = TURN_OUTCOMES
_MOMENTS = ("ready_s", "admitted_s", "submit_s", "start_s", "first_token_s", "done_s")


@dataclass(slots=True)
class TurnRow:
    """One row of `artifacts.records.TURNS`: its columns, open until it ends."""

    session: str
    turn: int
    origin: str
    planned_s: float
    prompt_tokens: int
    reusable_tokens: int
    ready_s: float | None = None
    admitted_s: float | None = None
    submit_s: float | None = None
    start_s: float | None = None
    first_token_s: float | None = None
    done_s: float | None = None
    cached_tokens: int | None = None
    output_tokens: int = 0
    retractions: int = 0
    outcome: str = OPEN
    detail: str | None = None


@dataclass(slots=True)
class SessionRow:
    """One row of `artifacts.records.SESSIONS`."""

    session: str
    origin: str
    arrival_s: float
    planned_turns: int
    turns_done: int = 0
    end_s: float | None = None
    outcome: str = OPEN


@dataclass(slots=True)
class EngineRow:
    """One row of `artifacts.records.ENGINE`."""

    time_s: float
    running_requests: int | None = None
    waiting_requests: int | None = None
    running_tokens: int | None = None
    idle_cached_tokens: int | None = None
    uncached_prefill_tokens_total: int | None = None
    output_tokens_total: int | None = None


class Records:
    """Everything noted of one run, in the order in which it came up."""

    def __init__(self) -> None:
        self.turns: list[TurnRow] = []
        self.sessions: list[SessionRow] = []

    def truncate(self, horizon_s: float) -> None:
        """Forget what happened at the horizon or after: it is open there. What
        an answer that had begun says of its prompt stays.
        """
        sessions = {row.session: row for row in self.sessions}
        for row in self.turns:
            ended_late = row.done_s is not None and row.done_s >= horizon_s
            for name in _MOMENTS:
                if (time_s := getattr(row, name)) is not None and time_s >= horizon_s:
                    setattr(row, name, None)
            if ended_late:
                session = sessions[row.session]
                session.turns_done -= int(row.outcome == OK)
                session.end_s, session.outcome = None, OPEN
                row.outcome, row.detail = OPEN, None
                row.output_tokens = 0
                if row.first_token_s is None:
                    row.cached_tokens, row.retractions = None, 0

    def errors(self) -> dict[str, int]:
        """How many turns failed, by the first words of their detail."""
        counts: dict[str, int] = {}
        for row in self.turns:
            if row.outcome == ERROR:
                kind = (row.detail or "").partition(":")[0]
                counts[kind] = counts.get(kind, 0) + 1
        return dict(sorted(counts.items()))


def tables(
    records: Records, gate: Iterable[GateEvent], engine: Iterable[EngineRow], horizon_s: float
) -> dict[str, pa.Table]:
    """The four tables, in the orders that simulated runs have: turns by
    (planned_s, order of arrival), sessions as they arrived, the gate by time.
    """
    arrived = {row.session: index for index, row in enumerate(records.sessions)}
    turns = sorted(records.turns, key=lambda row: (row.planned_s, arrived[row.session]))
    events = sorted((e for e in gate if e.time_s < horizon_s), key=lambda e: (e.time_s, e.event == REFUSED))
    return {
        "turns": _table("turns", turns, TurnRow),
        "sessions": _table("sessions", records.sessions, SessionRow),
        "gate": pa.Table.from_pylist([event._asdict() for event in events], schema=stamped("gate")),
        "engine": _table("engine", list(engine), EngineRow),
    }


def _table(name: str, rows: list[Any], kind: type) -> pa.Table:
    columns = {field.name: [getattr(row, field.name) for row in rows] for field in fields(kind)}
    schema = stamped(name)
    return pa.Table.from_arrays([pa.array(columns[f.name], f.type) for f in schema], schema=schema)
