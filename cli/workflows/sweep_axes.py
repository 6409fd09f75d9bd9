"""The axes of a sweep as they are typed: lists and ranges, checked and counted.

`1.0:2.0:0.25` is 1, 1.25, 1.5, 1.75 and 2: FROM:TO:STEP, both ends included,
STEP 1 where it is left out. Numbers are decimals, so a step adds no error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from registry.design import EVICTIONS, ORDERS
from registry.errors import StudyError

MOST_VALUES = 100_000
NONE = "none"

_MOST_TEXT = 1_000_000
_NUMBER = re.compile(r"([0-9]{1,16}(?:\.[0-9]{1,9})?)([kM]?)")
_TIMES = {"": Decimal(1), "k": Decimal(1000), "M": Decimal(1_000_000)}

Value = float | int | str | None
"""One value of an axis; None: no cap, or no arrival rate."""


@dataclass(frozen=True)
class Axis:
    """One axis: its column's name, its command-line option, what it accepts.

    `words` are all its values where it has words; else numbers from `least` to
    `most`, `whole` ones or any, and `none` where `optional`.
    """

    name: str
    option: str
    label: str
    least: Decimal = Decimal(0)
    most: Decimal = Decimal(0)
    whole: bool = True
    optional: bool = False
    words: tuple[str, ...] = ()


AXES: dict[str, Axis] = {
    axis.name: axis
    for axis in (
        Axis("seed", "--seeds", "literal seed", most=Decimal(2**53 - 1)),
        Axis("rate", "--rates", "arrival rate, multiples of lambda_ref", Decimal("1e-9"), Decimal(1000), whole=False),
        Axis("burst_sessions", "--bursts", "sessions in the burst", most=Decimal(100_000)),
        Axis("cap", "--caps", "session cap at the client", Decimal(1), Decimal(1_000_000), optional=True),
        Axis("pool_tokens", "--pools", "KV pool, tokens", Decimal(1), Decimal(10**10)),
        Axis("order", "--orders", "order of the waiting queue", words=ORDERS),
        Axis("eviction", "--evictions", "eviction of contexts", words=EVICTIONS),
    )
}
"""Every axis, the outermost first: a sweep goes through the whole grid of the
others for one seed, and then for the next.
"""


def values_of(axis: Axis, text: str) -> tuple[Value, ...]:
    """The values of an axis, in the order typed.

    StudyError for what is no value, out of bounds, there twice, or too much.
    """
    if len(text) > _MOST_TEXT:
        raise StudyError("the list is too long", where=axis.option, value=f"{text[:40]}…", remedy=_form(axis))
    values: list[Value] = []
    for item in text.split(","):
        values += _of_item(axis, item.strip())
        _check_count(axis, len(values))
    twice = [value for value, count in Counter(values).items() if count > 1]
    if twice:
        raise StudyError("a value stands twice", where=axis.option, value=shown(twice[0]), remedy="name each once")
    if axis.name == "seed" and text.strip().isdecimal():
        raise StudyError(
            "one number could be a seed or a count",
            where=axis.option,
            value=text,
            remedy="0:0 is the seed 0 alone, 0:39 are forty seeds",
        )
    return tuple(values)


def _of_item(axis: Axis, item: str) -> Sequence[Value]:
    if axis.words:
        if item not in axis.words:
            raise StudyError("no such value", where=axis.option, value=item, remedy=f"of: {', '.join(axis.words)}")
        return [item]
    if axis.optional and item == NONE:
        return [None]
    return [_number(axis, number, item) for number in _decimals(axis, item)]


def _decimals(axis: Axis, item: str) -> Iterator[Decimal]:
    """The numbers of one item, counted before any is made."""
    parts = [_NUMBER.fullmatch(part) for part in item.split(":")]
    if not 1 <= len(parts) <= 3 or None in parts:
        raise StudyError("not a number, and no range of numbers", where=axis.option, value=item, remedy=_form(axis))
    numbers = [Decimal(part[1]) * _TIMES[part[2]] for part in parts if part]
    if len(numbers) == 1:
        return iter(numbers)
    first, last, step = (*numbers, Decimal(1))[:3]
    if not step or last < first:
        raise StudyError("the range never gets to its end", where=axis.option, value=item, remedy=_form(axis))
    count = int((last - first) / step) + 1
    _check_count(axis, count)
    return (first + step * place for place in range(count))


def _number(axis: Axis, number: Decimal, item: str) -> int | float:
    if not axis.least <= number <= axis.most or (axis.whole and number % 1):
        kind = "a whole number" if axis.whole else "a number"
        bounds = f"{kind} from {axis.least:f} to {axis.most:f}" if axis.whole else f"above 0, at most {axis.most:f}"
        raise StudyError("the value is out of bounds", where=axis.option, value=item, remedy=bounds)
    return int(number) if axis.whole else float(number)


def _check_count(axis: Axis, count: int) -> None:
    if count > MOST_VALUES:
        raise StudyError("too many values", where=axis.option, value=count, remedy=f"at most {MOST_VALUES} an axis")


def _form(axis: Axis) -> str:
    return f"values and ranges FROM:TO:STEP with commas between them{', or none' if axis.optional else ''}"


def shown(value: Value) -> str:
    """A value as it is typed: `none`, `1.35`, `300000`."""
    return NONE if value is None else f"{value:.15g}" if isinstance(value, float) else str(value)
