"""GitHub's attestation of an immutable release: real ones, and one bad one for each part that can fail."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from registry.errors import WitnessError
from registry.witness.github_roots import read_trusted_root
from registry.witness.release_attestation import ATTESTER, ReleaseAttestation, verify_release_attestation
from registry.witness.release_statement import parse_release_statement
from registry.witness.timestamp_authority import query
from tests.tsa_stub import Keyed, TimestampAuthority, days_from_now, pem

REAL = Path(__file__).parent / "release_attestation"
GITHUB = [(REAL / "signers.pem").read_text()]
GITHUB_TIME = [(REAL / "timestamps.pem").read_text()]
TAG_OBJECT = "c" * 40
CODE = ExtendedKeyUsageOID.CODE_SIGNING
UNUSED = "content_commitment key_encipherment data_encipherment key_agreement encipher_only decipher_only"


def issued(
    name: str,
    issuer: Keyed | None,
    *,
    authority: bool = False,
    san: str = ATTESTER,
    use: x509.ObjectIdentifier = CODE,
    days: tuple[float, float] = (-1, 30),
    key: ec.EllipticCurvePrivateKey | None = None,
) -> Keyed:
    """A certificate with the extensions of GitHub's own chain."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuing_key = issuer[1] if issuer else key
    unused = dict.fromkeys(UNUSED.split(), False)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(days_from_now(days[0]))
        .not_valid_after(days_from_now(days[1]))
        .add_extension(x509.BasicConstraints(authority, None), critical=True)
        .add_extension(
            x509.KeyUsage(digital_signature=not authority, key_cert_sign=authority, crl_sign=authority, **unused), True
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuing_key.public_key()), critical=False)
    )
    if not authority:
        builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(san)])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(issuing_key, hashes.SHA256()), key


ROOT = issued("Stand-in Services Root", None, authority=True)
MIDDLE = issued("Stand-in Signing CA", ROOT, authority=True)
LEAF = issued("Stand-in Attester", MIDDLE)
SIGNERS = [pem(MIDDLE[0], ROOT[0])]


def statement(**changes: Any) -> dict[str, Any]:
    purl = "pkg:github/octo/study@reg%2Fe2%2Fv1"
    predicate = {"ownerId": "1", "databaseId": "2", "packageId": "5", "repositoryId": "5", "repository": "octo/study"}
    whole = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"uri": purl, "digest": {"sha1": TAG_OBJECT}},
            {"name": "e2.v1.json", "digest": {"sha256": "d" * 64}},
        ],
        "predicateType": "https://in-toto.io/attestation/release/v0.2",
        "predicate": {**predicate, "purl": purl, "tag": "reg/e2/v1"},
    }
    return {**whole, **changes}


def envelope(payload: bytes, key: ec.EllipticCurvePrivateKey) -> tuple[dict[str, Any], bytes]:
    """A DSSE envelope and the bytes of its signature."""
    kind = "application/vnd.in-toto+json"
    signed = f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload
    signature = key.sign(signed, ec.ECDSA(hashes.SHA256()))
    texts = [base64.b64encode(each).decode() for each in (payload, signature)]
    return {"payload": texts[0], "payloadType": kind, "signatures": [{"sig": texts[1]}]}, signature


def bundle(authority: TimestampAuthority, leaf: Keyed = LEAF, **changes: Any) -> dict[str, Any]:
    signed, signature = envelope(json.dumps(statement(**changes)).encode(), leaf[1])
    token = authority.reply(query(hashlib.sha256(signature).hexdigest(), 2**60))
    return {
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {
            "certificate": {"rawBytes": base64.b64encode(leaf[0].public_bytes(Encoding.DER)).decode()},
            "timestampVerificationData": {"rfc3161Timestamps": [{"signedTimestamp": base64.b64encode(token).decode()}]},
        },
        "dsseEnvelope": signed,
    }


@pytest.fixture(scope="module")
def authority() -> Iterator[TimestampAuthority]:
    with TimestampAuthority() as running:
        yield running


@pytest.fixture(scope="module")
def whole(authority: TimestampAuthority) -> str:
    return json.dumps(bundle(authority))


def verify(value: dict[str, Any], stamps: Sequence[str], roots: Sequence[str] = SIGNERS) -> ReleaseAttestation:
    return verify_release_attestation(json.dumps(value).encode(), roots, stamps)


