"""The gate in an event loop: sessions wait for their slot."""

from __future__ import annotations

import asyncio

from registry.design import Adaptation, GateSetting
from runners.gate import GateEvent, SessionGate
from runners.load.clock import RunClock

REFUSED = "refused"


def load_rules() -> None:
    """Load the gate's machine code, or compile it: for up to half a minute, in
    which an event loop would stand still if a run's first turn did it.
    """
    gate = SessionGate(GateSetting(1, 0.0, 1.0, Adaptation(1.0, 0.5, 0.5, 1, 1)))
    gate.request("a", 0.0)
    gate.request("b", 0.0)
    gate.finished(True)
    gate.tick(1.0)
    gate.end("a", 1.0)


class ClientGate:
    """A `SessionGate` whose waiters are coroutines; without a setting, an open
    door that logs refusals alone.
    """

    def __init__(self, setting: GateSetting | None, pool_tokens: int, clock: RunClock) -> None:
        self._gate = SessionGate(setting, pool_tokens) if setting else None
        self._adaptation = setting.adaptation if setting else None
        self._engage_s = setting.engage_s if setting else 0.0
        self._clock = clock
        self._waiting: dict[str, asyncio.Future[float]] = {}
        self._refused: list[GateEvent] = []
        self._latest_s = 0.0

    @property
    def log(self) -> list[GateEvent]:
        """What happened at the gate."""
        return [*(self._gate.log if self._gate else []), *self._refused]

    @property
    def waiting(self) -> int:
        """Sessions that wait now."""
        return len(self._waiting)

    def refuse(self, session: str, time_s: float) -> None:
        """The arm turns a session away."""
        self._refused.append(GateEvent(time_s, REFUSED, session))

    async def enter(self, session: str, ready_s: float, tokens: int) -> float:
        """The session's next turn is ready; returns when it may go.

        `ready_s` is now; `tokens` its prompt and output.
        """
        if self._gate is None:
            return ready_s
        now_s = self._forwards(ready_s)
        if self._gate.request(session, now_s, tokens):
            return now_s
        turn = self._waiting[session] = asyncio.get_running_loop().create_future()
        self._wake(self._gate.freed(now_s), now_s)
        admitted_s: float = await turn
        return admitted_s

    def end(self, session: str, time_s: float) -> None:
        """The session is over, now."""
        if self._gate:
            now_s = self._forwards(time_s)
            self._wake(self._gate.end(session, now_s), now_s)

    def finished(self, hit: bool) -> None:
        """A follow-up finished, a full hit or not."""
        if self._gate:
            self._gate.finished(hit)

    async def adapt(self) -> None:
        """Move an adaptive cap at each of its intervals, for ever."""
        if self._gate is None or self._adaptation is None:
            return
        tick = 1
        while True:
            now_s = self._forwards(await self._clock.until(self._engage_s + tick * self._adaptation.interval_s))
            self._wake(self._gate.tick(now_s), now_s)
            tick += 1

    def settle(self, time_s: float) -> None:
        """The run ends: a release that is due is logged."""
        if self._gate:
            self._gate.settle(self._forwards(time_s))

    def _forwards(self, time_s: float) -> float:
        """Two answers can be read in another order than they ended."""
        self._latest_s = max(self._latest_s, time_s)
        return self._latest_s

    def _wake(self, sessions: list[str], time_s: float) -> None:
        for session in sessions:
            turn = self._waiting.pop(session)
            if not turn.done():
                turn.set_result(time_s)
