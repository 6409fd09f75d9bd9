"""The loop of a run: arrivals, turns, tool times, the gate, and the engine.

Events are ordered by (time, priority, sequence number). At one instant,
sessions that the gate resumes go first, then arrivals, then those that refill
a closed population, then tool calls that end, then an adaptive gate's tick;
the engine acts last. Times are float64 seconds from the run's start; the
plan's integer microseconds are divided by 1e6.
"""

from __future__ import annotations

import math

from runners import gate_rules
from runners.simulated import blocks
from runners.simulated import engine as engines
from runners.simulated.compiled import compiled
from runners.simulated.heap import pop, push
from runners.simulated.pool import LATEST_USE
from runners.simulated.state import Run

OK, REFUSED, ERROR, OPEN = range(4)
"""Codes of outcomes, in the order of `artifacts.records.TURN_OUTCOMES`."""

_MICROSECONDS = 1e6
_NEVER = math.inf
_RESUME, _ARRIVAL, _SUCCESSOR, _TOOL_END = range(4)
_PRIORITY_SHIFT = 56
_EVENT, _TICK, _ENGINE, _PLANNED = range(4)


@compiled
def play(run: Run) -> None:
    """Handle events and engine steps until none is before the horizon.

    Returns early, with `hungry` set, where a closed population needs more
    drawn sessions; call it again with them.
    """
    loop = run.loop[0]
    while not loop.hungry:
        kind, now_s = next_thing(run)
        if now_s > loop.next_sample:
            take_samples(run, min(now_s, loop.horizon_s))
        if now_s >= loop.horizon_s:
            break
        if kind == _PLANNED:
            arrive(run, loop.arrived, now_s)
            loop.arrived += 1
        elif kind == _EVENT:
            priority = run.events[1].rank >> _PRIORITY_SHIFT
            happen(run, priority, pop(run.events), now_s)
        elif kind == _TICK:
            loop.next_tick_s = now_s + run.gate[0].interval_s
            gate_rules.adapt(run.gate[0], run.gate_log, now_s)
            let_go(run, now_s)
        else:
            for place in range(engines.complete(run)):
                finish(run, run.slots[place].finished, now_s)
            # What a completion causes at this very instant comes before the schedule.
            if next_thing(run)[0] == _ENGINE:
                engines.schedule(run)
    if loop.gated and not loop.hungry:
        gate_rules.settle(run.gate[0], run.gate_log, loop.horizon_s)


@compiled
def next_thing(run: Run) -> tuple[int, float]:
    """(kind, time_s) of what comes next."""
    loop, events = run.loop[0], run.events
    kind, now_s = _ENGINE, run.engine[0].next_s
    if loop.next_tick_s <= now_s:
        kind, now_s = _TICK, loop.next_tick_s
    if events[0].item and events[1].key <= now_s:
        kind, now_s = _EVENT, events[1].key
    if loop.arrived < loop.planned:
        arrival_s = run.sessions[loop.arrived].arrival_s
        before = kind != _EVENT or (events[1].rank >> _PRIORITY_SHIFT) > _ARRIVAL
        if arrival_s < now_s or (arrival_s == now_s and before):
            kind, now_s = _PLANNED, arrival_s
    return kind, now_s


@compiled
def take_samples(run: Run, before_s: float) -> None:
    """Sample each whole second before `before_s` not sampled yet."""
    loop = run.loop[0]
    while loop.next_sample < before_s:
        engines.sample(run, loop.next_sample)
        loop.next_sample += 1


@compiled
def happen(run: Run, priority: int, session: int, now_s: float) -> None:
    """Handle one event of the heap."""
    if priority == _RESUME:
        submit(run, run.sessions[session].row, now_s)
    elif priority == _SUCCESSOR:
        arrive(run, session, now_s)
    else:
        turn_due(run, session, now_s)


@compiled
def schedule_event(run: Run, time_s: float, priority: int, session: int) -> None:
    """Push one event."""
    loop = run.loop[0]
    loop.sequence += 1
    push(run.events, time_s, (priority << _PRIORITY_SHIFT) + loop.sequence, session)


