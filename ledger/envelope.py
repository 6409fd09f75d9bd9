"""Statements in signed envelopes: in-toto Statements (v1) in DSSE (v1).

A signature covers the payload's type and bytes (DSSE's pre-authentication
encoding), so that nobody has to agree on how JSON is written to check it.
Ed25519; a key's id is its fingerprint, as `ssh-keygen -l` prints it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from registry.canonical import canonical_bytes, load_json
from registry.errors import CapExceeded, RecordError, TrapError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
MAX_ENVELOPE_BYTES = 67_108_864
MAX_SIGNATURES = 16


@dataclass(frozen=True)
class Envelope:
    """An envelope as it was read: `payload` is the statement's bytes, `signatures`
    pairs of key id and signature, which nobody has checked yet.
    """

    payload: bytes
    signatures: tuple[tuple[str, bytes], ...]

    def statement(self) -> dict[str, Any]:
        """The statement; RecordError where the payload is none."""
        try:
            value = load_json(self.payload, "the payload of an envelope", MAX_ENVELOPE_BYTES)
        except TrapError as error:
            raise RecordError(f"the payload is not an in-toto statement: {error.what}") from None
        if not isinstance(value, dict) or value.get("_type") != STATEMENT_TYPE:
            raise RecordError("the payload is not an in-toto statement", remedy=f"its _type is {STATEMENT_TYPE}")
        return value

    def as_json(self) -> dict[str, Any]:
        """The envelope as a JSON value."""
        return {
            "payload": base64.b64encode(self.payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [
                {"keyid": keyid, "sig": base64.b64encode(signature).decode()} for keyid, signature in self.signatures
            ],
        }

    def to_bytes(self) -> bytes:
        """The envelope as canonical JSON, one line: a leaf of the log."""
        return canonical_bytes(self.as_json())

    def signed_by(self, keys: Sequence[str]) -> bool:
        """Whether exactly these public keys (`ssh-ed25519 AAAA...`) signed, in
        this order, and nobody else.
        """
        from cryptography.exceptions import InvalidSignature

        from registry.ssh_signature import fingerprint, load_public

        if [keyid for keyid, _ in self.signatures] != [fingerprint(key) for key in keys]:
            return False
        covered = pre_authentication_encoding(self.payload)
        try:
            for key, (_, signature) in zip(keys, self.signatures, strict=True):
                load_public(key).verify(signature, covered)
        except InvalidSignature:
            return False
        return True


def pre_authentication_encoding(payload: bytes) -> bytes:
    """What a signature covers (DSSE, protocol, PAE)."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sealed(statement: dict[str, Any], *keys: Ed25519PrivateKey) -> Envelope:
    """A statement in an envelope, signed by these keys, in this order."""
    from registry.ssh_signature import fingerprint, public_text

    payload = canonical_bytes(statement)
    covered = pre_authentication_encoding(payload)
    return Envelope(payload, tuple((fingerprint(public_text(key)), key.sign(covered)) for key in keys))


def read_envelope(data: bytes, where: str) -> Envelope:
    """An envelope from its JSON text; RecordError or CapExceeded for anything else."""
    try:
        return envelope_of(load_json(data, where, 2 * MAX_ENVELOPE_BYTES), where)
    except CapExceeded:
        raise
    except TrapError as error:
        raise RecordError(error.what, where=where, remedy="a DSSE envelope of an in-toto statement") from None


def envelope_of(value: Any, where: str) -> Envelope:
    """An envelope from its JSON value, which has exactly DSSE's fields."""
    try:
        if value["payloadType"] != PAYLOAD_TYPE:
            raise RecordError("an envelope of another payload", where=where, value=str(value["payloadType"])[:100])
        if len(value["payload"]) > MAX_ENVELOPE_BYTES:
            raise CapExceeded("the envelope is too large", where=where, value=len(value["payload"]))
        if len(value["signatures"]) > MAX_SIGNATURES:
            raise CapExceeded("an envelope of too many signatures", where=where, value=len(value["signatures"]))
        signatures = tuple((str(entry["keyid"]), _decoded(entry["sig"])) for entry in value["signatures"])
        envelope = Envelope(_decoded(value["payload"]), signatures)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise RecordError("not an envelope", where=where, value=str(error)[:100]) from None
    if envelope.as_json() != value:
        raise RecordError("an envelope with more or other fields than DSSE's", where=where)
    return envelope


def _decoded(text: object) -> bytes:
    """Standard base64 in its one form: stray bits at its end are refused."""
    if not isinstance(text, str):
        raise ValueError("no text where base64 is due")
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from None
    if base64.b64encode(data).decode() != text:
        raise ValueError("base64 with stray bits")
    return data
