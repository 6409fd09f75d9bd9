"""The rules of the gate at the client, over plain records.

One machine for three gates. Every session that holds a slot has a weight: 1
under a cap on sessions, the KV tokens of its next turn under a cap on tokens.
The weights held stay at or below the limit, except that one session may
always hold. `gate.unit_tokens` says which; an adaptive cap moves the limit.

Three phases, each entered once:

- open, before `engage_s`: everything passes; only who has started is known.
- engaged: a session holds its slot until it ends. Nobody holds one when the
  phase begins, and turns in flight are not recalled; a session asks at its
  next turn. It gets a slot if its weight fits and nobody waits, else it
  queues: sessions already started (paused) go before new ones, each queue in
  order of arrival. A holder whose next turn no longer fits (its own weight
  grew, or the limit fell) gives its slot up and pauses.
- released, once both queues have been empty for `release_after_s` on end since
  the gate engaged: everything passes. Infinity: never.

Records are those of `runners.simulated.state` (GATE, SESSION, GATE_EVENT).
Source: the paper's session cap, as the registered tests describe it; AIMD and
the cap on tokens after published agent-serving systems (docs/write-a-rule.md).
"""

from __future__ import annotations

import math

from runners.simulated.compiled import Record, Table, compiled

ENGAGED, ADMITTED, PAUSED, RESUMED, RELEASED, REFUSED = range(6)
"""Codes of gate events, in the order of `artifacts.records.GATE_EVENTS`."""

NOBODY = -1


@compiled
def settle(gate: Record, log: Table, time_s: float) -> None:
    """Engage or release if that was due by `time_s`.

    Every other rule does this first; call it once at the end of a run, so that
    the log is complete. The queues are empty at both moments.
    """
    if not gate.engaged:
        if time_s < gate.engage_s:
            return
        gate.engaged = 1
        note(gate, log, gate.engage_s, ENGAGED, NOBODY)
    if not gate.released and gate.empty_since_s + gate.release_after_s <= time_s:
        gate.released = 1
        note(gate, log, gate.empty_since_s + gate.release_after_s, RELEASED, NOBODY)


@compiled
def request(gate: Record, sessions: Table, log: Table, session: int, weight: int, time_s: float) -> bool:
    """The session's next turn, of `weight`, is ready: True if it may go now.

    False: it queues. It may have given a slot up, so call `fill` afterwards.
    """
    settle(gate, log, time_s)
    asking = sessions[session]
    if not gate.engaged or gate.released:
        asking.started = 1
        return True
    if asking.holds:
        others = gate.held - asking.weight
        if gate.holders == 1 or others + weight <= gate.limit:
            gate.held = others + weight
            asking.weight = weight
            return True
        asking.holds = 0
        gate.held = others
        gate.holders -= 1
    asking.weight = weight
    if gate.paused_first == NOBODY and gate.new_first == NOBODY and fits(gate, weight):
        grant(gate, sessions, log, session, time_s, ADMITTED)
        return True
    enqueue(gate, sessions, session)
    if asking.started:
        note(gate, log, time_s, PAUSED, session)
    return False


@compiled
def end(gate: Record, sessions: Table, log: Table, session: int, time_s: float) -> None:
    """The session is over: its slot is free. Call `fill` afterwards."""
    settle(gate, log, time_s)
    ended = sessions[session]
    if ended.holds:
        ended.holds = 0
        gate.held -= ended.weight
        gate.holders -= 1


@compiled
def withdraw(gate: Record, sessions: Table, session: int, time_s: float) -> None:
    """Take a session that ends out of the queue where it stands, if it does."""
    queued = gate.paused_first != NOBODY or gate.new_first != NOBODY
    gate.paused_first, gate.paused_last = without(sessions, gate.paused_first, session)
    gate.new_first, gate.new_last = without(sessions, gate.new_first, session)
    if queued and gate.paused_first == NOBODY and gate.new_first == NOBODY:
        gate.empty_since_s = time_s
    sessions[session].started = 0