@compiled
def arrive(run: Run, session: int, now_s: float) -> None:
    """A session is here; the arm may refuse it."""
    loop = run.loop[0]
    run.sessions[session].arrival_s = now_s
    if loop.shed_start_s <= now_s < loop.shed_end_s:
        row = new_turn(run, session, now_s)
        run.turns[row].outcome = REFUSED
        gate_rules.note(run.gate[0], run.gate_log, now_s, gate_rules.REFUSED, session)
        run.sessions[session].end_s = now_s
        run.sessions[session].outcome = REFUSED
    else:
        turn_due(run, session, now_s)


@compiled
def new_turn(run: Run, session: int, now_s: float) -> int:
    """The row of the session's next turn, due now."""
    loop = run.loop[0]
    row = loop.rows
    loop.rows += 1
    owner, turn = run.sessions[session], run.turns[row]
    owner.row = row
    turn.session = session
    turn.turn = owner.turns_done + 1
    if run.engine[0].sharing:
        script = run.slots[blocks.script_row(run, turn)]
        turn.prompt_tokens, turn.output_tokens = script.prompt_tokens, script.output_tokens
    else:
        turn.prompt_tokens = run.slots[owner.turns_done].prompt_tokens
        turn.output_tokens = loop.output_tokens
    turn.planned_s = now_s
    return row


@compiled
def turn_due(run: Run, session: int, now_s: float) -> None:
    """The session's next turn is ready; it goes if the gate lets it."""
    row = new_turn(run, session, now_s)
    if not run.loop[0].gated:
        submit(run, row, now_s)
        return
    gate, turn = run.gate[0], run.turns[row]
    weight = turn.prompt_tokens + turn.output_tokens if gate.unit_tokens else 1
    if gate_rules.request(gate, run.sessions, run.gate_log, session, weight, now_s):
        submit(run, row, now_s)
    else:
        let_go(run, now_s)


@compiled
def let_go(run: Run, now_s: float) -> None:
    """Resume whoever the gate has room for."""
    while True:
        session = gate_rules.fill(run.gate[0], run.sessions, run.gate_log, now_s)
        if session == gate_rules.NOBODY:
            break
        schedule_event(run, now_s, _RESUME, session)


@compiled
def submit(run: Run, row: int, now_s: float) -> None:
    """Hand a turn to the engine."""
    run.turns[row].admitted_s = now_s
    engines.submit(run, row, now_s)


@compiled
def finish(run: Run, row: int, now_s: float) -> None:
    """A turn is done: the tool runs, or the session is over."""
    loop, engine, turn = run.loop[0], run.engine[0], run.turns[row]
    session = turn.session
    owner = run.sessions[session]
    turn.done_s = now_s
    turn.outcome = OK
    owner.turns_done += 1
    if loop.gated and turn.turn > 1:
        observe(run, row)
    if owner.turns_done == owner.turns:
        engines.retire(run, row, -_NEVER)
        end(run, session, now_s)
        return
    tool_s = run.tool_us[owner.first_tool + owner.turns_done - 1] / _MICROSECONDS
    if loop.slow_start_s <= now_s < loop.slow_end_s:
        tool_s += loop.slow_extra_s
    ready_s = now_s + tool_s
    engines.retire(run, row, -ready_s if engine.eviction == LATEST_USE else now_s + engine.pin_s)
    schedule_event(run, ready_s, _TOOL_END, session)


@compiled
def observe(run: Run, row: int) -> None:
    """Tell an adaptive gate whether a follow-up was a full hit."""
    engine, turn = run.engine[0], run.turns[row]
    if engine.sharing:
        reusable = run.slots[blocks.script_row(run, turn)].reusable_tokens
    else:
        reusable = min(run.slots[turn.turn - 2].prompt_tokens + turn.output_tokens - 1, turn.prompt_tokens - 1)
    gate_rules.observe(run.gate[0], 1 if turn.cached_tokens >= reusable - reusable % engine.block_tokens else 0)


@compiled
def end(run: Run, session: int, now_s: float) -> None:
    """End a session: its slot goes on, a closed population fills up."""
    loop, ended = run.loop[0], run.sessions[session]
    ended.end_s = now_s
    ended.outcome = OK
    if loop.gated:
        gate_rules.end(run.gate[0], run.sessions, run.gate_log, session, now_s)
        let_go(run, now_s)
    if ended.closed:
        schedule_event(run, now_s, _SUCCESSOR, loop.sessions)
        loop.sessions += 1
        # A whole population may end before the loop looks again.
        loop.hungry = loop.sessions + loop.planned > len(run.sessions)
