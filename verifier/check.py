"""Checks and their three outcomes. Missing evidence never passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What a check came to."""

    PROVEN = "PROVEN"
    REFUTED = "REFUTED"
    UNPROVABLE = "UNPROVABLE"


@dataclass(frozen=True)
class Check:
    """One statement, its outcome and the reason in words.

    A check that the claim does not need (`needed` False) is shown and not
    counted. A check with children has the worst of their outcomes.
    """

    name: str
    outcome: Outcome
    reason: str
    needed: bool = True
    children: tuple[Check, ...] = ()

    def leaves(self) -> Iterator[Check]:
        """All checks below that have no children, or the check itself."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


def proven(name: str, reason: str, needed: bool = True) -> Check:
    """A check that holds."""
    return Check(name, Outcome.PROVEN, reason, needed)


def refuted(name: str, reason: str, needed: bool = True) -> Check:
    """A check that evidence contradicts."""
    return Check(name, Outcome.REFUTED, reason, needed)


def unprovable(name: str, reason: str, needed: bool = True) -> Check:
    """A check for which evidence is missing."""
    return Check(name, Outcome.UNPROVABLE, reason, needed)


def group(name: str, children: list[Check], reason: str) -> Check:
    """A check over others: refuted if one is, else unprovable if one is."""
    needed = [child for child in children if child.needed]
    for outcome in (Outcome.REFUTED, Outcome.UNPROVABLE):
        bad = [child for child in needed if child.outcome is outcome]
        if bad:
            more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            return Check(name, outcome, f"{bad[0].name}: {bad[0].reason}{more}", children=tuple(children))
    return Check(name, Outcome.PROVEN, reason, children=tuple(children))
