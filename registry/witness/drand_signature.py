"""BLS signatures of drand rounds (scheme `bls-unchained-g1-rfc9380`).

The message is SHA-256 of the round as eight big-endian bytes, hashed to G1
(RFC 9380); signatures are points of G1, keys of G2, on BLS12-381. A round has
one valid point, and the point one accepted spelling: whoever draws plans from
the text of a signature cannot choose among several.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from registry.errors import WitnessError

SCHEME = "bls-unchained-g1-rfc9380"
_TAG = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"
_SIGNATURE = re.compile(r"[0-9a-f]{96}")
_PUBLIC_KEY = re.compile(r"[0-9a-f]{192}")
_INFINITY = 0x40
GENERATOR = (
    "93e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e"
    "024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"
)
"""G2's generator, compressed."""


def message_point(number: int) -> Any:
    """The point of G1 that a round's signature multiplies by the secret key."""
    from pyblst import BlstP1Element

    return BlstP1Element.hash_to_group(hashlib.sha256(number.to_bytes(8, "big")).digest(), _TAG)


def verify(public_key: str, number: int, signature: str, where: str) -> None:
    """Check a signature (compressed, lower-case hex) of a round by a key.

    Raises WitnessError where it is spelled in another way, is no point of the
    group, is the point at infinity, or was not made by the key for the round.
    """
    from pyblst import final_verify, miller_loop

    point = _point("signature", signature, where)
    key = _point("public key", public_key, where)
    generator = _point("generator", GENERATOR, where)
    if not final_verify(miller_loop(point, generator), miller_loop(message_point(number), key)):
        raise WitnessError(
            f"the signature is not the chain's for round {number}",
            where=where,
            value=signature,
            remedy="fetch the round again, from drand itself",
        )


def _point(what: str, text: str, where: str) -> Any:
    """The point that a canonical hex text spells; subgroup membership is checked by blst."""
    from pyblst import BlstP1Element, BlstP2Element

    form, group = (_SIGNATURE, BlstP1Element) if what == "signature" else (_PUBLIC_KEY, BlstP2Element)
    if not form.fullmatch(text):
        raise WitnessError(f"the {what} is not lower-case hex of the right length", where=where, value=text[:200])
    data = bytes.fromhex(text)
    if data[0] & _INFINITY:
        raise WitnessError(f"the {what} is the point at infinity", where=where, value=text)
    try:
        point = group.uncompress(data)
    except ValueError:
        raise WitnessError(f"the {what} is not a point of its group", where=where, value=text) from None
    if point.compress() != data:
        raise WitnessError(f"the {what} is not spelled canonically", where=where, value=text)
    return point
