"""The simulated KV pool: what running turns hold, and contexts kept for reuse.

Sizes are units: tokens, or blocks where the cell's cache works in blocks. A
running turn's units are never evicted. The context that a turn leaves behind
is idle until its session's next turn takes it or room is needed: then the next
victim loses units from its tail, no more than needed, so what is left of a
context is always a prefix. The next victim is the least recently used context
or, for the oracle, the one used latest in the future. A pinned context is no
victim; it joins the idle ones, as the most recently used, when its pin ends.
An engine does not know that a session has ended: its last context stays.
Invariant: reserved + idle + pinned <= size.
"""

from __future__ import annotations

from runners.simulated import blocks
from runners.simulated.compiled import Record, compiled
from runners.simulated.heap import pop, push
from runners.simulated.state import Run

NONE, IDLE, PINNED = range(3)
"""Where a session's context lies."""

LEAST_RECENT, LATEST_USE = range(2)
"""Eviction orders."""

NOBODY = -1


@compiled
def units_of(engine: Record, tokens: int) -> int:
    """Units that `tokens` occupy."""
    return (tokens + engine.unit_tokens - 1) // engine.unit_tokens


@compiled
def fits(run: Run, session: int, units: int) -> bool:
    """Whether a turn of `session` can hold `units` more, idle ones evicted."""
    engine = run.engine[0]
    pinned = engine.pinned_units
    if run.sessions[session].context == PINNED:
        pinned -= run.sessions[session].kept_units
    return engine.reserved_units + pinned + units <= engine.size_units


@compiled
def has_room(run: Run, units: int) -> bool:
    """Whether turns that run already can hold `units` more."""
    engine = run.engine[0]
    return engine.reserved_units + engine.pinned_units + units <= engine.size_units


@compiled
def take(run: Run, session: int) -> int:
    """Take the session's context out of the pool: the units it still had."""
    owner = run.sessions[session]
    if owner.context == NONE:
        return 0
    kept = owner.kept_units
    unlink(run, session)
    return kept


@compiled
def reserve(run: Run, units: int) -> None:
    """Hold `units` more, which must fit, evicting idle contexts for them."""
    engine = run.engine[0]
    engine.reserved_units += units
    excess = engine.reserved_units + engine.idle_units + engine.pinned_units - engine.size_units
    if excess > 0:
        if engine.sharing:
            blocks.evict(run, excess)
        else:
            evict(run, excess)


@compiled
def release(run: Run, session: int, units: int, keep_units: int, key: float) -> None:
    """End a hold of `units`, leaving a context of `keep_units`.

    `key`: when the context's pin ends, or minus its next use for the oracle.
    """
    engine, owner = run.engine[0], run.sessions[session]
    engine.reserved_units -= units
    if keep_units:
        owner.kept_units = keep_units
        owner.evict_key = key
        link(run, session, PINNED if engine.pin_s > 0 and key > engine.next_s else IDLE)


@compiled
def unpin(run: Run, time_s: float) -> None:
    """Let every pin go that ends by `time_s`."""
    engine = run.engine[0]
    while engine.pinned_oldest != NOBODY and run.sessions[engine.pinned_oldest].evict_key <= time_s:
        session = engine.pinned_oldest
        unlink(run, session)
        link(run, session, IDLE)


@compiled
def evict(run: Run, units: int) -> None:
    """Free exactly `units` idle ones, next victim first, tail first."""
    engine = run.engine[0]
    while units > 0:
        victim = next_victim(run)
        kept = run.sessions[victim].kept_units
        if kept > units:
            run.sessions[victim].kept_units = kept - units
            engine.idle_units -= units
            return
        unlink(run, victim)
        units -= kept


@compiled
def next_victim(run: Run) -> int:
    """The idle context that goes first."""
    if run.engine[0].eviction == LEAST_RECENT:
        return run.engine[0].idle_oldest
    contexts = run.contexts
    while True:
        session = contexts[1].item
        owner = run.sessions[session]
        if owner.context == IDLE and owner.evict_key == contexts[1].key:
            return session
        pop(contexts)


@compiled
def link(run: Run, session: int, kind: int) -> None:
    """Make the session's context the most recently used one of its kind."""
    engine, owner = run.engine[0], run.sessions[session]
    newest = engine.idle_newest if kind == IDLE else engine.pinned_newest
    owner.context = kind
    owner.older = newest
    owner.newer = NOBODY
    if newest != NOBODY:
        run.sessions[newest].newer = session
    if kind == IDLE:
        engine.idle_units += owner.kept_units
        engine.idle_newest = session
        if newest == NOBODY:
            engine.idle_oldest = session
    else:
        engine.pinned_units += owner.kept_units
        engine.pinned_newest = session
        if newest == NOBODY:
            engine.pinned_oldest = session
    if engine.eviction == LATEST_USE:
        if run.contexts[0].item + 1 == len(run.contexts):
            forget_taken(run)
        engine.contexts += 1
        push(run.contexts, owner.evict_key, engine.contexts, session)


@compiled
def forget_taken(run: Run) -> None:
    """Drop the heap's entries of contexts that are no longer idle as they were."""
    contexts = run.contexts
    size = contexts[0].item
    contexts[0].item = 0
    for place in range(1, size + 1):
        entry = contexts[place]
        owner = run.sessions[entry.item]
        if owner.context == IDLE and owner.evict_key == entry.key:
            push(contexts, entry.key, entry.rank, entry.item)


@compiled
def unlink(run: Run, session: int) -> None:
    """Take the session's context out of its list."""
    engine, owner = run.engine[0], run.sessions[session]
    if owner.newer != NOBODY:
        run.sessions[owner.newer].older = owner.older
    elif owner.context == IDLE:
        engine.idle_newest = owner.older
    else:
        engine.pinned_newest = owner.older
    if owner.older != NOBODY:
        run.sessions[owner.older].newer = owner.newer
    elif owner.context == IDLE:
        engine.idle_oldest = owner.newer
    else:
        engine.pinned_oldest = owner.newer
    if owner.context == IDLE:
        engine.idle_units -= owner.kept_units
    else:
        engine.pinned_units -= owner.kept_units
    owner.context = NONE
