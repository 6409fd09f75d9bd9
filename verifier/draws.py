"""The beacon value that a registration's plans were drawn from, and its worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from registry.beacon import BeaconValue
from registry.errors import TrapError
from registry.registration import Registration
from registry.timestamps import timestamp_of
from registry.witness.archive import beacon_path
from registry.witness.checkpoint import chain_name
from registry.witness.drand import parse_round, verify_round
from registry.witness.policy import DrandChain, Policy
from registry.witness.rows import drawn_in
from registry.witness.sightings import PushLog

Read = Callable[[str], bytes | None]
"""Reads a file of the study's head."""


@dataclass(frozen=True)
class Draw:
    """What is known of a registration's beacon value.

    `trusted`: its chain or server is the auditor's policy's. `out_at` is when
    its round was out, by the policy's chain. `refuted` is a contradiction;
    then there is no value.
    """

    value: BeaconValue | None = None
    trusted: bool = False
    out_at: str | None = None
    refuted: str | None = None
    missing: str | None = None


def draw_of(registration: Registration, logs: Sequence[PushLog], read: Read, policy: Policy) -> Draw:
    """The draw of one registration; without need of one, an empty one."""
    chain = registration.beacon.chain
    if not registration.waits_for_beacon:
        return Draw()
    if chain.startswith("drand:"):
        return _drand(registration, read, policy.chain(chain))
    trusted = chain in {chain_name(server.key) for server in policy.witness_servers}
    for log in sorted((log for log in logs if log.draws == chain), key=lambda log: not log.independent):
        value = drawn_in(log.rows, registration.beacon, registration.tag)
        if value:
            return Draw(value, trusted=trusted and log.independent)
    return Draw(missing=f"no beacon value of {chain} is known: not drawn yet")


def _drand(registration: Registration, read: Read, chain: DrandChain | None) -> Draw:
    promise = registration.beacon
    path = beacon_path(promise.chain.removeprefix("drand:"), promise.round)
    data = read(path)
    out_at = timestamp_of(chain.time_s(promise.round)) if chain else None
    if data is None:
        return Draw(
            trusted=chain is not None,
            out_at=out_at,
            missing=f"round {promise.round} is not in the study's archive: not drawn yet",
        )
    try:
        number, signature = parse_round(data, path)
        if number != promise.round:
            return Draw(
                trusted=chain is not None,
                out_at=out_at,
                refuted=f"{path} holds round {number}, promised was {promise.round}",
            )
        if chain is None:
            value = BeaconValue(promise.chain, number, signature, path)
            return Draw(value, missing="its chain is not in your policy: nothing shows that the value is the chain's")
        verify_round(chain, number, signature)
    except TrapError as error:
        return Draw(trusted=chain is not None, out_at=out_at, refuted=f"{path}: {error.what}")
    return Draw(BeaconValue(promise.chain, number, signature, path), trusted=True, out_at=out_at)
