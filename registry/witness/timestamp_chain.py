"""Whose certificate signed a token, and the chain from it to a trusted root.

X.509 as RFC 5280 has it, at the time that the token names: names, signatures,
validity, certificate authorities and their path lengths; and what neither RFC
3161 nor OpenSSL asks but public authorities rely on: an authority whose own
certificate limits its purposes passes on no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID

from registry.errors import WitnessError

MAX_CERTIFICATES = 16
MAX_DEPTH = 6
_HASHES = (hashes.SHA256, hashes.SHA384, hashes.SHA512)
_Chain = tuple[x509.Certificate, ...]
_Kind = TypeVar("_Kind", bound=x509.ExtensionType)


def load_roots(roots_pem: Iterable[str], where: str) -> tuple[x509.Certificate, ...]:
    """The certificates of the policy's PEM texts."""
    try:
        return tuple(root for text in roots_pem for root in x509.load_pem_x509_certificates(text.encode()))
    except ValueError:
        raise WitnessError(
            "a timestamp root is not a PEM certificate", where=where, remedy="correct your policy file"
        ) from None


def signer_of(certificates: Sequence[x509.Certificate], issuer: x509.Name, serial: int, where: str) -> x509.Certificate:
    """The certificate that a token says signed it, if that is for time-stamping alone (RFC 3161, 2.3)."""
    named = [each for each in certificates if each.issuer == issuer and each.serial_number == serial]
    if len(named) != 1:
        raise WitnessError(
            "the token does not carry its signer's certificate",
            where=where,
            value=f"{len(named)} that fit",
            remedy="ask the authority for a token with its certificates",
        )
    usage = _usage(named[0])
    if usage is None or not usage.critical or list(usage.value) != [ExtendedKeyUsageOID.TIME_STAMPING]:
        raise WitnessError(
            "the signer's certificate is not one for time-stamping alone",
            where=where,
            value=named[0].subject.rfc4514_string(),
        )
    return named[0]


def chain_of(
    signer: x509.Certificate,
    certificates: Sequence[x509.Certificate],
    roots: Sequence[x509.Certificate],
    moment: datetime,
    where: str,
) -> _Chain:
    """Signer first, root last; WitnessError where no chain held at `moment`."""
    late: _Chain | None = None
    for chain in _chains(signer, certificates, roots):
        expired = [each for each in chain if not each.not_valid_before_utc <= moment <= each.not_valid_after_utc]
        if not expired:
            return chain
        late = tuple(expired)
    if late:
        raise WitnessError(
            "a certificate of the token was not valid at its time",
            where=where,
            value=late[0].subject.rfc4514_string(),
        )
    raise WitnessError(
        "the token does not lead to a root that the policy trusts",
        where=where,
        value=signer.subject.rfc4514_string(),
        remedy="trust the authority's root in your own policy file, if you do",
    )


def _chains(
    signer: x509.Certificate, certificates: Sequence[x509.Certificate], roots: Sequence[x509.Certificate]
) -> list[_Chain]:
    """Chains to a root; each certificate is tried at most twice, however they sign each other."""
    found: list[_Chain] = []
    open_chains: list[_Chain] = [(signer,)]
    tries = dict.fromkeys(certificates, 2)
    while open_chains:
        chain = open_chains.pop(0)
        found += [(*chain, root) for root in roots if _issued(chain, root)]
        if len(chain) == MAX_DEPTH:
            continue
        for each in certificates:
            if tries[each] and each not in chain and _issued(chain, each) and _purpose_passes(each):
                tries[each] -= 1
                open_chains.append((*chain, each))
    return found


def _issued(chain: _Chain, authority: x509.Certificate) -> bool:
    """Whether an authority may have issued, and did issue, the last of a chain."""
    child = chain[-1]
    if child.issuer != authority.subject or not isinstance(child.signature_hash_algorithm, _HASHES):
        return False
    limits = _extension(authority, x509.BasicConstraints)
    if limits is None or not limits.ca or (limits.path_length is not None and limits.path_length < len(chain) - 1):
        return False
    usage = _extension(authority, x509.KeyUsage)
    if usage is not None and not usage.key_cert_sign:
        return False
    try:
        child.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _purpose_passes(authority: x509.Certificate) -> bool:
    usage = _usage(authority)
    wanted = {ExtendedKeyUsageOID.TIME_STAMPING, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}
    return usage is None or bool(wanted & set(usage.value))


def _usage(certificate: x509.Certificate) -> x509.Extension[x509.ExtendedKeyUsage] | None:
    try:
        return certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    except x509.ExtensionNotFound:
        return None


def _extension(certificate: x509.Certificate, kind: type[_Kind]) -> _Kind | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
