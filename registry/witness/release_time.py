"""The time of a release's attestation: RFC 3161 tokens over its signature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from registry.errors import CapExceeded, DraftError, TrapError, WitnessError
from registry.timestamps import timestamp
from registry.witness.timestamp_token import Token, read_token

if TYPE_CHECKING:
    from cryptography import x509

_SHA256 = "2.16.840.1.101.3.4.2.1"
_SHA2 = {_SHA256, "2.16.840.1.101.3.4.2.2", "2.16.840.1.101.3.4.2.3"}
_UNSTATED_ACCURACY = timedelta(seconds=1)
_T = TypeVar("_T")


def time_of(tokens: Sequence[bytes], digest_hex: str, roots_pem: Sequence[str], where: str) -> tuple[datetime, str]:
    """The time that the first token which holds names, and the latest moment that it allows.

    The second is RFC 3339 in UTC: the time plus the token's accuracy, a
    second where it states none. Raises the first token's WitnessError where
    none holds.
    """
    failures: list[TrapError] = []
    for data in tokens:
        try:
            token = read_token(data, where)
            _check_imprint(token, digest_hex, where)
            chain = guarded(partial(_chain, token, roots_pem, where), "a timestamp certificate is malformed", where)
            _check_signature(token, chain, digest_hex, where)
        except TrapError as error:
            failures.append(error)
        else:
            latest = token.time + (_UNSTATED_ACCURACY if token.accuracy is None else token.accuracy)
            return token.time, timestamp(latest)
    raise failures[0] if failures else WitnessError("the attestation has no timestamp token", where=where)


def guarded(read: Callable[[], _T], words: str, where: str) -> _T:
    """The result of library code on hostile bytes: all that it may raise is one error."""
    try:
        return read()
    except (DraftError, CapExceeded) as error:
        raise WitnessError(f"{words}: {error}", where=where) from None
    except TrapError:
        raise
    except BaseException as error:
        # Rust code panics with an exception that derives from no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise WitnessError(words, where=where) from None


def _check_imprint(token: Token, digest_hex: str, where: str) -> None:
    if token.imprint_hash != _SHA256 or token.imprint.hex() != digest_hex or not token.hashes <= _SHA2:
        raise WitnessError("the timestamp token is for another signature", where=where)


def _chain(token: Token, roots_pem: Sequence[str], where: str) -> tuple[x509.Certificate, ...]:
    """Signer first, root last; the policy's other certificates stand in for those that the token lacks."""
    from registry.witness.timestamp_chain import chain_of, load_roots, signer_of

    listed = load_roots(roots_pem, where)
    trusted = [each for each in listed if each.subject == each.issuer]
    between = [*dict.fromkeys([*token.certificates, *(each for each in listed if each not in trusted)])]
    return chain_of(signer_of(between, *token.signer, where), between, trusted, token.time, where)


def _check_signature(token: Token, chain: Sequence[x509.Certificate], digest_hex: str, where: str) -> None:
    from rfc3161_client import VerificationError, VerifierBuilder

    signer, *intermediates, root = chain
    verifier = VerifierBuilder(tsa_certificate=signer, intermediates=intermediates, roots=[root]).build()
    try:
        verifier.verify(token.response, bytes.fromhex(digest_hex))
    except (VerificationError, ValueError, TypeError, OverflowError):
        raise WitnessError("the timestamp token's signature does not hold", where=where) from None
