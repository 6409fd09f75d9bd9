"""Checkpoints: published vectors of signed notes, and every other form refused."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ledger.checkpoint import Checkpoint, note_key_id, parse_checkpoint
from registry.errors import CapExceeded, RecordError
from tests.ledger.samples import KEYS, TEXTS

CHECKPOINT = Checkpoint("trapkit-ledger/sample", 3, bytes(range(32)), "ab" * 32)


@pytest.mark.parametrize(
    ("name", "key_id", "key"),
    [
        ("PeterNeumann", "c74f20a3", "ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"),
        ("sum.golang.org", "033de0ae", "Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8"),
    ],
)
def test_key_ids_are_those_of_published_keys(name: str, key_id: str, key: str) -> None:
    """Keys of Go's note package and of its checksum database; the first byte is the algorithm."""
    assert note_key_id(name, base64.b64decode(key)[1:]).hex() == key_id


def test_a_published_note_is_signed_as_ours_are() -> None:
    """The example of Go's note package: key id, then Ed25519 over the text."""
    text = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
    line = "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode("ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")[1:])
    signature = base64.b64decode(line)
    assert signature[:4] == note_key_id("PeterNeumann", key.public_bytes_raw())
    key.verify(signature[4:], text.encode())


def test_a_signed_checkpoint_reads_back() -> None:
    note = CHECKPOINT.signed(KEYS[0])
    assert note == CHECKPOINT.signed(KEYS[0])
    assert note.splitlines()[:5] == [
        "trapkit-ledger/sample", "3", base64.b64encode(bytes(range(32))).decode(), f"document sha256:{'ab' * 32}", "",
    ]  # fmt: skip
    found = parse_checkpoint(note, "here")
    assert found.text == CHECKPOINT.text and found.signed_by(TEXTS[0])
    assert not found.signed_by(TEXTS[1]) and not found.signed_by(None)
    assert parse_checkpoint(CHECKPOINT.signed(None), "here") == CHECKPOINT
    assert not CHECKPOINT.signed_by(TEXTS[0])


def test_a_signature_of_another_text_does_not_hold() -> None:
    note = CHECKPOINT.signed(KEYS[0])
    assert not parse_checkpoint(note.replace("\n3\n", "\n4\n"), "here").signed_by(TEXTS[0])
    assert not parse_checkpoint(note.replace("— trapkit-ledger/sample", "— another"), "here").signed_by(TEXTS[0])


NOTE = CHECKPOINT.signed(KEYS[0])


@pytest.mark.parametrize(
    "note",
    [
        "",
        "\n",
        NOTE[:-1],
        NOTE + "\n",
        NOTE + NOTE.splitlines(keepends=True)[-1],
        NOTE.replace("\n3\n", "\n03\n"),
        NOTE.replace("\n3\n", "\n-3\n"),
        NOTE.replace("\n3\n", "\n٣\n"),
        NOTE.replace("\n3\n", f"\n{'9' * 17}\n"),
        NOTE.replace("—", "-"),
        NOTE.replace("document sha256:", "document sha512:"),
        NOTE.replace("document", "extra\ndocument"),
        NOTE.replace("trapkit-ledger/sample\n3", "trapkit ledger\n3"),
        NOTE.replace("\n", "\r\n"),
        CHECKPOINT.text + "\n",
    ],
)
def test_every_other_form_is_refused(note: str) -> None:
    assert note != NOTE
    with pytest.raises(RecordError):
        parse_checkpoint(note, "here")


def test_stray_bits_and_large_notes_are_refused() -> None:
    root = base64.b64encode(bytes(range(32))).decode()
    stray = root[:-2] + chr(ord(root[-2]) + 1) + "="
    assert base64.b64decode(stray) == bytes(range(32))
    with pytest.raises(RecordError, match="stray"):
        parse_checkpoint(NOTE.replace(root, stray), "here")
    with pytest.raises(CapExceeded):
        parse_checkpoint("a" * 20_000, "here")
