"""Timestamp tokens by OpenSSL's authority: what holds, and every way not to."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID

from registry.errors import WitnessError
from registry.timestamps import moment
from registry.witness import der
from registry.witness.http import host_of
from registry.witness.timestamp_authority import query, request_token, verify_token
from registry.witness.timestamp_chain import load_roots
from registry.witness.timestamp_roots import built_in_roots
from registry.witness.timestamp_token import read_token
from tests.loopback import Answer, LoopbackServer
from tests.tsa_stub import TIME_STAMPING, Keyed, TimestampAuthority, certificate, days_from_now, pem

DIGEST = hashlib.sha256(b"a frozen file").hexdigest()
OTHER = hashlib.sha256(b"another file").hexdigest()
NONCE = 0x0123_4567_89AB_CDEF


@pytest.fixture(scope="module")
def authority() -> Iterator[TimestampAuthority]:
    with TimestampAuthority() as authority:
        yield authority


@pytest.fixture(scope="module")
def token(authority: TimestampAuthority) -> bytes:
    return request_token(authority.url, DIGEST)


def stamped(**options: object) -> tuple[bytes, str]:
    """A token for DIGEST by an authority of its own, and what to trust."""
    with TimestampAuthority(**options) as authority:  # type: ignore[arg-type]
        return authority.reply(query(DIGEST, NONCE)), authority.root_pem


def wrapped(content: bytes, signer: Keyed, others: Sequence[x509.Certificate], folder: Path, *options: str) -> bytes:
    """A granted answer around a time-stamp that a certificate of any kind signed."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    (folder / "content").write_bytes(content)
    (folder / "signer.pem").write_text(pem(signer[0]))
    (folder / "others.pem").write_text(pem(*others))
    key = signer[1].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(key)
    arguments = ["-sign", "-binary", "-nodetach", "-econtent_type", "1.2.840.113549.1.9.16.1.4", "-outform", "DER"]
    files = ["-in", "content", "-signer", "signer.pem", "-inkey", "key.pem", "-out", "out"]
    files += ["-certfile", "others.pem"] if others else []
    subprocess.run(["openssl", "cms", *arguments, *files, *options], cwd=folder, check=True, capture_output=True)
    signed = (folder / "out").read_bytes()
    body = bytes.fromhex("3003020100") + signed
    return b"\x30\x82" + len(body).to_bytes(2, "big") + body


def content_of(token: bytes) -> bytes:
    """The TSTInfo of a token."""
    return bytes(read_token(token, "x").response.tst_info.as_bytes())  # type: ignore[attr-defined]


def refused(token: bytes, reason: str, *roots: str, digest: str = DIGEST) -> None:
    with pytest.raises(WitnessError, match=reason):
        verify_token(token, digest, roots)


def test_a_query_is_one_that_openssl_reads(tmp_path: Path) -> None:
    (tmp_path / "q").write_bytes(query(DIGEST, NONCE))
    shown = subprocess.run(["openssl", "ts", "-query", "-in", tmp_path / "q", "-text"], capture_output=True, text=True)
    text = shown.stdout.replace("-", " ")
    assert "Hash Algorithm: sha256" in text and "Nonce: 0x0123456789ABCDEF" in text
    assert "Certificate required: yes" in text and DIGEST[:2] + " " + DIGEST[2:4] in text


def test_a_token_gives_its_latest_moment_and_its_signer(authority: TimestampAuthority, token: bytes) -> None:
    stamp = verify_token(token, DIGEST, [authority.root_pem])
    assert stamp.authority == "CN=Stand-in TSA"
    assert moment(stamp.time) == read_token(token, "x").time + timedelta(seconds=1, milliseconds=500, microseconds=100)


