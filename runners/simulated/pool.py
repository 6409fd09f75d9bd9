"""The simulated KV pool: reservations of running requests, LRU of contexts.

All sizes are tokens. A running request reserves its prompt and output in
full; its reservation is never evicted. The context a finished turn leaves
behind is idle until its session's next turn reuses it or room is needed: then
the least recently used context loses tokens from its tail, no more than
needed, so what is left of a context is always a prefix. An engine does not
know that a session ended; such contexts stay until they are evicted.
Invariant: reserved + idle <= size.
"""

from __future__ import annotations

from collections import OrderedDict


class KVPool:
    """A pool of `size_tokens`; contexts are named by their session.

    `reserved_tokens` and `idle_tokens` are the totals of the two kinds.
    """

    __slots__ = ("_idle", "idle_tokens", "reserved_tokens", "size_tokens")

    def __init__(self, size_tokens: int) -> None:
        self.size_tokens = size_tokens
        self.reserved_tokens = 0
        self.idle_tokens = 0
        self._idle: OrderedDict[str, int] = OrderedDict()

    def contexts(self) -> list[tuple[str, int]]:
        """(session, kept prefix) of the idle contexts, next victim first."""
        return list(self._idle.items())

    def fits(self, tokens: int) -> bool:
        """Whether a request of `tokens` can run now, idle contexts evicted."""
        return self.reserved_tokens + tokens <= self.size_tokens

    def reserve(self, session: str, tokens: int) -> int:
        """Reserve for a request that fits; returns its session's kept prefix.

        The session's own context becomes part of the reservation before
        others are evicted for the rest. ValueError if it does not fit.
        """
        reserved = self.reserved_tokens + tokens
        if reserved > self.size_tokens:
            raise ValueError(f"{tokens} tokens do not fit beside {self.reserved_tokens}")
        self.reserved_tokens = reserved
        kept = self._idle.pop(session, 0)
        self.idle_tokens -= kept
        excess = reserved + self.idle_tokens - self.size_tokens
        if excess > 0:
            self._evict(excess)
        return kept

    def release(self, session: str, tokens: int, keep_tokens: int) -> None:
        """End a reservation of `tokens`, leaving a context of `keep_tokens`.

        The context becomes the most recently used. ValueError if it is larger
        than its reservation, or more is released than is reserved.
        """
        if not 0 <= keep_tokens <= tokens <= self.reserved_tokens:
            raise ValueError(f"cannot keep {keep_tokens} of {tokens} reserved tokens")
        self.reserved_tokens -= tokens
        if keep_tokens:
            self.idle_tokens += keep_tokens - self._idle.pop(session, 0)
            self._idle[session] = keep_tokens

    def _evict(self, tokens: int) -> None:
        """Free exactly `tokens` idle tokens, oldest context first, tail first."""
        self.idle_tokens -= tokens
        idle = self._idle
        while tokens:
            session, kept = idle.popitem(last=False)
            if kept > tokens:
                idle[session] = kept - tokens
                idle.move_to_end(session, last=False)
                return
            tokens -= kept
