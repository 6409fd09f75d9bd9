"""What trying a draft's rules may cost, the same on every machine.

A hostile draft can hold rules whose trials would take minutes. Their cost is
counted, not timed: a draft is readable everywhere or nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from registry.errors import CapExceeded
from registry.rule_text import Token

MAX_WORK = 4_000_000
"""Roughly a second; the shipped rule files need less than a fiftieth of it."""

_READ = 4
_EVALUATE = 30


class Work:
    """A budget for one draft; CapExceeded once it is spent."""

    def __init__(self, limit: int = MAX_WORK) -> None:
        self.spent = 0
        self._limit = limit

    def spend(self, units: int, where: str) -> None:
        """Count work before it is done."""
        self.spent += units
        if self.spent > self._limit:
            raise CapExceeded(
                "the rules take too much work to try",
                where=where,
                remedy="fewer or shorter rules, of fewer names and seeds",
            )

    def read(self, text: str, where: str) -> None:
        """Count the reading of a rule's text."""
        self.spend(_READ * len(text), where)


def evaluation_cost(tokens: list[Token], values: Mapping[str, Any]) -> int:
    """The work of one evaluation. CEL copies all names' values at every name,
    and every entry of a list once.
    """
    named = sum(token.kind == "name" for token in tokens)
    entries = sum(len(value) for value in values.values() if isinstance(value, list))
    return _EVALUATE + len(tokens) + named * len(values) + entries