def test_openssl_accepts_the_token_too(authority: TimestampAuthority, token: bytes, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(token)
    (tmp_path / "root").write_text(authority.root_pem)
    command = ["openssl", "ts", "-verify", "-digest", DIGEST, "-in", "t", "-CAfile", "root"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 0


def test_a_fraction_of_a_second_is_not_lost() -> None:
    reply, root = stamped(digits=6, accuracy="accuracy = millisecs:1")
    stated = der.inside(content_of(reply), der.elements(content_of(reply), 0, len(content_of(reply)))[0])[4]
    text = content_of(reply)[stated.content : stated.end].decode()
    fraction = text[15:-1].ljust(6, "0") if "." in text else "000000"
    latest = moment(verify_token(reply, DIGEST, [root]).time)
    assert (latest - timedelta(milliseconds=1)).strftime("%Y%m%d%H%M%S.%f") == f"{text[:14]}.{fraction}"


def test_an_unstated_accuracy_counts_as_a_second() -> None:
    reply, root = stamped(accuracy="")
    assert moment(verify_token(reply, DIGEST, [root]).time) == read_token(reply, "x").time + timedelta(seconds=1)


def test_one_of_several_roots_is_enough(authority: TimestampAuthority, token: bytes) -> None:
    other = pem(certificate("Another Root", authority=True)[0])
    assert verify_token(token, DIGEST, [other, authority.root_pem]) == verify_token(
        token, DIGEST, [authority.root_pem + other]
    )


def test_the_root_itself_may_sign_the_signer() -> None:
    root = certificate("Root", authority=True)
    reply, trusted = stamped(chain=(root, certificate("Signer", root, usage=TIME_STAMPING)))
    assert verify_token(reply, DIGEST, [trusted]).authority == "CN=Signer"


def test_another_digest_is_refused(authority: TimestampAuthority, token: bytes) -> None:
    refused(token, "for another digest", authority.root_pem, digest=OTHER)


def test_a_root_that_is_not_trusted_is_refused(token: bytes) -> None:
    impostor = certificate("Stand-in Root", authority=True)
    refused(token, "root that the policy trusts", pem(impostor[0]))
    refused(token, "root that the policy trusts")


def test_the_token_brings_no_trust_of_its_own(authority: TimestampAuthority) -> None:
    own_root = certificate("Own Root", authority=True)
    reply, _ = stamped(chain=(own_root, own_root, certificate("Signer", own_root, usage=TIME_STAMPING)))
    refused(reply, "root that the policy trusts", authority.root_pem)


def test_a_policy_with_a_broken_root_says_so(token: bytes) -> None:
    refused(token, "not a PEM certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")


def test_a_request_for_another_kind_of_digest_is_refused(authority: TimestampAuthority) -> None:
    sha1 = bytes.fromhex("302a02010130" + "21" + "3009" + "06052b0e03021a0500" + "0414") + b"\x07" * 20
    sha1 += bytes.fromhex("0101ff")
    sha1 = b"\x30" + bytes([len(sha1) - 2]) + sha1[2:]
    refused(authority.reply(sha1), "not a SHA-256", authority.root_pem)


def test_a_signature_over_sha_1_is_refused() -> None:
    reply, root = stamped(digest="sha1")
    refused(reply, "another hash than SHA-2", root)


def test_a_refusal_of_the_authority_is_shown_in_its_words(authority: TimestampAuthority) -> None:
    with pytest.raises(WitnessError, match="did not grant") as caught:
        verify_token(authority.reply(b"no query"), DIGEST, [authority.root_pem])
    assert caught.value.value == "Bad request format or system error."


@pytest.mark.parametrize(
    ("usage", "critical"),
    [
        (None, True),
        (TIME_STAMPING, False),
        ([ExtendedKeyUsageOID.CODE_SIGNING], True),
        ([*TIME_STAMPING, ExtendedKeyUsageOID.CODE_SIGNING], True),
        ([ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE], True),
    ],
)
def test_a_certificate_for_other_purposes_stamps_nothing(
    token: bytes, tmp_path: Path, usage: Sequence[x509.ObjectIdentifier] | None, critical: bool
) -> None:
    root = certificate("Root", authority=True)
    signer = certificate("Signer", root, usage=usage, critical=critical)
    forged = wrapped(content_of(token), signer, [], tmp_path)
    refused(forged, "not one for time-stamping alone", pem(root[0]))


def test_the_forger_is_right_but_for_the_purpose(token: bytes, tmp_path: Path) -> None:
    root = certificate("Root", authority=True)
    signer = certificate("Signer", root, usage=TIME_STAMPING)
    assert verify_token(wrapped(content_of(token), signer, [], tmp_path), DIGEST, [pem(root[0])])


def test_an_authority_limited_to_other_purposes_passes_none_on(token: bytes, tmp_path: Path) -> None:
    root = certificate("Root", authority=True)
    middle = certificate("Mail CA", root, authority=True, usage=[ExtendedKeyUsageOID.EMAIL_PROTECTION])
    signer = certificate("Signer", middle, usage=TIME_STAMPING)
    forged = wrapped(content_of(token), signer, [middle[0]], tmp_path)
    refused(forged, "root that the policy trusts", pem(root[0]))


def test_only_an_authority_issues_certificates(token: bytes, tmp_path: Path) -> None:
    root = certificate("Root", authority=True)
    person = certificate("Person", root)
    signer = certificate("Signer", person, usage=TIME_STAMPING)
    refused(wrapped(content_of(token), signer, [person[0]], tmp_path), "root that the policy trusts", pem(root[0]))
    short = certificate("Short Root", authority=True, path_length=0)
    middle = certificate("CA", short, authority=True)
    signer = certificate("Signer", middle, usage=TIME_STAMPING)
    refused(wrapped(content_of(token), signer, [middle[0]], tmp_path), "root that the policy trusts", pem(short[0]))


def test_a_digest_put_in_another_s_place(authority: TimestampAuthority, token: bytes) -> None:
    forged = token.replace(bytes.fromhex(DIGEST), bytes.fromhex(OTHER))
    refused(forged, "signature does not hold", authority.root_pem, digest=OTHER)


def test_a_token_without_its_certificate(token: bytes, tmp_path: Path) -> None:
    root = certificate("Root", authority=True)
    signer = certificate("Signer", root, usage=TIME_STAMPING)
    bare = wrapped(content_of(token), signer, [], tmp_path, "-nocerts")
    refused(bare, "does not carry its signer's certificate", pem(root[0]))


@pytest.mark.parametrize("days", [(-9, -3), (3, 9)])
@pytest.mark.parametrize("whose", ["root", "signer"])
def test_certificates_hold_at_the_token_s_time(whose: str, days: tuple[float, float]) -> None:
    valid = (days_from_now(days[0]), days_from_now(days[1]))
    root = certificate("Root", authority=True, valid=valid if whose == "root" else None)
    signer = certificate("Signer", root, usage=TIME_STAMPING, valid=valid if whose == "signer" else None)
    reply, trusted = stamped(chain=(root, signer))
    refused(reply, "not valid at its time", trusted)


def test_what_has_expired_since_still_holds(tmp_path: Path, token: bytes) -> None:
    """A time-stamp of two years ago, by certificates that ended a year ago."""
    valid = (days_from_now(-900), days_from_now(-400))
    root = certificate("Root", authority=True, valid=valid)
    signer = certificate("Signer", root, usage=TIME_STAMPING, valid=valid)
    content = content_of(token)
    when = read_token(token, "x").time.strftime("%Y%m%d%H%M%S").encode()
    old = days_from_now(-600).strftime("%Y%m%d%H%M%S").encode()
    assert content.count(when) == 1
    reply = wrapped(content.replace(when, old), signer, [], tmp_path)
    assert verify_token(reply, DIGEST, [pem(root[0])]).time[:4] == old[:4].decode()


@pytest.mark.parametrize("junk", [b"", b"0", b"<html>", b"\x30\x80\x00\x00", b"\x30\x84\xff\xff\xff\xff", b"\x30\x00"])
def test_what_is_no_answer_is_malformed(junk: bytes) -> None:
    refused(junk, "malformed")


def test_a_large_answer_is_refused() -> None:
    refused(bytes(32_769), "too large")


def test_no_changed_byte_passes_unless_it_is_under_no_signature(
    authority: TimestampAuthority, token: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every 7th byte changed: refused in words, or the very same stamp."""
    stamp = verify_token(token, DIGEST, [authority.root_pem])
    refusals = set()
    for place in range(0, len(token), 7):
        changed = token[:place] + bytes([token[place] ^ 0x41]) + token[place + 1 :]
        try:
            assert verify_token(changed, DIGEST, [authority.root_pem]) == stamp
        except WitnessError as error:
            refusals.add(error.what)
    assert {"the token is malformed", "the token's signature does not hold"} <= refusals
    for end in range(0, len(token), 101):
        refused(token[:end], "malformed", authority.root_pem)
    refused(token + b"\x00", "malformed", authority.root_pem)


def test_certificates_that_sign_each_other_cost_little(tmp_path: Path, token: bytes) -> None:
    """Fifteen authorities of one name, each the issuer of all: no exponential search."""
    key = certificate("CA", authority=True)[1]
    crowd = [certificate("CA", authority=True, key=key) for _ in range(10)]
    signer = certificate("Signer", crowd[0], usage=TIME_STAMPING)
    refused(wrapped(content_of(token), signer, [each[0] for each in crowd], tmp_path), "root that the policy trusts")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda token: Answer(body=token, kind="text/html"), "not application/timestamp-reply"),
        (lambda token: Answer(body=token, kind="application/timestamp-reply"), "answered another request"),
        (lambda token: Answer(body=b"\x30\x05\x30\x03\x02\x01\x02", kind="application/timestamp-reply"), "not grant"),
        (lambda token: Answer(503), "has a fault"),
    ],
)
def test_an_authority_that_answers_wrongly(token: bytes, answer: object, reason: str) -> None:
    from registry.witness import http

    def post(*arguments: object, **options: object) -> bytes:
        return http.post(*arguments, **options, sleep=lambda _: None)  # type: ignore[arg-type]

    with LoopbackServer(lambda _: answer(token)) as server, pytest.raises(WitnessError, match=reason):  # type: ignore[operator]
        request_token(f"{server.url}/tsa", DIGEST, post=post)


def test_an_authority_that_stamps_something_else(authority: TimestampAuthority) -> None:
    def answer(_: object) -> Answer:
        return Answer(body=authority.reply(query(OTHER, NONCE)), kind="application/timestamp-reply")

    with LoopbackServer(answer) as server, pytest.raises(WitnessError, match="for another digest"):
        request_token(f"{server.url}/tsa", DIGEST)


def test_the_built_in_roots_are_the_ones_that_their_owners_publish() -> None:
    roots = load_roots(built_in_roots(), "x")
    assert {root.fingerprint(hashes.SHA256()).hex(): root.issuer == root.subject for root in roots} == {
        "552f7bdcf1a7af9e6ce672017f4f12abf77240c78e761ac203d1d9d20ac89988": True,
        "e793c9b02fd8aa13e21c31228accb08119643b749c898964b1746d46c3d4cbd2": True,
        "2cabeafe37d06ca22aba7391c0033d25982952c453647349763a3ab5ad6ccf69": True,
    }
    assert len(built_in_roots()) == 3


def test_an_authority_may_be_asked_by_plain_http() -> None:
    asked: list[object] = []

    def post(url: str, _: bytes, **options: object) -> bytes:
        asked.append(options["plain_http"])
        assert host_of(url, plain_http=True) in options["hosts"]  # type: ignore[operator]
        return b"\x30\x05\x30\x03\x02\x01\x02"

    with pytest.raises(WitnessError, match="did not grant"):
        request_token("http://timestamp.digicert.com", DIGEST, post=post)
    assert asked == [True]
    with pytest.raises(WitnessError, match="not an address"):
        host_of("http://timestamp.digicert.com")


def test_only_hosts_of_the_policy_are_asked(authority: TimestampAuthority) -> None:
    with pytest.raises(WitnessError, match="not one that the policy names"):
        request_token(authority.url, DIGEST, hosts=["timestamp.digicert.com"])
