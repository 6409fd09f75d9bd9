"""The KV pool: size, conservation, eviction order, eviction from the tail."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core import interpreted

SIZE, SESSIONS = 100, 6
# One operation: session, units to hold, units of those to keep.
OPERATIONS = st.lists(st.tuples(st.integers(0, SESSIONS - 1), st.integers(1, 60), st.integers(0, 60)), max_size=80)

core = interpreted()
pool, state = core["pool"], core["state"]


def empty_pool(size: int = SIZE, pin_s: float = 0.0, eviction: int = pool.LEAST_RECENT) -> Any:
    nobody = dict.fromkeys(("idle_oldest", "idle_newest", "pinned_oldest", "pinned_newest"), pool.NOBODY)
    values = {"size_units": size, "unit_tokens": 1, "pin_s": pin_s, "eviction": eviction, **nobody}
    tables = dict.fromkeys(state.Run._fields)
    tables["engine"] = state.table(state.ENGINE, 1, **values)
    tables["sessions"] = state.table(state.SESSION, SESSIONS)
    tables["contexts"] = state.table(state.HEAP, 2 * SESSIONS + 3)
    return state.Run(**tables)


def idle_contexts(run: Any) -> list[tuple[int, int]]:
    """(session, units) of the idle contexts, next victim first."""
    found, session = [], run.engine[0].idle_oldest
    while session != pool.NOBODY:
        found.append((session, run.sessions[session].kept_units))
        session = run.sessions[session].newer
    return found


class SlowPool:
    """The same pool, one unit at a time; `idle` is in order of eviction."""

    def __init__(self) -> None:
        self.running: dict[int, int] = {}
        self.idle: list[tuple[int, int]] = []

    def used(self) -> int:
        return sum(self.running.values()) + sum(kept for _, kept in self.idle)

    def reserve(self, session: int, units: int) -> int:
        kept = dict(self.idle).get(session, 0)
        self.idle = [(name, size) for name, size in self.idle if name != session]
        self.running[session] = units
        while self.used() > SIZE:
            name, size = self.idle[0]
            self.idle[0:1] = [(name, size - 1)] if size > 1 else []
        return kept

    def release(self, session: int, keep: int) -> None:
        del self.running[session]
        if keep:
            self.idle.append((session, keep))


@given(OPERATIONS)
@settings(deadline=None)
def test_any_sequence_agrees_with_a_pool_that_counts_single_units(operations: list[tuple[int, int, int]]) -> None:
    run, slow = empty_pool(), SlowPool()
    engine = run.engine[0]
    for session, units, keep in operations:
        if session in slow.running:
            reserved = slow.running[session]
            pool.release(run, session, reserved, min(keep, reserved), 0.0)
            slow.release(session, min(keep, reserved))
        elif pool.fits(run, session, units):
            kept = pool.take(run, session)
            pool.reserve(run, units)
            assert kept == slow.reserve(session, units)
        else:
            assert sum(slow.running.values()) + units > SIZE
        assert idle_contexts(run) == slow.idle
        assert engine.reserved_units == sum(slow.running.values()) >= 0
        assert engine.idle_units == sum(kept for _, kept in slow.idle) >= 0
        assert engine.reserved_units + engine.idle_units <= SIZE


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 99)), min_size=2, max_size=SESSIONS, unique_by=lambda u: u[1])
)
@settings(deadline=None)
def test_the_oracle_evicts_whoever_returns_last(contexts: list[tuple[int, int]]) -> None:
    run = empty_pool(size=sum(units for units, _ in contexts), eviction=pool.LATEST_USE)
    for session, (units, returns_s) in enumerate(contexts):
        pool.reserve(run, units)
        pool.release(run, session, units, units, -float(returns_s))
    last = max(range(len(contexts)), key=lambda session: contexts[session][1])
    pool.reserve(run, 1)
    kept = [run.sessions[session].kept_units for session in range(len(contexts))]
    assert kept[last] == contexts[last][0] - 1 or run.sessions[last].context == pool.NONE
    others = [session for session in range(len(contexts)) if session != last]
    assert [kept[session] for session in others] == [contexts[session][0] for session in others]


def test_the_oracle_evicts_contexts_of_ended_sessions_first() -> None:
    run = empty_pool(size=20, eviction=pool.LATEST_USE)
    for session, key in ((0, -50.0), (1, -math.inf)):
        pool.reserve(run, 10)
        pool.release(run, session, 10, 10, key)
    pool.reserve(run, 10)
    assert (run.sessions[0].kept_units, run.sessions[1].context) == (10, pool.NONE)


def test_a_pinned_context_is_no_victim_until_its_pin_ends() -> None:
    run = empty_pool(size=20, pin_s=5.0)
    run.engine[0].next_s = 100.0
    for session, ends_s in ((0, 105.0), (1, -math.inf)):
        pool.reserve(run, 10)
        pool.release(run, session, 10, 10, ends_s)
    assert pool.fits(run, 2, 10) and not pool.fits(run, 2, 11)
    assert pool.fits(run, 0, 20), "a session's own pin does not block it"
    pool.reserve(run, 10)
    assert (run.sessions[0].context, run.sessions[1].context) == (pool.PINNED, pool.NONE)
    pool.unpin(run, 104.9)
    assert run.sessions[0].context == pool.PINNED
    pool.unpin(run, 105.0)
    assert (run.sessions[0].context, idle_contexts(run)) == (pool.IDLE, [(0, 10)])


@pytest.mark.parametrize("count", [1, 40])
def test_the_oracles_heap_does_not_grow_with_the_run(count: int) -> None:
    run = empty_pool(size=60, eviction=pool.LATEST_USE)
    for step in range(count * SESSIONS):
        session = step % SESSIONS
        pool.take(run, session)
        pool.reserve(run, 10)
        pool.release(run, session, 10, 10, -float(step))
    assert len(run.contexts) == 2 * SESSIONS + 3
    assert run.engine[0].idle_units == 60
