"""Values of the ledger as people read them: numbers, times, margins, outcomes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from registry.plain_text import plain

MAX_TEXT = 20_000
GOOD, BAD, OPEN = "good", "bad", "open"
"""How a value looks: it stands, it fails, it is not settled. Its words say so too."""

_OUTCOMES = {"PROVEN": GOOD, "REFUTED": BAD, "UNPROVABLE": OPEN, True: GOOD, False: BAD, None: OPEN}
_SPANS = ((120.0, 1.0, "s"), (7200.0, 60.0, "min"), (172_800.0, 3600.0, "h"), (math.inf, 86_400.0, "days"))


def shown(value: Any) -> Any:
    """The value with every text in it as one line of printable characters."""
    if isinstance(value, str):
        return plain(value, MAX_TEXT)
    if isinstance(value, Mapping):
        return {plain(key, MAX_TEXT): shown(item) for key, item in value.items()}
    return [shown(item) for item in value] if isinstance(value, list | tuple) else value


def tone(outcome: str | bool | None) -> str:
    """Of a check's outcome, or of a decision."""
    return _OUTCOMES[outcome]


def number(value: float | bool | None) -> str:
    """Four digits, as tables show them; a verdict in words."""
    if value is None:
        return "undefined"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def share(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:.3g}%"


def span(seconds: float) -> str:
    """A margin with its sign, in the unit that fits: `+3.3 s`, `-12 min`."""
    unit_s, unit = next(row[1:] for row in _SPANS if abs(seconds) < row[0])
    return f"{'-' if seconds < 0 else '+'}{abs(seconds) / unit_s:.3g} {unit}"


def clock_time(time: str) -> str:
    """A time of the records, to the second."""
    return f"{time[:10]} {time[11:19]} UTC"


def rate_words(rate: float | None) -> str:
    """A run's rate, or that its population is closed."""
    return "closed population" if rate is None else f"{rate:g} lambda_ref"


def several(count: int, one: str, many: str | None = None) -> str:
    """`1 run`, `2 runs`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
