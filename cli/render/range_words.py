"""Ranges, shares and errors in words, the same in tables and in figures' texts."""

from __future__ import annotations

import math
from collections.abc import Iterable

from cli.render.table import number
from verifier.ranges import Range

UNDEFINED = "not defined"


def range_words(found: Range, form: str = "", join: str = " to ") -> str:
    """`4.9 to 5.9`; one number where both ends read the same."""
    if not found.runs:
        return UNDEFINED
    ends = [value_words(value, form) for value in (found.least, found.most)]
    return join.join(dict.fromkeys(ends))


def value_words(value: float, form: str = "") -> str:
    """A value by a format, or in about four digits; in words where undefined."""
    if not math.isfinite(value):
        return UNDEFINED
    return format(value, form) if form else number(value)


def percent_words(share: float) -> str:
    """A relative error as `-2.1%`."""
    return value_words(share, "+.1%")


def rate_words(rate: float | None) -> str:
    """A rate in words."""
    return "a closed population" if rate is None else f"{rate:g} lambda_ref"


def list_words(parts: Iterable[str]) -> str:
    """`a, b and c`."""
    *most, last = list(parts)
    return f"{', '.join(most)} and {last}" if most else last


def count_words(count: int, thing: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
