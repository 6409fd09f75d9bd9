"""The load generator: a plan's sessions, on time, against a real engine.

Open loop: a turn is due when the plan says, whether the engine keeps up or
not. Every turn that became due before the horizon has its row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, NamedTuple

from modelf.cells import Cell
from registry.design import Arm
from registry.plan import MICROSECONDS, Plan, SessionDraw
from runners.engines.adapter import Reply
from runners.load.client_gate import ClientGate
from runners.load.clock import RunClock
from runners.load.conversation import Conversation, TurnSize, conversation_of
from runners.load.records import ERROR, OK, OPEN, REFUSED, Records, SessionRow, TurnRow
from runners.load.sender import Sender, TurnFailed
from runners.load.token_ids import TokenSource

LEAD_S = 1.0
"""How long before its arrival a session's first prompt is made."""

HEAR_OUT_S = 30.0
"""How long answers that began before the horizon may take to end."""

_ROOM = 1024


@dataclass(frozen=True)
class Drive:
    """What a run is driven by. `stream` names its token ids: run and attempt;
    `cell` is as the arm has it.
    """

    plan: Plan
    arm: Arm
    cell: Cell
    vocabulary_tokens: int
    stream: str

    @property
    def horizon_s(self) -> float:
        """When the run ends, seconds from its start."""
        return self.plan.horizon_us / MICROSECONDS


class _Live(NamedTuple):
    """One session at work, its first turn waiting."""

    row: SessionRow
    draw: SessionDraw
    conversation: Conversation
    first: TurnRow


