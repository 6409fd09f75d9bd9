"""The FIFO session cap at the client, as a pure state machine.

No clock and no I/O: every method takes `time_s` (seconds from the run's
start, never decreasing) and says who may go now. A simulator and a real load
generator drive the same object.

Three phases, each entered once:

- open, before `engage_s`: everything passes; only who has started is known.
- engaged: at most `cap` sessions hold a slot, each until it ends. Nobody holds
  one when the phase begins, and turns in flight are not recalled; a session
  asks at its next turn. It gets a slot if one is free, else it queues:
  sessions already started (paused) go before new ones, each queue in order of
  arrival. A free slot never coexists with a waiting session.
- released, once both queues have been empty for `release_after_s` on end since
  the gate engaged: everything passes. None: never. A gate that nobody ever
  queues at is released too.

The log: every slot handed out is exactly one event, `resumed` where the
session had been paused, else `admitted` (at once or after queueing; also for a
session that had started before the gate engaged and found a slot free).
`paused` is a started session joining the queue. `engaged` and `released` bear
the time they took force, which may lie before the call that noticed. Nothing
is refused.

Source: the paper's session cap, as the registered tests describe it.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from registry.design import GateSetting


class GateEvent(NamedTuple):
    """One line of the gate's log; `event` is one of `records.GATE_EVENTS`."""

    time_s: float
    event: str
    session: str | None


class SessionGate:
    """At most `setting.cap` admitted sessions while engaged; FIFO, no refusal.

    `log` holds the events so far, in time order.
    """

    def __init__(self, setting: GateSetting) -> None:
        if setting.cap < 1:
            raise ValueError(f"cap must be at least 1, not {setting.cap}")
        self.log: list[GateEvent] = []
        self._setting = setting
        self._engaged = False
        self._released = False
        self._now_s = 0.0
        self._empty_since_s: float | None = setting.engage_s
        self._started: set[str] = set()
        self._holders: set[str] = set()
        self._paused: deque[str] = deque()
        self._new: deque[str] = deque()

    @property
    def holding(self) -> int:
        """Sessions that hold a slot."""
        return len(self._holders)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Queued sessions in the order in which they will go."""
        return (*self._paused, *self._new)

    def settle(self, time_s: float) -> None:
        """Engage or release if that was due by `time_s`.

        Every other method does this first; call it once at the end of a run,
        so that the log is complete. Nobody starts to go by it: the queues are
        empty at both moments. ValueError if time runs backwards.
        """
        if time_s < self._now_s:
            raise ValueError(f"time went back from {self._now_s} to {time_s} s")
        self._now_s = time_s
        if not self._engaged:
            if time_s < self._setting.engage_s:
                return
            self._engaged = True
            self._note(self._setting.engage_s, "engaged", None)
        after_s = self._setting.release_after_s
        if self._released or after_s is None or self._empty_since_s is None:
            return
        due_s = self._empty_since_s + after_s
        if time_s >= due_s:
            self._released = True
            self._note(due_s, "released", None)

    def request(self, session: str, time_s: float) -> bool:
        """The session's next turn is ready: True if it may go now.

        False: it queues, and a later `end` names it. ValueError if it is
        queued already.
        """
        self.settle(time_s)
        started = session in self._started
        if not self._engaged or self._released or session in self._holders:
            self._started.add(session)
            return True
        if session in self._paused or session in self._new:
            raise ValueError(f"{session} is queued already")
        if len(self._holders) < self._setting.cap:
            self._grant(session, time_s, "admitted")
            return True
        self._empty_since_s = None
        if started:
            self._paused.append(session)
            self._note(time_s, "paused", session)
        else:
            self._new.append(session)
        return False

    def end(self, session: str, time_s: float) -> list[str]:
        """The session is over, wherever it stood: who may go now, in order."""
        self.settle(time_s)
        self._started.discard(session)
        if session in self._holders:
            self._holders.remove(session)
        else:
            for queue in (self._paused, self._new):
                if session in queue:
                    queue.remove(session)
        return self._fill(time_s)

    def _fill(self, time_s: float) -> list[str]:
        """Hand free slots to the queues; note when both have run empty."""
        going: list[str] = []
        while len(self._holders) < self._setting.cap and (self._paused or self._new):
            if self._paused:
                session, event = self._paused.popleft(), "resumed"
            else:
                session, event = self._new.popleft(), "admitted"
            self._grant(session, time_s, event)
            going.append(session)
        if self._empty_since_s is None and not self._paused and not self._new:
            self._empty_since_s = time_s
        return going

    def _grant(self, session: str, time_s: float, event: str) -> None:
        self._started.add(session)
        self._holders.add(session)
        self._note(time_s, event, session)

    def _note(self, time_s: float, event: str, session: str | None) -> None:
        self.log.append(GateEvent(time_s, event, session))
