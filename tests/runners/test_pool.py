"""The KV pool: size, conservation, LRU order, eviction from the tail."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.simulated.pool import KVPool

SIZE_TOKENS = 100
# One operation: session, tokens to reserve, tokens of those to keep.
OPERATIONS = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 60), st.integers(0, 60)), max_size=80)


class SlowPool:
    """The same pool, one token at a time; `idle` is oldest first."""

    def __init__(self) -> None:
        self.running: dict[str, int] = {}
        self.idle: list[tuple[str, int]] = []

    def used(self) -> int:
        return sum(self.running.values()) + sum(kept for _, kept in self.idle)

    def reserve(self, session: str, tokens: int) -> int:
        kept = dict(self.idle).get(session, 0)
        self.idle = [(name, size) for name, size in self.idle if name != session]
        self.running[session] = tokens
        while self.used() > SIZE_TOKENS:
            name, size = self.idle[0]
            self.idle[0:1] = [(name, size - 1)] if size > 1 else []
        return kept

    def release(self, session: str, keep: int) -> None:
        del self.running[session]
        if keep:
            self.idle.append((session, keep))


@given(OPERATIONS)
def test_any_sequence_agrees_with_a_pool_that_counts_single_tokens(
    operations: list[tuple[int, int, int]],
) -> None:
    pool, slow = KVPool(SIZE_TOKENS), SlowPool()
    for number, tokens, keep in operations:
        session = f"base-{number}"
        if session in slow.running:
            reserved = slow.running[session]
            pool.release(session, reserved, min(keep, reserved))
            slow.release(session, min(keep, reserved))
        elif pool.fits(tokens):
            assert pool.reserve(session, tokens) == slow.reserve(session, tokens)
        else:
            assert sum(slow.running.values()) + tokens > SIZE_TOKENS
        assert pool.contexts() == slow.idle
        assert pool.reserved_tokens == sum(slow.running.values()) >= 0
        assert pool.idle_tokens == sum(kept for _, kept in slow.idle) >= 0
        assert pool.reserved_tokens + pool.idle_tokens <= SIZE_TOKENS


def test_the_least_recently_used_context_loses_its_tail_first() -> None:
    pool = KVPool(SIZE_TOKENS)
    for session in ("base-0", "base-1", "base-2"):
        pool.reserve(session, 30)
        pool.release(session, 30, 30)
    pool.reserve("base-3", 25)
    assert pool.contexts() == [("base-0", 15), ("base-1", 30), ("base-2", 30)]
    assert pool.reserve("base-0", 40) == 15
    assert pool.contexts() == [("base-1", 5), ("base-2", 30)]


def test_a_request_keeps_its_own_context_while_others_give_way() -> None:
    pool = KVPool(SIZE_TOKENS)
    pool.reserve("base-0", 60)
    pool.release("base-0", 60, 60)
    pool.reserve("base-1", 40)
    pool.release("base-1", 40, 40)
    assert pool.reserve("base-0", 90) == 60
    assert pool.contexts() == [("base-1", 10)]


def test_misuse_is_refused() -> None:
    pool = KVPool(SIZE_TOKENS)
    pool.reserve("base-0", 60)
    with pytest.raises(ValueError, match="do not fit"):
        pool.reserve("base-1", 41)
    with pytest.raises(ValueError, match="cannot keep"):
        pool.release("base-0", 60, 61)
    with pytest.raises(ValueError, match="cannot keep"):
        pool.release("base-0", 61, 1)
