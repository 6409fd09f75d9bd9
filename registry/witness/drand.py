"""drand: public randomness that nobody can know before its time.

Answers are kept as they came, under `archive_path`, and judged again by
whoever verifies: nothing but the chain's key in the policy is trusted, so it
does not matter who served them.
"""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections.abc import Callable
from typing import Any

from registry.beacon import Beacon, BeaconPromise, BeaconValue
from registry.canonical import load_json, sha256_hex
from registry.errors import CapExceeded, DraftError, TrapError, WitnessError
from registry.witness import drand_signature, http
from registry.witness.policy import DrandChain

CAP_BYTES = 65_536
MARGIN_S = 300.0
LAST_ROUND = 2**53 - 1
_NOT_OUT = (404, 425)
_JSON = ("application/json",)
_HEX = re.compile(r"([0-9a-f]{2})*")

Get = Callable[..., bytes]
"""`http.get`, or a stand-in for it."""


class RoundNotOut(WitnessError):
    """A round whose time has not come, by the servers' word."""


def future_round(chain: DrandChain, now_s: float, margin_s: float) -> int:
    """The first round that is out no earlier than `margin_s` after `now_s` (Unix seconds)."""
    after_s = math.ceil(now_s + margin_s) - chain.genesis_s
    return max(1, -(-after_s // chain.period_s) + 1)


def archive_path(chain: DrandChain, number: int) -> str:
    """Where a study keeps the answer for a round, as it came."""
    return f"evidence/beacon/{chain.chain_hash}/{number}.json"


def verify_round(chain: DrandChain, number: int, signature: str) -> None:
    """Check that `signature` is the chain's for a round; WitnessError says why not."""
    if not 1 <= number <= LAST_ROUND:
        raise WitnessError("not a round of a drand chain", where=chain.name, value=number)
    drand_signature.verify(chain.public_key, number, signature, f"{chain.name}, round {number}")


def parse_round(data: bytes, where: str) -> tuple[int, str]:
    """The round and the signature of an answer; further fields may stand in it.

    `randomness`, where given, has to be the signature's SHA-256.
    """
    value = _object(data, where)
    number, signature, randomness = value.get("round"), value.get("signature"), value.get("randomness")
    if type(number) is not int or not 1 <= number <= LAST_ROUND:
        raise WitnessError("the answer names no round", where=where, value=number)
    if not isinstance(signature, str) or not _HEX.fullmatch(signature):
        raise WitnessError("the answer has no signature in lower-case hex", where=where)
    if randomness is not None and randomness != sha256_hex(bytes.fromhex(signature)):
        raise WitnessError("the randomness is not the signature's SHA-256", where=where, value=randomness)
    return number, signature


def read_round(chain: DrandChain, number: int, data: bytes, where: str) -> str:
    """The signature in an answer for one round of a chain, verified."""
    found, signature = parse_round(data, where)
    if found != number:
        raise WitnessError("the answer is for another round", where=where, value=found, remedy=f"fetch round {number}")
    drand_signature.verify(chain.public_key, number, signature, where)
    return signature


def fetch_round(chain: DrandChain, number: int, get: Get = http.get) -> bytes:
    """The answer for a round from the first of the chain's servers with a valid one.

    Raises RoundNotOut where a server says that it is not out and none has it.
    """
    return _first(
        chain, f"public/{number}", lambda data, where: read_round(chain, number, data, where), get, f"round {number}"
    )


def fetch_info(chain: DrandChain, get: Get = http.get) -> bytes:
    """The chain's own description from the first server whose answer fits the pinned chain."""
    return _first(chain, "info", lambda data, where: check_info(chain, data, where), get, "the chain's description")


def check_info(chain: DrandChain, data: bytes, where: str) -> None:
    """Compare a chain's description with the pinned chain; WitnessError for any difference.

    The hash is derived from the other fields, as drand's `Info.Hash` does.
    """
    value = _object(data, where)
    pinned = {
        "hash": chain.chain_hash,
        "public_key": chain.public_key,
        "period": chain.period_s,
        "genesis_time": chain.genesis_s,
        "schemeID": drand_signature.SCHEME,
    }
    for name, wanted in pinned.items():
        if value.get(name) != wanted or type(value.get(name)) is not type(wanted):
            raise WitnessError(f"the chain's {name} is not the pinned one", where=where, value=value.get(name))
    seed, metadata = value.get("groupHash"), value.get("metadata")
    name = metadata.get("beaconID", "") if isinstance(metadata, dict) else ""
    if not isinstance(seed, str) or not _HEX.fullmatch(seed) or not isinstance(name, str):
        raise WitnessError("the chain's groupHash or beaconID is malformed", where=where)
    if chain_hash(chain, seed, name) != chain.chain_hash:
        raise WitnessError("the chain's hash does not fit its description", where=where, value=seed)


def chain_hash(chain: DrandChain, group_hash: str, beacon_id: str) -> str:
    """A chain's hash, lower-case hex, by drand's rule: the chain named `default` leaves its name out."""
    hashed = hashlib.sha256(chain.period_s.to_bytes(4, "big") + chain.genesis_s.to_bytes(8, "big"))
    hashed.update(bytes.fromhex(chain.public_key) + bytes.fromhex(group_hash))
    hashed.update(b"" if beacon_id in ("", "default") else beacon_id.encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()


class DrandBeacon(Beacon):
    """A drand chain as a beacon.

    `read` gives the raw answer for a round (from the archive or the network),
    None while there is none; `clock` is Unix seconds by this machine.
    """

    def __init__(
        self,
        chain: DrandChain,
        read: Callable[[int], bytes | None],
        *,
        clock: Callable[[], float] = time.time,
        margin_s: float = MARGIN_S,
    ) -> None:
        self.chain = chain.name
        self._chain = chain
        self._read = read
        self._clock = clock
        self._margin_s = margin_s

    def promise(self) -> BeaconPromise:
        """The first round at least the margin ahead of now."""
        return BeaconPromise(self.chain, future_round(self._chain, self._clock(), self._margin_s))

    def value(self, promise: BeaconPromise, tag: str) -> BeaconValue | None:
        """The promised round's value, verified; None while it is not out."""
        if promise.chain != self.chain:
            return None
        data = self._read(promise.round)
        if data is None:
            return None
        where = archive_path(self._chain, promise.round)
        signature = read_round(self._chain, promise.round, data, where)
        return BeaconValue(self.chain, promise.round, signature, where)


def _first(chain: DrandChain, path: str, check: Callable[[bytes, str], object], get: Get, what: str) -> bytes:
    """The first answer that passes `check`; the last server's error where none does."""
    hosts = frozenset(http.host_of(url) for url in chain.urls)
    problem: TrapError = WitnessError("the policy names no server of the chain", where=chain.name)
    not_out = False
    for base in chain.urls:
        url = f"{base.rstrip('/')}/{chain.chain_hash}/{path}"
        try:
            data = get(url, hosts=hosts, cap_bytes=CAP_BYTES, types=_JSON)
            check(data, url)
        except http.StatusError as error:
            not_out |= error.status in _NOT_OUT
            problem = error
        except (WitnessError, CapExceeded) as error:
            problem = error
        else:
            return data
    if not_out:
        raise RoundNotOut(f"{what} is not out yet", where=chain.name, remedy="wait for its time, then try again")
    raise problem


def _object(data: bytes, where: str) -> dict[str, Any]:
    try:
        value = load_json(data, where)
    except DraftError as error:
        raise WitnessError(f"the answer is malformed: {error.what}", where=where) from None
    if not isinstance(value, dict):
        raise WitnessError("the answer is not an object", where=where)
    return value
