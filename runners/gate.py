"""The gate at the client, for one caller that names its sessions.

No clock and no I/O: every method takes `time_s` (seconds from the run's start,
never decreasing) and says who may go now. The rules are `runners.gate_rules`,
which the simulator's core works by too; here sessions have names.

The log: every slot handed out is exactly one event, `resumed` where the
session had been paused, else `admitted` (at once or after queueing; also for a
session that had started before the gate engaged and found a slot free).
`paused` is a started session joining the queue. `engaged` and `released` bear
the time they took force, which may lie before the call that noticed. Nothing
is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from artifacts.records import GATE_EVENTS
from registry.design import GateSetting
from runners import gate_rules
from runners.gate_rules import NOBODY
from runners.simulated.setup import gate_values
from runners.simulated.state import GATE, GATE_EVENT, SESSION, grown, table

_ROOM = 64


class GateEvent(NamedTuple):
    """One line of the gate's log; `event` is one of `records.GATE_EVENTS`."""

    time_s: float
    event: str
    session: str | None


class SessionGate:
    """A gate by `setting`; FIFO, no refusal.

    `log` holds the events so far, in the order in which they were noticed.
    `pool_tokens` is the engine's KV pool, for a gate on its share.
    """

    def __init__(self, setting: GateSetting, pool_tokens: int = 0) -> None:
        if setting.cap is not None and setting.cap < 1:
            raise ValueError(f"cap must be at least 1, not {setting.cap}")
        self.log: list[GateEvent] = []
        self._gate = table(GATE, 1, **gate_values(setting, pool_tokens))[0]
        self._sessions = table(SESSION, _ROOM)
        self._events = table(GATE_EVENT, _ROOM)
        self._names: list[str] = []
        self._indexes: dict[str, int] = {}
        self._unused: list[int] = []
        self._waits: set[int] = set()
        self._now_s = 0.0

    @property
    def holding(self) -> int:
        """Sessions that hold a slot."""
        return int(self._gate.holders)

    @property
    def engaged(self) -> bool:
        """Whether sessions need a slot now: engaged and not released."""
        return bool(self._gate.engaged) and not self._gate.released

    def holds(self, session: str) -> bool:
        """Whether the session holds a slot."""
        index = self._indexes.get(session)
        return index is not None and bool(self._sessions[index].holds)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Queued sessions in the order in which they will go."""
        return tuple(self._names[index] for index in self._queued())

    def settle(self, time_s: float) -> None:
        """Engage or release if that was due by `time_s`.

        Every other method does this first; call it once at the end of a run,
        so that the log is complete. Nobody starts to go by it: the queues are
        empty at both moments. ValueError if time runs backwards.
        """
        self._advance(time_s)
        gate_rules.settle(self._gate, self._events, time_s)
        self._keep_log()

    def request(self, session: str, time_s: float, tokens: int = 1) -> bool:
        """The session's next turn is ready: True if it may go now.

        `tokens`: its prompt and output, for a gate on the pool's share. False:
        it queues, and a later `end` or `freed` names it. ValueError if it is
        queued already.
        """
        self._advance(time_s)
        index = self._index(session)
        if index in self._waits:
            raise ValueError(f"{session} is queued already")
        weight = tokens if self._gate.unit_tokens else 1
        goes = gate_rules.request(self._gate, self._sessions, self._events, index, weight, time_s)
        if not goes:
            self._waits.add(index)
        self._keep_log()
        return bool(goes)

    def end(self, session: str, time_s: float) -> list[str]:
        """The session is over, wherever it stood: who may go now, in order."""
        self.settle(time_s)
        index = self._index(session)
        self._waits.discard(index)
        gate_rules.withdraw(self._gate, self._sessions, index, time_s)
        gate_rules.end(self._gate, self._sessions, self._events, index, time_s)
        return self.freed(time_s)

    def leave(self, session: str, time_s: float) -> list[str]:
        """The session gives up its slot or its place in a queue, and may come
        back: one that had started queues as paused then. Who may go now.
        """
        index = self._index(session)
        started = self._sessions[index].started
        going = self.end(session, time_s)
        self._sessions[index].started = started
        return going

    def forget(self, session: str) -> None:
        """Give the place of a session that is over to another name.

        For a caller that serves without end. ValueError if it holds or waits.
        """
        index = self._index(session)
        if index in self._waits or self._sessions[index].holds:
            raise ValueError(f"{session} holds a slot or waits")
        self._sessions[index].started = 0
        del self._indexes[session]
        self._unused.append(index)

    def engage(self, time_s: float) -> None:
        """Engage now, whatever the setting said; also again, after a release.

        Nobody holds a slot when it begins, as ever. Nothing where it is engaged.
        """
        self.settle(time_s)
        if self.engaged:
            return
        for index in self._indexes.values():
            self._sessions[index].holds = 0
        self._gate.held = self._gate.holders = 0
        self._gate.engaged = self._gate.released = 0
        self._gate.engage_s = self._gate.empty_since_s = time_s
        self.settle(time_s)

    def finished(self, hit: bool) -> None:
        """A follow-up turn finished, a full hit or not: an adaptive cap counts."""
        gate_rules.observe(self._gate, int(hit))

    def tick(self, time_s: float) -> list[str]:
        """An adaptive cap's interval is over: who may go now, in order."""
        self.settle(time_s)
        gate_rules.adapt(self._gate, self._events, time_s)
        return self.freed(time_s)

    def freed(self, time_s: float) -> list[str]:
        """Who may go now, in order; also after a `request` that was refused."""
        going: list[str] = []
        while (index := gate_rules.fill(self._gate, self._sessions, self._events, time_s)) != NOBODY:
            self._waits.discard(index)
            going.append(self._names[index])
            self._keep_log()
        return going

    def _advance(self, time_s: float) -> None:
        if time_s < self._now_s:
            raise ValueError(f"time went back from {self._now_s} to {time_s} s")
        self._now_s = time_s

    def _index(self, session: str) -> int:
        if session not in self._indexes and self._unused:
            index = self._unused.pop()
            self._indexes[session] = index
            self._names[index] = session
        elif session not in self._indexes:
            if len(self._names) == len(self._sessions):
                self._sessions = grown(self._sessions, SESSION)
            self._indexes[session] = len(self._names)
            self._names.append(session)
        return self._indexes[session]

    def _queued(self) -> Iterator[int]:
        for first in (self._gate.paused_first, self._gate.new_first):
            while first != NOBODY:
                yield int(first)
                first = self._sessions[first].next_waiting

    def _keep_log(self) -> None:
        """Move the rules' new events to `log`, by name."""
        if not self._gate.events:
            return
        for entry in self._events[: self._gate.events]:
            name = None if entry.session == NOBODY else self._names[entry.session]
            self.log.append(GateEvent(float(entry.time_s), GATE_EVENTS[entry.event], name))
        self._gate.events = 0
