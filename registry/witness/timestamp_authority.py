"""Timestamp tokens (RFC 3161): an authority's word that a digest existed.

A token is kept as the authority's whole answer. Two judges have to agree on
it: OpenSSL, by `rfc3161-client`, on the signature and its chain; and the
checks here and in `timestamp_chain`, which those leave to their caller.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from registry.errors import WitnessError
from registry.plain_text import plain
from registry.timestamps import timestamp
from registry.witness import http
from registry.witness.timestamp_token import MAX_TOKEN_BYTES, Token, guarded, read_token

if TYPE_CHECKING:
    from cryptography import x509

QUERY_TYPE = "application/timestamp-query"
REPLY_TYPE = "application/timestamp-reply"
_SHA256 = "2.16.840.1.101.3.4.2.1"
_HASHES = {_SHA256, "2.16.840.1.101.3.4.2.2", "2.16.840.1.101.3.4.2.3"}
_SHA256_IDENTIFIER = bytes.fromhex("300d06096086480165030402010500")
_UNSTATED_ACCURACY = timedelta(seconds=1)

Post = Callable[..., bytes]
"""`http.post`, or a stand-in for it."""


@dataclass(frozen=True)
class Stamp:
    """What a token proves: the digest existed at `time`, by `authority`'s word.

    `time` (RFC 3339, UTC) is the latest moment that the token allows: the
    time that it names plus its accuracy, a second where it states none.
    `authority` is the subject of the signer's certificate, as plain text.
    """

    time: str
    authority: str


def query(digest_hex: str, nonce: int) -> bytes:
    """A TimeStampReq for a SHA-256 digest that asks for certificates.

    `nonce` fills eight bytes: from 2^56 to 2^63 - 1.
    """
    imprint = _sequence(_SHA256_IDENTIFIER + b"\x04\x20" + bytes.fromhex(digest_hex))
    return _sequence(b"\x02\x01\x01" + imprint + b"\x02\x08" + nonce.to_bytes(8, "big") + b"\x01\x01\xff")


def request_token(url: str, digest_hex: str, *, hosts: Collection[str] | None = None, post: Post = http.post) -> bytes:
    """Ask an authority to stamp a SHA-256 digest; its whole answer.

    The answer is granted, for this digest and this request. Whether its
    authority is trusted is for `verify_token`. `hosts` are those that may be
    asked, in the form of `http.host_of`; by default the URL's own. Many
    authorities answer by http alone: their answers are signed.
    """
    nonce = int.from_bytes(bytes([1 + os.urandom(1)[0] % 127]) + os.urandom(7), "big")
    answer = post(
        url,
        query(digest_hex, nonce),
        hosts=(http.host_of(url, plain_http=True),) if hosts is None else hosts,
        content_type=QUERY_TYPE,
        cap_bytes=MAX_TOKEN_BYTES,
        types=(REPLY_TYPE,),
        plain_http=True,
    )
    token = read_token(answer, url)
    _check_imprint(token, digest_hex, url)
    if token.nonce != nonce:
        raise WitnessError("the authority answered another request", where=url, remedy="ask again")
    return answer


def verify_token(data: bytes, digest_hex: str, roots_pem: Sequence[str], where: str = "timestamp token") -> Stamp:
    """Check an authority's answer offline; WitnessError says which part does not hold.

    Certificates have to hold at the token's own time; that they have expired
    since does not matter. Revocation is not asked about.
    """
    token = read_token(data, where)
    _check_imprint(token, digest_hex, where)
    if not token.hashes <= _HASHES:
        raise WitnessError("the token is signed over another hash than SHA-2", where=where)
    signer = _checked_signer(token, roots_pem, digest_hex, where)
    latest = token.time + (_UNSTATED_ACCURACY if token.accuracy is None else token.accuracy)
    return Stamp(timestamp(latest), signer)


def _check_imprint(token: Token, digest_hex: str, where: str) -> None:
    if token.imprint_hash != _SHA256:
        raise WitnessError("the token's digest is not a SHA-256", where=where, value=token.imprint_hash)
    if token.imprint != bytes.fromhex(digest_hex):
        raise WitnessError("the token is for another digest", where=where, value=token.imprint.hex()[:64])


def _checked_signer(token: Token, roots_pem: Sequence[str], digest_hex: str, where: str) -> str:
    """The signer's subject, after the chain to a root and the signature held."""
    from registry.witness.timestamp_chain import chain_of, load_roots, signer_of

    roots = load_roots(roots_pem, where)

    def judged() -> tuple[str, x509.Certificate]:
        signer = signer_of(token.certificates, *token.signer, where)
        chain = chain_of(signer, token.certificates, roots, token.time, where)
        return plain(signer.subject.rfc4514_string(), 200), chain[-1]

    subject, root = guarded(judged, where)
    guarded(lambda: _check_signature(token, root, digest_hex, where), where)
    return subject


def _check_signature(token: Token, root: x509.Certificate, digest_hex: str, where: str) -> None:
    from rfc3161_client import VerificationError, VerifierBuilder

    try:
        VerifierBuilder().add_root_certificate(root).build().verify(token.response, bytes.fromhex(digest_hex))
    except (VerificationError, ValueError):
        raise WitnessError("the token's signature does not hold", where=where) from None


def _sequence(content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([0x30, len(content)]) + content
