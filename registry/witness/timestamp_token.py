"""An authority's answer (TimeStampResp, RFC 3161) taken apart; nothing is judged here."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from registry.errors import TrapError, WitnessError
from registry.plain_text import plain
from registry.witness import der

if TYPE_CHECKING:
    from cryptography import x509
    from rfc3161_client import TimeStampResponse, TimeStampTokenInfo

MAX_TOKEN_BYTES = 32_768
MAX_CERTIFICATES = 16
MAX_ACCURACY = timedelta(hours=1)
_GRANTED = 0
_CERTIFICATES, _GENERALIZED_TIME = 0xA0, 0x18
_TIME_PLACE = 4
_FRACTION = re.compile(rb"[0-9]{14}(?:\.([0-9]{1,12}))?Z")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Token:
    """What an answer holds. `accuracy` is None where the token states none.

    `signer` is the issuer and serial number of the certificate that is said
    to have signed; `hashes` are object identifiers.
    """

    response: TimeStampResponse
    imprint_hash: str
    imprint: bytes
    time: datetime
    accuracy: timedelta | None
    nonce: int | None
    hashes: frozenset[str]
    certificates: tuple[x509.Certificate, ...]
    signer: tuple[x509.Name, int]


def read_token(data: bytes, where: str) -> Token:
    """An answer's parts; WitnessError where it was not granted or is malformed."""
    if len(data) > MAX_TOKEN_BYTES:
        raise WitnessError("the token is too large", where=where, value=len(data))
    response = guarded(lambda: _decoded(data), where)
    if response.status != _GRANTED:
        said = "; ".join(plain(text, 200) for text in response.status_string[:3])
        raise WitnessError("the authority did not grant a token", where=where, value=said or response.status)
    return guarded(lambda: _parts(response), where)


def guarded(read: Callable[[], _Result], where: str) -> _Result:
    """The result of library code on hostile bytes: all that it may raise becomes one error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old forms of certificates
            return read()
    except TrapError:
        raise
    except BaseException as error:
        # Rust code panics with an exception that derives from no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise WitnessError("the token is malformed", where=where, remedy="ask the authority again") from None


def _decoded(data: bytes) -> TimeStampResponse:
    from rfc3161_client import decode_timestamp_response

    return decode_timestamp_response(_in_der_order(data))


def _in_der_order(data: bytes) -> bytes:
    """The answer with its certificates in DER's order.

    OpenSSL, and so many an authority, writes them in another one, which the
    parser refuses. They are under no signature, and lengths stay the same.
    """
    (answer,) = der.elements(data, 0, len(data))
    parts = der.inside(data, answer)
    if len(parts) < 2:
        return data
    _, content = der.inside(data, parts[1])
    (signed,) = der.inside(data, content)
    for part in der.inside(data, signed):
        if part.tag == _CERTIFICATES:
            ordered = b"".join(sorted(data[each.start : each.end] for each in der.inside(data, part)))
            return data[: part.content] + ordered + data[part.end :]
    return data


def _parts(response: TimeStampResponse) -> Token:
    from cryptography import x509

    info, signed = response.tst_info, response.signed_data
    (signer,) = signed.signer_infos
    encoded = sorted(signed.certificates)
    if info.version != 1 or len(encoded) > MAX_CERTIFICATES:
        raise ValueError("another version, or too many certificates")
    return Token(
        response=response,
        imprint_hash=info.message_imprint.hash_algorithm.dotted_string,
        imprint=info.message_imprint.message,
        time=_time(info),
        accuracy=_accuracy(info),
        nonce=info.nonce,
        hashes=frozenset(each.dotted_string for each in signed.digest_algorithms),
        certificates=tuple(x509.load_der_x509_certificate(each) for each in encoded),
        signer=(signer.issuer, signer.serial_number),
    )


def _time(info: TimeStampTokenInfo) -> datetime:
    """The token's time with its fraction, which the library leaves out; never rounded down."""
    encoded: bytes = info.as_bytes()  # type: ignore[attr-defined]
    (whole,) = der.elements(encoded, 0, len(encoded))
    stated = der.inside(encoded, whole)[_TIME_PLACE]
    fraction = _FRACTION.fullmatch(encoded[stated.content : stated.end])
    if stated.tag != _GENERALIZED_TIME or fraction is None:
        raise ValueError("no time")
    digits = (fraction[1] or b"").ljust(6, b"0")
    rounding = any(digit != ord("0") for digit in digits[6:])
    return info.gen_time + timedelta(microseconds=int(digits[:6]) + rounding)


def _accuracy(info: TimeStampTokenInfo) -> timedelta | None:
    stated = info.accuracy
    if not stated:
        return None
    parts = [each or 0 for each in (stated.seconds, stated.millis, stated.micros)]
    accuracy = timedelta(seconds=parts[0], milliseconds=parts[1], microseconds=parts[2])
    if not timedelta() < accuracy <= MAX_ACCURACY:
        raise ValueError("an accuracy of nothing, or of hours")
    return accuracy