@compiled
def without(sessions: Table, first: int, session: int) -> tuple[int, int]:
    """(first, last) of a queue once `session` is out of it."""
    kept, last = NOBODY, NOBODY
    while first != NOBODY:
        following = sessions[first].next_waiting
        if first != session:
            if last == NOBODY:
                kept = first
            else:
                sessions[last].next_waiting = first
            last = first
        first = following
    if last != NOBODY:
        sessions[last].next_waiting = NOBODY
    return kept, last


@compiled
def fill(gate: Record, sessions: Table, log: Table, time_s: float) -> int:
    """Hand free room to the head of the queues: the session that may go now.

    NOBODY where no one can; call again until it says so.
    """
    session = gate.paused_first if gate.paused_first != NOBODY else gate.new_first
    if session == NOBODY or not fits(gate, sessions[session].weight):
        return NOBODY
    event = RESUMED if sessions[session].started else ADMITTED
    dequeue(gate, sessions)
    grant(gate, sessions, log, session, time_s, event)
    if gate.paused_first == NOBODY and gate.new_first == NOBODY:
        gate.empty_since_s = time_s
    return session


@compiled
def observe(gate: Record, hit: int) -> None:
    """A follow-up finished; an adaptive cap counts whether it was a full hit."""
    gate.followups += 1
    gate.hits += hit


@compiled
def adapt(gate: Record, log: Table, time_s: float) -> None:
    """Move an adaptive limit at the end of an interval. Call `fill` afterwards.

    Fewer full hits than `low_hit` among the interval's follow-ups: the limit
    falls by the factor `decrease`, not below `least`. Otherwise it rises by
    `increase`, if anyone waits.
    """
    settle(gate, log, time_s)
    if gate.engaged and not gate.released and gate.followups:
        waiting = gate.paused_first != NOBODY or gate.new_first != NOBODY
        if gate.hits < gate.low_hit * gate.followups:
            gate.limit = max(gate.least, math.floor(gate.limit * gate.decrease))
        elif waiting:
            gate.limit += gate.increase
    gate.followups = 0
    gate.hits = 0


@compiled
def fits(gate: Record, weight: int) -> bool:
    """Whether a newcomer of `weight` may hold beside the others."""
    return gate.holders == 0 or gate.held + weight <= gate.limit


@compiled
def grant(gate: Record, sessions: Table, log: Table, session: int, time_s: float, event: int) -> None:
    """Give a slot: exactly one event of the log."""
    sessions[session].started = 1
    sessions[session].holds = 1
    gate.held += sessions[session].weight
    gate.holders += 1
    note(gate, log, time_s, event, session)


@compiled
def enqueue(gate: Record, sessions: Table, session: int) -> None:
    """Add to the paused queue if the session has started, else to the new one."""
    sessions[session].next_waiting = NOBODY
    if sessions[session].started:
        if gate.paused_first == NOBODY:
            gate.paused_first = session
        else:
            sessions[gate.paused_last].next_waiting = session
        gate.paused_last = session
    else:
        if gate.new_first == NOBODY:
            gate.new_first = session
        else:
            sessions[gate.new_last].next_waiting = session
        gate.new_last = session
    gate.empty_since_s = math.inf


@compiled
def dequeue(gate: Record, sessions: Table) -> None:
    """Remove the head: the first paused session, else the first new one."""
    if gate.paused_first != NOBODY:
        gate.paused_first = sessions[gate.paused_first].next_waiting
    else:
        gate.new_first = sessions[gate.new_first].next_waiting


@compiled
def note(gate: Record, log: Table, time_s: float, event: int, session: int) -> None:
    """Write one event; the log must have room."""
    entry = log[gate.events]
    entry.time_s = time_s
    entry.event = event
    entry.session = session
    gate.events += 1
