"""RFC 3161 tokens over a registration's digest, as sightings."""

from __future__ import annotations

from collections.abc import Callable

from registry.canonical import sha256_hex
from registry.errors import TrapError
from registry.witness.archive import timestamp_path
from registry.witness.policy import Policy
from registry.witness.sightings import Sighting

MAX_AUTHORITIES = 8


def stamped_sightings(
    tag: str, frozen: bytes | None, read: Callable[[str], bytes | None], policy: Policy
) -> tuple[list[Sighting], list[str]]:
    """The tokens that hold under a root of the policy, and why others do not.

    `frozen` are the bytes of the tagged file, whose SHA-256 the tokens sign.
    """
    sightings: list[Sighting] = []
    unusable: list[str] = []
    for number in range(1, MAX_AUTHORITIES + 1):
        path = timestamp_path(tag, number)
        token = read(path)
        if token is None or frozen is None:
            continue
        from registry.witness.timestamp_authority import verify_token

        digest = sha256_hex(frozen)
        try:
            stamp = verify_token(token, digest, policy.timestamp_roots)
        except TrapError as error:
            unusable.append(f"the timestamp token {path}: {error.what}")
            continue
        words = f"token signed by {stamp.authority}"
        sightings.append(Sighting("timestamp authority", "timestamp", stamp.time, words, independent=True, seen=digest))
    return sightings, unusable
