"""Public randomness that comes after a registration.

A registration freezes a promise (chain and round); the value appears only
after its push, and the plans are drawn from it. A chain is `local-witness`,
`witness:<digest of a server's key>` or `drand:<chain hash>`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BeaconPromise:
    """The beacon round that a registration waits for; round 0 is drawn by a
    witness at the push.
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
