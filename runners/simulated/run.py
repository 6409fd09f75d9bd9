"""One simulated run: arrivals, sessions, tool times and the gate.

Events are ordered by (time, priority, sequence number); at one instant,
sessions that the gate resumes go first, then arrivals, then those that refill
a closed population, then tool calls that end, and the engine acts last. Times
are float64 seconds from the run's start; the plan's integer microseconds are
divided by 1e6.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count

import pyarrow as pa

from modelf.cells import Cell
from registry.design import Arm
from registry.errors import TrapError
from registry.plan import Plan
from runners.gate import GateEvent, SessionGate
from runners.simulated.engine import Engine
from runners.simulated.pool import KVPool
from runners.simulated.request import Request, Session
from runners.simulated.tables import engine_table, gate_table, sessions_table, turns_table

_MICROSECONDS = 1e6
_RESUME, _ARRIVAL, _SUCCESSOR, _TOOL_END = range(4)


def simulate(plan: Plan, arm: Arm, cell: Cell) -> dict[str, pa.Table]:
    """Run `plan` under `arm` on `cell`: tables turns, sessions, gate, engine.

    The result depends on the arguments alone, to the last bit. Turns and
    sessions not over before the horizon are `open at horizon`, with nulls for
    what had not come yet. TrapError where the cell's step costs are unknown.
    """
    run = _Run(plan, arm, cell)
    run.play()
    return {
        "turns": turns_table(run.requests, run.sessions, plan.workload),
        "sessions": sessions_table(run.sessions.values()),
        "gate": gate_table(run.gate_log(), run.horizon_s),
        "engine": engine_table(run.samples),
    }


class _Run:
    """The state of one run; `play` takes it to the horizon."""

    def __init__(self, plan: Plan, arm: Arm, cell: Cell) -> None:
        if cell.step_costs is None:
            raise TrapError(
                f"cell {cell.name} cannot be simulated",
                value=cell.name,
                remedy="name a cell with step costs, or run it on its real engine",
            )
        pool = KVPool(cell.pool_tokens)
        self.engine = Engine(cell.step_costs, pool, cell.cache_block_tokens, arm.caching)
        self.gate = SessionGate(arm.gate) if arm.gate else None
        self.horizon_s = plan.horizon_us / _MICROSECONDS
        self.sessions: dict[str, Session] = {}
        self.requests: list[Request] = []
        self.samples: list[tuple[int, ...]] = []
        self._plan = plan
        self._shed = arm.shed
        self._slowdown = arm.tool_slowdown
        self.refusals: list[GateEvent] = []
        self._pool_tokens = cell.pool_tokens
        turns = range(1, plan.workload.turns.max_turns + 1)
        self._prompts = [plan.workload.prompt_tokens(turn) for turn in turns]
        self._output_tokens = plan.workload.output_tokens
        self._queued: dict[str, Request] = {}
        self._events: list[tuple[float, int, int, Session]] = []
        self._sequence = count()
        self._population = count(plan.population)
        self._arrivals = self._planned_arrivals()
        self._push_arrival()

    def play(self) -> None:
        """Handle events and engine steps until none is before the horizon."""
        engine, events, horizon_s = self.engine, self._events, self.horizon_s
        next_sample_s = 0
        while True:
            external = bool(events) and events[0][0] <= engine.next_s
            now_s = events[0][0] if external else engine.next_s
            if now_s > next_sample_s:
                next_sample_s = self._sample(min(now_s, horizon_s))
            if now_s >= horizon_s:
                break
            if external:
                _, priority, _, session = heappop(events)
                self._handle(priority, session, now_s)
                continue
            for request in engine.complete():
                self._finish(request, now_s)
            # What a completion causes at this very instant comes before the schedule.
            if not events or events[0][0] > now_s:
                engine.schedule()
        if self.gate:
            self.gate.settle(horizon_s)

    def gate_log(self) -> list[GateEvent]:
        """The cap's events and the refusals, in time order."""
        return sorted([*(self.gate.log if self.gate else ()), *self.refusals], key=lambda event: event.time_s)

    def _planned_arrivals(self) -> Iterator[Session]:
        """The sessions of the plan as they arrive; a population starts at 0."""
        for index in range(self._plan.population):
            yield self._session("population", index, 0.0)
        for arrival_us, origin, index in self._plan.arrivals():
            yield self._session(origin, index, arrival_us / _MICROSECONDS)

    def _session(self, origin: str, index: int, arrival_s: float) -> Session:
        return Session(origin, index, self._plan.session(origin, index), arrival_s)

    def _push_arrival(self) -> None:
        """Schedule the plan's next arrival; one at a time keeps the heap small."""
        session = next(self._arrivals, None)
        if session is not None:
            self._push(session.arrival_s, _ARRIVAL, session)

    def _push(self, time_s: float, priority: int, session: Session) -> None:
        heappush(self._events, (time_s, priority, next(self._sequence), session))

    def _handle(self, priority: int, session: Session, now_s: float) -> None:
        if priority == _TOOL_END:
            self._turn_due(session, now_s)
        elif priority == _RESUME:
            self._submit(self._queued.pop(session.name), now_s)
        else:
            session.order = len(self.sessions)
            self.sessions[session.name] = session
            if self._shed and self._shed.refuses(now_s):
                self._refuse(session, now_s)
            else:
                self._turn_due(session, now_s)
            if priority == _ARRIVAL:
                self._push_arrival()

    def _refuse(self, session: Session, now_s: float) -> None:
        """Turn a new session away: its first turn is recorded, and no other."""
        request = Request(session.name, session.order, 1, self._prompts[0], self._output_tokens, now_s)
        request.outcome = "refused"
        self.requests.append(request)
        self.refusals.append(GateEvent(now_s, "refused", session.name))
        session.end_s = now_s
        session.outcome = "refused"

    def _turn_due(self, session: Session, now_s: float) -> None:
        """The session's next turn is ready; it goes if the gate lets it."""
        done = session.turns_done
        request = Request(
            session.name,
            session.order,
            done + 1,
            self._prompts[done],
            self._output_tokens,
            now_s,
        )
        self.requests.append(request)
        if self.gate is None or self.gate.request(session.name, now_s):
            self._submit(request, now_s)
        else:
            self._queued[session.name] = request

    def _submit(self, request: Request, now_s: float) -> None:
        request.admitted_s = now_s
        if not self.engine.submit(request, now_s):
            request.outcome = "error"
            request.detail = f"prompt and output exceed the pool of {self._pool_tokens} tokens"
            request.done_s = now_s
            self._end(self.sessions[request.session], now_s, "error")

    def _finish(self, request: Request, now_s: float) -> None:
        """A turn is done: the tool runs, or the session is over."""
        request.outcome = "ok"
        session = self.sessions[request.session]
        draw = session.draw
        session.turns_done = done = session.turns_done + 1
        if done == draw.turns:
            self._end(session, now_s, "ok")
        else:
            tool_s = draw.tool_us[done - 1] / _MICROSECONDS
            if self._slowdown:
                tool_s += self._slowdown.added_s(now_s)
            self._push(now_s + tool_s, _TOOL_END, session)

    def _end(self, session: Session, now_s: float, outcome: str) -> None:
        """End a session: its slot goes on, a closed population fills up.

        A session of which no turn was served is not replaced: where even a
        first prompt exceeds the pool, its successors would fail at the same
        instant without end.
        """
        session.end_s = now_s
        session.outcome = outcome
        if self.gate:
            for name in self.gate.end(session.name, now_s):
                self._push(now_s, _RESUME, self.sessions[name])
        if session.origin == "population" and session.turns_done:
            successor = self._session("population", next(self._population), now_s)
            self._push(now_s, _SUCCESSOR, successor)

    def _sample(self, before_s: float) -> int:
        """Sample each whole second before `before_s` not sampled yet."""
        samples, gauges = self.samples, self.engine.gauges
        second = len(samples)
        while second < before_s:
            samples.append(gauges(second))
            second += 1
        return second
