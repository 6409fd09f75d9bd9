"""Envelopes: DSSE's encoding, and every other form refused."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.envelope import (
    MAX_SIGNATURES,
    PAYLOAD_TYPE,
    Envelope,
    envelope_of,
    pre_authentication_encoding,
    read_envelope,
    sealed,
)
from ledger.statements import finding_statement, statement, subject
from registry.errors import CapExceeded, RecordError
from registry.ssh_signature import SignatureRejected, fingerprint, load_public
from tests.ledger.samples import KEYS, ORIGIN, TEXTS, finding

STATEMENT = statement("urn:example:1", [subject("a", "0" * 64)], {"b": 1})


def test_the_encoding_is_that_of_the_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ledger.envelope.PAYLOAD_TYPE", "http://example.com/HelloWorld")
    assert pre_authentication_encoding(b"hello world") == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_an_envelope_is_the_same_for_the_same_statement_and_reads_back() -> None:
    envelope = sealed(STATEMENT, KEYS[0], KEYS[1])
    assert envelope == sealed(dict(reversed(STATEMENT.items())), KEYS[0], KEYS[1])
    assert read_envelope(envelope.to_bytes(), "here") == envelope
    assert envelope.statement() == STATEMENT
    assert envelope.signed_by(TEXTS[:2])
    assert sealed(STATEMENT).signed_by([])


@pytest.mark.parametrize("keys", [[], TEXTS[:1], [TEXTS[1], TEXTS[0]], [TEXTS[0], TEXTS[2]], TEXTS[:3]])
def test_nobody_else_signed(keys: list[str]) -> None:
    assert not sealed(STATEMENT, KEYS[0], KEYS[1]).signed_by(keys)


def test_a_signature_covers_type_and_payload_and_key_ids_are_not_believed() -> None:
    envelope = sealed(STATEMENT, KEYS[0])
    assert not Envelope(envelope.payload + b" ", envelope.signatures).signed_by(TEXTS[:1])
    other = KEYS[1].sign(pre_authentication_encoding(envelope.payload))
    assert not Envelope(envelope.payload, ((fingerprint(TEXTS[0]), other),)).signed_by(TEXTS[:1])
    assert not Envelope(envelope.payload, ((fingerprint(TEXTS[0]), KEYS[0].sign(envelope.payload)),)).signed_by(
        TEXTS[:1]
    )


def changed(**fields: Any) -> dict[str, Any]:
    return sealed(STATEMENT, KEYS[0]).as_json() | fields


SIGNATURE = sealed(STATEMENT, KEYS[0]).as_json()["signatures"][0]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "not an envelope"),
        ({}, "not an envelope"),
        (changed(payloadType="text/plain"), "another payload"),
        (changed(payload=7), "not an envelope"),
        (changed(payload="A"), "not an envelope"),
        (changed(payload="AB=="), "not an envelope"),
        (changed(payload="QUJD\n"), "not an envelope"),
        (changed(signatures=None), "not an envelope"),
        (changed(signatures=[{}]), "not an envelope"),
        (changed(signatures=[SIGNATURE | {"sig": "%%"}]), "not an envelope"),
        (changed(signatures=[SIGNATURE | {"cert": ""}]), "more or other fields"),
        (changed(note=""), "more or other fields"),
    ],
)
def test_every_other_form_is_refused(value: Any, words: str) -> None:
    with pytest.raises(RecordError, match=words):
        envelope_of(value, "here")


def test_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CapExceeded, match="too many signatures"):
        envelope_of(changed(signatures=[SIGNATURE] * (MAX_SIGNATURES + 1)), "here")
    monkeypatch.setattr("ledger.envelope.MAX_ENVELOPE_BYTES", 10)
    with pytest.raises(CapExceeded, match="too large"):
        envelope_of(changed(), "here")


@pytest.mark.parametrize("payload", [b"", b"[]", b"{}", b'{"_type":"x"}', b'{"a":1,"a":2}', b"[" * 100_000, b"\xff"])
def test_a_payload_that_is_no_statement_is_refused(payload: bytes) -> None:
    with pytest.raises(RecordError, match="not an in-toto statement"):
        Envelope(payload, ()).statement()
    with pytest.raises((RecordError, CapExceeded)):
        read_envelope(payload, "here")


def test_a_finding_is_about_the_registration_and_its_runs() -> None:
    stated = finding_statement(ORIGIN, finding())
    assert [each["name"] for each in stated["subject"]] == ["reg/e2/v1", "e2.v1/A/1/0/run.json"]
    assert stated["predicate"] == {"log": ORIGIN, "finding": finding()}
    unreadable = finding_statement(ORIGIN, finding() | {"digest": None})
    assert len(unreadable["subject"][0]["digest"]["sha256"]) == 64
    assert PAYLOAD_TYPE in sealed(stated).to_bytes().decode()


@pytest.mark.parametrize(
    "text", ["", "ssh-ed25519", "ssh-ed25519 AAAA", "ssh-rsa AAAA", TEXTS[0] + " me", TEXTS[0][:-1]]
)
def test_a_text_that_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(SignatureRejected):
        load_public(text)
