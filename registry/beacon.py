"""Public randomness that comes after a registration.

A registration freezes a promise (chain and round); the value appears only
after its push, and the plans are drawn from it. The local witness and drand
are beacons of this one form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class BeaconPromise:
    """The beacon round that a registration waits for; round 0 is drawn by the
    local witness at the push.
    """

    chain: str
    round: int


@dataclass(frozen=True)
class BeaconValue:
    """A beacon's answer: lower-case hex `signature`, and where it was read."""

    chain: str
    round: int
    signature: str
    source: str


class Beacon(Protocol):
    """A chain of public random values."""

    chain: str

    def promise(self) -> BeaconPromise:
        """The round that a registration made now waits for."""

    def value(self, promise: BeaconPromise, tag: str) -> BeaconValue | None:
        """The promised round's value for a tag, None while it is not out."""