class LoadGenerator:
    """Drives one run; `records` holds its rows at any moment."""

    def __init__(self, drive: Drive, gate: ClientGate, sender: Sender, clock: RunClock) -> None:
        self._drive = drive
        self._gate = gate
        self._sender = sender
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()
        self._current: dict[asyncio.Task[Any], TurnRow] = {}
        self._live_sessions = 0
        self._broken: asyncio.Future[Any] | None = None
        plan = drive.plan
        sizes = {"base": len(plan.base_arrivals_us), "burst": len(plan.burst_arrivals_us), "population": _ROOM}
        self._draws = {origin: plan.draws(origin, size) for origin, size in sizes.items()}
        self._source = TokenSource(plan.key, drive.stream, drive.vocabulary_tokens)
        self.records = Records()

    @property
    def live(self) -> int:
        """Sessions that have arrived, or will within a second, and not ended."""
        return self._live_sessions

    async def run(self, *guards: Coroutine[Any, Any, None]) -> None:
        """Drive the sessions to the horizon; what is open then stays open.

        Raises at once what a guard raises or what breaks the generator itself;
        a turn that fails is a row. `records` holds the rows either way.
        """
        self._broken = asyncio.get_running_loop().create_future()
        watching = {self._keep(guard) for guard in guards}
        self._keep(self._arrivals())
        self._keep(self._gate.adapt())
        end: asyncio.Future[Any] = asyncio.ensure_future(self._clock.until(self._drive.horizon_s))
        try:
            await asyncio.wait({end, self._broken}, return_when=asyncio.FIRST_COMPLETED)
            self._gate.settle(min(self._clock.now_s(), self._drive.horizon_s))
            if not self._broken.done():
                await self._hear_out(watching)
        finally:
            end.cancel()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(end, *self._tasks, return_exceptions=True)
            self._close()
        if self._broken.done():
            self._broken.result()

    async def _hear_out(self, watching: set[asyncio.Task[None]]) -> None:
        """Let answers that have begun end: only then does an engine say how many
        tokens were cached. They stay open at the horizon; guards watch on.
        """
        answering = {
            task for task, turn in self._current.items() if turn.first_token_s is not None and turn.done_s is None
        }
        for task in self._tasks - answering - watching:
            task.cancel()
        if answering and self._broken:
            ended = asyncio.gather(*answering, return_exceptions=True)
            await asyncio.wait({ended, self._broken}, timeout=HEAR_OUT_S, return_when=asyncio.FIRST_COMPLETED)

    def _close(self) -> None:
        """Rows of what had no time to start; what came too late is open."""
        known = {row.session for row in self.records.sessions}
        for time_us, origin, index in self._drive.plan.arrivals():
            if f"{origin}-{index}" not in known and time_us / MICROSECONDS <= self._clock.now_s():
                self._session(origin, index, time_us / MICROSECONDS)
        started = {turn.session: turn for turn in self.records.turns if turn.turn == 1}
        for row in self.records.sessions:
            turn = started[row.session]
            if turn.admitted_s is None and row.outcome == OPEN:
                self._refused(turn, row)
        self.records.truncate(self._drive.horizon_s)

    def _keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something to its end or the run's."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._current.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error and self._broken and not self._broken.done():
            self._broken.set_exception(error)

    async def _arrivals(self) -> None:
        plan = self._drive.plan
        for index in range(plan.population):
            self._keep(self._live(self._session("population", index, 0.0)))
        for time_us, origin, index in plan.arrivals():
            await self._clock.until(time_us / MICROSECONDS - LEAD_S)
            self._keep(self._live(self._session(origin, index, time_us / MICROSECONDS)))

    def _session(self, origin: str, index: int, arrival_s: float) -> _Live:
        drive, draws = self._drive, self._draws[origin]
        if index >= len(draws.turns):
            draws = self._draws[origin] = drive.plan.draws(origin, 2 * index)
        draw = draws.session(index)
        row = SessionRow(f"{origin}-{index}", origin, arrival_s, draw.turns)
        self._live_sessions += 1
        self.records.sessions.append(row)
        conversation = conversation_of(drive.plan, self._source, row.session, draw)
        return _Live(row, draw, conversation, self._new_turn(row, 1, arrival_s, conversation.size(1)))

    async def _live(self, live: _Live) -> None:
        """All turns of one session, one after the other."""
        row, planned_s = live.row, live.row.arrival_s
        turn = live.first
        output_ids: tuple[int, ...] = ()
        for number in range(1, row.planned_turns + 1):
            if planned_s >= self._drive.horizon_s:
                return
            size = live.conversation.size(number)
            if number > 1:
                turn = self._new_turn(row, number, planned_s, size)
            self._note_current(turn)
            prompt = live.conversation.prompt(number, output_ids)
            turn.ready_s = await self._clock.until(planned_s)
            if number == 1 and self._refused(turn, row):
                return
            weight = size.prompt_tokens + size.output_tokens
            turn.admitted_s = await self._gate.enter(row.session, turn.ready_s, weight)
            if turn.admitted_s >= self._drive.horizon_s:
                return
            try:
                reply = await self._sender.send(turn, prompt, size.output_tokens)
            except TurnFailed as failed:
                turn.outcome, turn.detail = ERROR, str(failed)
                self._end(row, turn, ERROR)
                return
            self._answered(turn, size, reply)
            row.turns_done, output_ids = number, reply.output_ids
            if number < row.planned_turns:
                planned_s = self._next_due_s(live.draw, turn)
        self._end(row, turn, OK)

    def _note_current(self, turn: TurnRow) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._current[task] = turn

    def _new_turn(self, row: SessionRow, number: int, planned_s: float, size: TurnSize) -> TurnRow:
        turn = TurnRow(row.session, number, row.origin, planned_s, size.prompt_tokens, size.reusable_tokens)
        self.records.turns.append(turn)
        return turn

    def _refused(self, turn: TurnRow, row: SessionRow) -> bool:
        shed = self._drive.arm.shed
        if shed is None or not shed.refuses(row.arrival_s):
            return False
        self._live_sessions -= 1
        turn.outcome = row.outcome = REFUSED
        row.end_s = row.arrival_s
        self._gate.refuse(row.session, row.arrival_s)
        return True

    def _answered(self, turn: TurnRow, size: TurnSize, reply: Reply) -> None:
        cached_tokens, queue_s = reply.cached_tokens or 0, reply.queue_s
        turn.outcome, turn.output_tokens = OK, size.output_tokens
        turn.cached_tokens, turn.retractions = cached_tokens, reply.retractions
        if reply.retractions and cached_tokens > size.most_cached_tokens:
            # A retracted request finds its own prompt in the cache when it is admitted again.
            turn.detail = f"retracted: the engine says {cached_tokens} cached tokens"
            turn.cached_tokens = size.most_cached_tokens
        if queue_s is not None and turn.submit_s is not None and turn.first_token_s is not None:
            turn.start_s = min(turn.submit_s + queue_s, turn.first_token_s)
        if turn.turn > 1:
            block = self._drive.cell.cache_block_tokens
            reusable = min(turn.reusable_tokens, turn.prompt_tokens - 1)
            self._gate.finished(cached_tokens >= reusable - reusable % block)

    def _next_due_s(self, draw: SessionDraw, turn: TurnRow) -> float:
        """When the session's next turn is due: its tool call ends."""
        assert turn.done_s is not None
        tool_s = draw.tool_us[turn.turn - 1] / MICROSECONDS
        if slowdown := self._drive.arm.tool_slowdown:
            tool_s += slowdown.added_s(turn.done_s)
        return turn.done_s + tool_s

    def _end(self, row: SessionRow, turn: TurnRow, outcome: str) -> None:
        assert turn.done_s is not None
        row.end_s, row.outcome = turn.done_s, outcome
        self._live_sessions -= 1
        self._gate.end(row.session, turn.done_s)
        if self._drive.plan.population and turn.done_s < self._drive.horizon_s:
            self._keep(self._live(self._session("population", len(self.records.sessions), turn.done_s)))
