"""Rows of a push log, in the words of GitHub's activity log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from registry.beacon import BeaconPromise, BeaconValue
from registry.timestamps import moment


@dataclass(frozen=True)
class PushRow:
    """One ref update as a witness logged it.

    `timestamp` is RFC 3339 in UTC by the witness's clock. `beacon`, the hex
    bytes drawn at a registration tag's first push, and `previous`, the SHA-256
    of the row before, stand only in logs of our own witnesses.
    """

    id: int
    timestamp: str
    ref: str
    before: str
    after: str
    activity_type: str
    beacon: str | None = None
    previous: str | None = None

    @property
    def deletion(self) -> bool:
        """Whether the row deletes its ref."""
        return set(self.after) == {"0"}


def rows_of(rows: Iterable[PushRow], ref: str) -> list[PushRow]:
    """The rows of one ref, in the order given."""
    return [row for row in rows if row.ref == ref]


def drawn_in(rows: Iterable[PushRow], promise: BeaconPromise, tag: str) -> BeaconValue | None:
    """The value that a witness drew at a tag's first push, by its log; None
    while there is none.
    """
    drawn = [row for row in rows_of(rows, f"refs/tags/{tag}") if row.beacon]
    if promise.round != 0 or not drawn:
        return None
    return BeaconValue(promise.chain, 0, str(drawn[0].beacon), f"row {drawn[0].id} of the push log")


def in_order(rows: Iterable[PushRow]) -> Sequence[PushRow]:
    """The rows by time, then by id: the order in which they are judged."""
    return sorted(rows, key=lambda row: (moment(row.timestamp), row.id))
