"""What a trace holds, counted in one pass: memory grows with its distinct blocks alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pyroaring import BitMap64

from registry.traces.session_table import ODDITIES, Malformed, Oddity, Reading, TraceTurn

MOST_SHOWN = 20


class InfiniteCache:
    """A cache that keeps every block: the most that any engine could reuse."""

    def __init__(self) -> None:
        self._scope = -1
        self._local: BitMap64 = BitMap64()
        self._shared: BitMap64 = BitMap64()

    def reused(self, turn: TraceTurn) -> int:
        """How many of the turn's tokens stood in whole blocks that began an
        earlier prompt; the turn's blocks are kept from here on.

        Local scopes come one after the other: a new one begins empty.
        """
        seen = self._seen(turn.scope)
        count = _leading(turn.blocks, seen)
        seen.update(turn.blocks[count:])
        return min(count * turn.block_tokens, turn.prompt_tokens)

    def _seen(self, scope: int) -> BitMap64:
        if scope == 0:
            return self._shared
        if scope != self._scope:
            self._scope, self._local = scope, BitMap64()
        return self._local


def _leading(blocks: tuple[int, ...], seen: BitMap64) -> int:
    """How many blocks from the first on were seen."""
    new = BitMap64(blocks) - seen
    # Nearly always what is new is the end of the prompt, and no block stands twice.
    count = len(blocks) - len(new)
    if not new or new.isdisjoint(BitMap64(blocks[:count])):
        return count
    return next(place for place, block in enumerate(blocks) if block in new)


@dataclass
class Moments:
    """Count, sum and maximum of a stream of numbers."""

    count: int = 0
    total: float = 0.0
    largest: float = 0.0

    def add(self, value: float) -> None:
        """One more value, none negative."""
        self.count += 1
        self.total += value
        self.largest = max(self.largest, value)

    @property
    def mean(self) -> float | None:
        """None where there was no value."""
        return self.total / self.count if self.count else None


@dataclass
class Description:
    """Sums over a trace. `problems` are the first of the malformed ones."""

    sessions: int = 0
    sub_agents: int = 0
    turns: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    reused_tokens: int = 0
    malformed: int = 0
    zero_outputs: int = 0
    block_tokens: int | None = None
    oddities: Counter[str] = field(default_factory=Counter)
    problems: list[Malformed] = field(default_factory=list)
    prompts: Moments = field(default_factory=Moments)
    outputs: Moments = field(default_factory=Moments)
    waits_s: Moments = field(default_factory=Moments)
    measured_waits: int = 0
    last_arrival_s: float = 0.0

    @property
    def infinite_cache_hit_fraction(self) -> float | None:
        """Reused tokens over prompt tokens; None without any."""
        return self.reused_tokens / self.prompt_tokens if self.prompt_tokens else None


def describe(reading: Reading) -> Description:
    """Read a trace to its end."""
    found, cache = Description(oddities=Counter(dict.fromkeys(ODDITIES, 0))), InfiniteCache()
    for item in reading:
        if isinstance(item, Malformed):
            found.malformed += 1
            if len(found.problems) < MOST_SHOWN:
                found.problems.append(item)
        elif isinstance(item, Oddity):
            found.oddities[item.kind] += 1
        else:
            _count(found, item, cache.reused(item))
    return found


def _count(found: Description, turn: TraceTurn, reused: int) -> None:
    found.turns += 1
    found.prompt_tokens += turn.prompt_tokens
    found.output_tokens += turn.output_tokens
    found.reused_tokens += reused
    found.zero_outputs += turn.output_tokens == 0
    found.block_tokens = turn.block_tokens
    found.prompts.add(turn.prompt_tokens)
    found.outputs.add(turn.output_tokens)
    if turn.turn == 1:
        found.sessions += 1
        found.sub_agents += turn.parent is not None
        found.last_arrival_s = max(found.last_arrival_s, turn.arrival_s or 0.0)
    if turn.wait_s is not None:
        found.waits_s.add(turn.wait_s)
        found.measured_waits += turn.wait_measured