def refused(value: dict[str, Any], stamps: Sequence[str], roots: Sequence[str] = SIGNERS) -> str:
    with pytest.raises(WitnessError) as caught:
        verify(value, stamps, roots)
    return caught.value.what


def test_a_real_attestation_holds_though_its_certificates_have_expired() -> None:
    found = verify_release_attestation((REAL / "bundle-2025.json").read_bytes(), GITHUB, GITHUB_TIME)
    assert (found.tag, found.repository, found.repository_id) == ("v6", "bdehamer/delme", 905988044)
    assert found.tag_digest == "sha1:c5e17a62e06a1d201570249c61fae531e9244e1b"
    assert found.asset_digests == ("sha256:e15b593c6ab8d7725a3cc82226ef816cac6bf9c70eed383bd459295cc65f5ec3",)
    assert found.time == "2025-05-30T20:13:40.000000Z"  # 20:13:39, and a second for the accuracy that is not stated


def test_a_real_token_of_a_certificate_that_the_policy_lacks_is_not_believed() -> None:
    data = (REAL / "bundle-2026.json").read_bytes()
    with pytest.raises(WitnessError, match="signer's certificate"):
        verify_release_attestation(data, GITHUB, GITHUB_TIME)
    payload = base64.b64decode(json.loads(data)["dsseEnvelope"]["payload"])
    found = parse_release_statement(payload, "here")
    assert (found.repository, found.repository_id) == ("CipherCuttle/QntyLab", 1317911390)


def test_an_attestation_names_tag_repository_and_digests(authority: TimestampAuthority, whole: str) -> None:
    found = verify(json.loads(whole), [authority.root_pem])
    assert (found.tag, found.repository, found.repository_id) == ("reg/e2/v1", "octo/study", 5)
    assert found.subject_digests == (f"sha1:{TAG_OBJECT}", f"sha256:{'d' * 64}")
    stamped = datetime.fromisoformat(found.time)
    assert abs(stamped - datetime.now(UTC)) < timedelta(minutes=1)


def test_other_roots_are_not_believed(authority: TimestampAuthority, whole: str) -> None:
    stamps = [authority.root_pem]
    other = issued("Stand-in Services Root", None, authority=True)
    assert "did not lead to a root" in refused(json.loads(whole), stamps, [pem(MIDDLE[0], other[0])])
    assert "did not lead to a root" in refused(json.loads(whole), stamps, GITHUB)
    assert "trusts no root" in refused(json.loads(whole), stamps, [pem(MIDDLE[0])])
    assert "trusts no root" in refused(json.loads(whole), stamps, [])
    assert "not a PEM" in refused(json.loads(whole), stamps, ["x"])
    assert "root that the policy trusts" in refused(json.loads(whole), GITHUB_TIME)
    assert "not a PEM" in refused(json.loads(whole), ["x"])


@pytest.mark.parametrize(
    ("leaf", "words"),
    [
        (issued("x", MIDDLE, san="https://github.com/octo/study/.github/workflows/x.yml@refs/heads/main"), "attester"),
        (issued("x", MIDDLE, use=ExtendedKeyUsageOID.CLIENT_AUTH), "attester"),
        (issued("x", MIDDLE, days=(-30, -10)), "at the token's time"),
        (issued("x", MIDDLE, days=(10, 30)), "at the token's time"),
        (issued("x", None), "did not lead to a root"),
        (issued("x", LEAF), "did not lead to a root"),
    ],
)
def test_another_signer_is_refused(authority: TimestampAuthority, leaf: Keyed, words: str) -> None:
    assert words in refused(bundle(authority, leaf), [authority.root_pem])


def test_a_signature_by_another_key_is_refused(authority: TimestampAuthority) -> None:
    made = bundle(authority, (LEAF[0], ec.generate_private_key(ec.SECP256R1())))
    assert "does not fit the statement" in refused(made, [authority.root_pem])


def test_a_tampered_payload_is_refused(authority: TimestampAuthority, whole: str) -> None:
    value = json.loads(whole)
    payload = json.dumps(statement(subject=[])).encode()
    value["dsseEnvelope"]["payload"] = base64.b64encode(payload).decode()
    assert "does not fit the statement" in refused(value, [authority.root_pem])


def test_a_token_over_another_signature_is_refused(authority: TimestampAuthority, whole: str) -> None:
    value = json.loads(whole)
    other = bundle(authority)
    value["verificationMaterial"]["timestampVerificationData"] = other["verificationMaterial"][
        "timestampVerificationData"
    ]
    assert "another signature" in refused(value, [authority.root_pem])


