"""GitHub's attestation of an immutable release, verified offline.

A sigstore bundle (v0.3): a DSSE envelope signed by GitHub's release attester,
whose certificate leads to a root of the auditor's policy and held at the time
of an RFC 3161 token over the signature, from an authority that the policy
trusts too. The order of trust: bundle's form, token, certificate at the
token's time, signature, statement. A certificate that has expired since does
no harm.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from registry.canonical import load_json
from registry.errors import WitnessError
from registry.witness.release_statement import ReleaseStatement, parse_release_statement
from registry.witness.release_time import guarded, time_of

if TYPE_CHECKING:
    from cryptography import x509

MAX_BUNDLE_BYTES = 1_048_576
ATTESTER = "https://dotcom.releases.github.com"
"""Who signs for github.com, as the certificate's alternative name."""

_PAYLOAD_TYPE = "application/vnd.in-toto+json"
_MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
_MAX_TOKENS = 4


@dataclass(frozen=True)
class ReleaseAttestation:
    """That GitHub had released `tag` by `time` (RFC 3339, UTC).

    `tag_digest` is `sha1:...` of the object that the tag's ref named: by the
    way in which GitHub's own tool looks it up, the tag object of an annotated
    tag. `asset_digests` are `sha256:...` of the files attached to the release.
    """

    tag: str
    repository: str
    repository_id: int
    tag_digest: str
    asset_digests: tuple[str, ...]
    time: str

    @property
    def subject_digests(self) -> tuple[str, ...]:
        """Every digest that is attested: the tag's first, then the assets'."""
        return (self.tag_digest, *self.asset_digests)


@dataclass(frozen=True)
class _Bundle:
    certificate: bytes
    tokens: tuple[bytes, ...]
    payload: bytes
    signature: bytes


def verify_release_attestation(
    bundle: bytes,
    roots: Sequence[str],
    timestamp_roots: Sequence[str],
    where: str = "release attestation",
    attester: str = ATTESTER,
) -> ReleaseAttestation:
    """Verify a bundle against the policy's certificates; WitnessError says which part does not hold.

    `roots` and `timestamp_roots` are PEM texts of one or more certificates.
    Self-signed ones are what is trusted; the others stand between, since
    GitHub's bundles carry no intermediate and its tokens no certificate.
    """
    parts = guarded(lambda: _parts(bundle, where), "the bundle is malformed", where)
    digest = hashlib.sha256(parts.signature).hexdigest()
    moment, latest = time_of(parts.tokens, digest, timestamp_roots, where)
    malformed = "the certificate in the bundle is malformed"
    listed = _listed(roots, where)
    leaf = guarded(lambda: _leaf(parts.certificate, listed, moment, attester, where), malformed, where)
    _check_signature(leaf, parts, where)
    statement = parse_release_statement(parts.payload, where)
    return _attestation(statement, latest)


def _attestation(statement: ReleaseStatement, time: str) -> ReleaseAttestation:
    return ReleaseAttestation(
        statement.tag,
        statement.repository,
        statement.repository_id,
        statement.tag_digest,
        statement.asset_digests,
        time,
    )


def _parts(data: bytes, where: str) -> _Bundle:
    if len(data) > MAX_BUNDLE_BYTES:
        raise WitnessError("the bundle is too large", where=where, value=len(data))
    value = load_json(data, where)
    if value["mediaType"] != _MEDIA_TYPE:
        raise WitnessError("a bundle of another kind", where=where, value=str(value["mediaType"])[:200])
    material, envelope = value["verificationMaterial"], value["dsseEnvelope"]
    tokens = material["timestampVerificationData"]["rfc3161Timestamps"]
    (signature,) = envelope["signatures"]
    if envelope["payloadType"] != _PAYLOAD_TYPE or not 1 <= len(tokens) <= _MAX_TOKENS:
        raise ValueError("another payload, or no token")
    return _Bundle(
        _decoded(material["certificate"]["rawBytes"]),
        tuple(_decoded(token["signedTimestamp"]) for token in tokens),
        _decoded(envelope["payload"]),
        _decoded(signature["sig"]),
    )


def _decoded(text: Any) -> bytes:
    if not isinstance(text, str):
        raise TypeError("not text")
    return base64.b64decode(text, validate=True)


def _listed(roots_pem: Sequence[str], where: str) -> list[x509.Certificate]:
    from cryptography import x509

    try:
        return [each for text in roots_pem for each in x509.load_pem_x509_certificates(text.encode())]
    except ValueError:
        raise WitnessError(
            "a root for release attestations is not a PEM certificate", where=where, remedy="correct your policy file"
        ) from None


def _leaf(
    encoded: bytes, listed: Sequence[x509.Certificate], moment: datetime, attester: str, where: str
) -> x509.Certificate:
    """The signer's certificate, which led to a root at `moment` and is the attester's."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID
    from cryptography.x509.verification import ExtensionPolicy, PolicyBuilder, Store, VerificationError

    leaf = x509.load_der_x509_certificate(encoded)
    trusted = [each for each in listed if each.subject == each.issuer]
    if not trusted:
        raise WitnessError("the policy trusts no root for release attestations", where=where)
    builder = PolicyBuilder().store(Store(trusted)).time(moment)
    policy = builder.extension_policies(
        ca_policy=ExtensionPolicy.webpki_defaults_ca(), ee_policy=ExtensionPolicy.permit_all()
    )
    try:
        policy.build_client_verifier().verify(leaf, [each for each in listed if each not in trusted])
    except VerificationError:
        raise WitnessError(
            "the attester's certificate did not lead to a root of the policy at the token's time",
            where=where,
            value=leaf.issuer.rfc4514_string()[:200],
        ) from None
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    uses = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    if [name.value for name in names] != [attester] or list(uses) != [ExtendedKeyUsageOID.CODE_SIGNING]:
        raise WitnessError(
            "the certificate is not that of GitHub's release attester",
            where=where,
            value=str([name.value for name in names])[:200],
        )
    return leaf


def _check_signature(leaf: x509.Certificate, parts: _Bundle, where: str) -> None:
    """The DSSE signature, ECDSA P-256 with SHA-256, over the pre-authentication encoding."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = leaf.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise WitnessError("the attester's key is of another kind than ECDSA P-256", where=where)
    kind = _PAYLOAD_TYPE.encode()
    signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(parts.payload), parts.payload)
    try:
        key.verify(parts.signature, signed, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        raise WitnessError("the attester's signature does not fit the statement", where=where) from None
