"""How many turns a session has: laws on 1 .. max_turns, as exact fractions.

Exact, so that the integer tables made from them are the same on every
machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol


class TurnLaw(Protocol):
    """A law of the turn count T on 1 .. max_turns; hashable, so that tables
    made from it can be kept.
    """

    def __hash__(self) -> int: ...

    @property
    def max_turns(self) -> int:
        """The largest turn count."""

    def survival(self, turn: int) -> Fraction:
        """S_k = P(T >= k), exact; 1 for k <= 1 and 0 beyond `max_turns`."""


def mean_turns(law: TurnLaw) -> float:
    """E[T], turns a session."""
    return float(sum(law.survival(k) for k in range(1, law.max_turns + 1)))


def survivals(law: TurnLaw) -> list[float]:
    """S_1 .. S_max_turns as floats."""
    return [float(law.survival(k)) for k in range(1, law.max_turns + 1)]


@dataclass(frozen=True)
class TruncatedGeometric:
    """T = min(Geometric(1/mean_turns), max_turns), support 1 .. max_turns.

    `mean_turns` is the mean of the untruncated law, an integer of at least 1.
    The paper's standard workload is (15, 60), its MIRROR (1000, 20).
    """

    mean_turns: int
    max_turns: int

    def __post_init__(self) -> None:
        if self.mean_turns < 1 or self.max_turns < 1:
            raise ValueError("mean_turns and max_turns must be at least 1")

    def survival(self, turn: int) -> Fraction:
        """P(T >= turn)."""
        if turn <= 1:
            return Fraction(1)
        if turn > self.max_turns:
            return Fraction(0)
        return (1 - Fraction(1, self.mean_turns)) ** (turn - 1)


@dataclass(frozen=True)
class FixedTurns:
    """Every session has `turns` turns."""

    turns: int

    def __post_init__(self) -> None:
        if self.turns < 1:
            raise ValueError("turns must be at least 1")

    @property
    def max_turns(self) -> int:
        """The turn count."""
        return self.turns

    def survival(self, turn: int) -> Fraction:
        """P(T >= turn)."""
        return Fraction(int(turn <= self.turns))


@dataclass(frozen=True)
class TabledTurns:
    """P(T = k) in proportion to `weights[k - 1]`, non-negative integers."""

    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.weights or min(self.weights) < 0 or self.weights[-1] == 0:
            raise ValueError("weights must be non-negative integers, the last of them positive")

    @property
    def max_turns(self) -> int:
        """The largest turn count."""
        return len(self.weights)

    @cached_property
    def _tails(self) -> tuple[int, ...]:
        tails, total = [], 0
        for weight in reversed(self.weights):
            total += weight
            tails.append(total)
        return tuple(reversed(tails))

    def survival(self, turn: int) -> Fraction:
        """P(T >= turn)."""
        if turn <= 1:
            return Fraction(1)
        return Fraction(self._tails[turn - 1], self._tails[0]) if turn <= self.max_turns else Fraction(0)


def empirical_turns(counts: Sequence[int] | Mapping[int, int]) -> TabledTurns:
    """The law of observed turn counts: a list of them, or count by turns."""
    tally = dict(counts) if isinstance(counts, Mapping) else dict(Counter(counts))
    if not tally or min(tally) < 1:
        raise ValueError("at least one session, each with at least one turn, is needed")
    return TabledTurns(tuple(tally.get(k, 0) for k in range(1, max(tally) + 1)))
