"""Statements in signed envelopes: in-toto Statements (v1) in DSSE (v1).

A signature covers the payload's type and bytes (DSSE's pre-authentication
encoding), so that nobody has to agree on how JSON is written to check it.
Ed25519; the key's id is the SHA-256 of its OpenSSH text.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from registry.canonical import canonical_bytes, load_json
from registry.errors import RecordError, TrapError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
MAX_ENVELOPE_BYTES = 4_194_304
MAX_SIGNATURES = 16


@dataclass(frozen=True)
class Envelope:
    """An envelope as it was read: `payload` is the statement's bytes, `signatures`
    pairs of key id (hex, empty where none is said) and signature.
    """

    payload: bytes
    signatures: tuple[tuple[str, bytes], ...]

    def statement(self) -> dict[str, Any]:
        """The statement; RecordError where the payload is none."""
        value = load_json(self.payload, "the payload of an envelope")
        if not isinstance(value, dict) or value.get("_type") != STATEMENT_TYPE:
            raise RecordError("the payload is not an in-toto statement", value=STATEMENT_TYPE)
        return value

    def to_bytes(self) -> bytes:
        """The envelope as canonical JSON, one line."""
        return canonical_bytes(
            {
                "payload": base64.b64encode(self.payload).decode(),
                "payloadType": PAYLOAD_TYPE,
                "signatures": [
                    {"keyid": keyid, "sig": base64.b64encode(signature).decode()} for keyid, signature in self.signatures
                ],
            }
        )


def key_id(public_key: str) -> str:
    """SHA-256 of `ssh-ed25519 AAAA...` without its comment, hex."""
    return hashlib.sha256(" ".join(public_key.split()[:2]).encode()).hexdigest()


def pre_authentication_encoding(payload: bytes) -> bytes:
    """What a signature covers (DSSE, protocol, PAE)."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sealed(statement: dict[str, Any], key: Ed25519PrivateKey | None) -> Envelope:
    """A statement in an envelope, signed where there is a key."""
    payload = canonical_bytes(statement)
    if key is None:
        return Envelope(payload, ())
    from registry.ssh_signature import public_text

    signature = key.sign(pre_authentication_encoding(payload))
    return Envelope(payload, ((key_id(public_text(key)), signature),))


def read_envelope(data: bytes, where: str) -> Envelope:
    """An envelope from its JSON; RecordError for anything else. Signatures are
    checked by `signers`.
    """
    if len(data) > MAX_ENVELOPE_BYTES:
        raise RecordError("the envelope is too large", where=where, value=len(data))
    try:
        value = load_json(data, where)
        if value["payloadType"] != PAYLOAD_TYPE:
            raise RecordError("an envelope of another payload", where=where, value=str(value["payloadType"])[:100])
        if len(value["signatures"]) > MAX_SIGNATURES:
            raise RecordError("an envelope of too many signatures", where=where, value=len(value["signatures"]))
        signatures = [(str(entry.get("keyid", "")), _decoded(entry["sig"])) for entry in value["signatures"]]
        return Envelope(_decoded(value["payload"]), tuple(signatures))
    except RecordError:
        raise
    except (TrapError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise RecordError(f"not an envelope: {error}", where=where) from None


def _decoded(text: object) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from None


def signers(envelope: Envelope, keys: Iterable[str]) -> list[str]:
    """Those of these public keys (`ssh-ed25519 AAAA...`) that signed it. The key
    id of a signature is a hint, and not believed.
    """
    from cryptography.exceptions import InvalidSignature

    from registry.ssh_signature import load_public

    covered = pre_authentication_encoding(envelope.payload)
    found = []
    for text in keys:
        for _, signature in envelope.signatures:
            try:
                load_public(text).verify(signature, covered)
            except InvalidSignature:
                continue
            found.append(text)
            break
    return found