def test_of_several_tokens_one_has_to_hold(authority: TimestampAuthority, whole: str) -> None:
    value = json.loads(whole)
    tokens = value["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"]
    tokens.insert(0, {"signedTimestamp": "AAAA"})
    assert verify(value, [authority.root_pem]).tag == "reg/e2/v1"
    del tokens[1]
    assert "token is malformed" in refused(value, [authority.root_pem])


@pytest.mark.parametrize("place", [200, 400, 600])
def test_a_real_token_that_was_changed_is_refused(place: int) -> None:
    value = json.loads((REAL / "bundle-2025.json").read_bytes())
    token = value["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"][0]
    data = bytearray(base64.b64decode(token["signedTimestamp"]))
    data[place] ^= 1
    token["signedTimestamp"] = base64.b64encode(bytes(data)).decode()
    refused(value, GITHUB_TIME, GITHUB)


def _predicate(**changes: Any) -> dict[str, Any]:
    return {"predicate": {**statement()["predicate"], **changes}}


@pytest.mark.parametrize(
    "changes",
    [
        {"predicateType": "https://slsa.dev/provenance/v1"},
        {"_type": "https://in-toto.io/Statement/v0.1"},
        {"predicate": None},
        {"subject": []},
        {"subject": statement()["subject"][1:]},
        {"subject": statement()["subject"][:1] * 2},
        {"subject": [{"uri": "pkg:github/octo/other@reg%2Fe2%2Fv1", "digest": {"sha1": TAG_OBJECT}}]},
        {"subject": [*statement()["subject"], "x"]},
        {"subject": [*statement()["subject"], {"name": "x", "digest": {"md5": "0" * 32}}]},
        _predicate(tag="reg/e2/v2"),
        _predicate(repository="octo/other"),
        _predicate(repositoryId=5),
        _predicate(repositoryId="-5"),
        _predicate(purl="pkg:github/octo/study"),
    ],
)
def test_another_statement_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(WitnessError):
        parse_release_statement(json.dumps(statement(**changes)).encode(), "here")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        b'{"mediaType": "application/vnd.dev.sigstore.bundle.v0.1+json"}',
        b"[" * 10_000,
        b" " * 1_048_577,
    ],
)
def test_what_is_no_bundle_is_refused(data: bytes) -> None:
    with pytest.raises(WitnessError):
        verify_release_attestation(data, GITHUB, GITHUB_TIME)


@pytest.mark.parametrize("name", ["certificate", "timestampVerificationData"])
@pytest.mark.parametrize("value", [None, {}, {"rawBytes": "AAAA"}, {"rawBytes": "?"}, {"rfc3161Timestamps": []}])
def test_a_bundle_with_a_part_missing_is_refused(
    whole: str, authority: TimestampAuthority, name: str, value: Any
) -> None:
    broken = json.loads(whole)
    broken["verificationMaterial"][name] = value
    refused(broken, [authority.root_pem])


def _trusted_root(kind: str, uri: str, text: str) -> dict[str, Any]:
    bodies = [part.partition("-----END")[0] for part in text.split("-----BEGIN CERTIFICATE-----\n")[1:]]
    chain = [{"rawBytes": body.replace("\n", "")} for body in bodies]
    return {kind: [{"uri": uri, "certChain": {"certificates": chain}}]}


def test_githubs_trusted_root_file_gives_the_certificates() -> None:
    github = _trusted_root("certificateAuthorities", "fulcio.githubapp.com", GITHUB[0])
    github |= _trusted_root("timestampAuthorities", "timestamp.githubapp.com", GITHUB_TIME[0])
    public = _trusted_root("certificateAuthorities", "https://fulcio.sigstore.dev", SIGNERS[0])
    found = read_trusted_root(f"{json.dumps(public)}\n{json.dumps(github)}\n".encode(), "here")
    assert "".join(found.signers) == GITHUB[0] and "".join(found.timestamps) == GITHUB_TIME[0]
    data = (REAL / "bundle-2025.json").read_bytes()
    assert verify_release_attestation(data, found.signers, found.timestamps).tag == "v6"
    for broken in (b"", b"{}", json.dumps(public).encode(), b"x", b'{"certificateAuthorities": [1]}', b"[]"):
        with pytest.raises(WitnessError):
            read_trusted_root(broken, "here")
