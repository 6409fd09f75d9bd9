"""Checkpoints: signed beginnings of a push log, and what they refuse."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from registry.canonical import canonical_bytes, load_json
from registry.errors import WitnessError
from registry.ssh_signature import public_text, sign
from registry.witness.checkpoint import chain_name, read_checkpoint, sign_checkpoint, verify_checkpoint
from registry.witness.local import ServerBeacon
from registry.witness.log import NO_ROW, parse_log
from tests.support import push_log

KEY = Ed25519PrivateKey.from_private_bytes(b"\1" * 32)
OTHER = Ed25519PrivateKey.from_private_bytes(b"\2" * 32)
TRUSTED = [f"{public_text(KEY)} witness@lab.example"]
NAME = "lab/study"


def row(ref: str, **more: Any) -> dict[str, Any]:
    fixed = {"timestamp": "2026-03-01T12:00:00.000000Z", "before": "0" * 40, "after": "a" * 40}
    return {**fixed, "ref": ref, "activity_type": "tag_creation", **more}


LOG = push_log([row("refs/tags/a"), row("refs/tags/reg/e2/v1", beacon="5" * 64)])
LONGER = push_log([row("refs/tags/a"), row("refs/tags/reg/e2/v1", beacon="5" * 64), row("refs/tags/c")])
CHECKPOINT = sign_checkpoint(KEY, NAME, LOG)


def verified(log: bytes, repository: str = NAME, data: bytes = CHECKPOINT) -> str:
    return verify_checkpoint(read_checkpoint(data, "checkpoint"), repository, log, TRUSTED)


def test_a_checkpoint_holds_for_its_log_and_for_a_longer_one() -> None:
    checkpoint = read_checkpoint(CHECKPOINT, "checkpoint")
    assert (checkpoint.repository, checkpoint.rows) == (NAME, 2)
    assert verified(LOG) == verified(LONGER) == public_text(KEY)
    assert sign_checkpoint(KEY, NAME, LOG) == CHECKPOINT


def test_an_empty_log_has_a_checkpoint() -> None:
    data = sign_checkpoint(KEY, NAME, b"")
    assert read_checkpoint(data, "checkpoint").head == NO_ROW
    assert verified(LOG, data=data) == public_text(KEY)


def test_ssh_keygen_accepts_the_signature(tmp_path: Path) -> None:
    value = load_json(CHECKPOINT, "checkpoint")
    (tmp_path / "signature").write_text(value.pop("signature"))
    (tmp_path / "signers").write_text(f"witness {TRUSTED[0]}\n")
    words = ["-Y", "verify", "-f", "signers", "-I", "witness", "-n", "trap-checkpoint", "-s", "signature"]
    done = subprocess.run(["ssh-keygen", *words], cwd=tmp_path, input=canonical_bytes(value), capture_output=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (LOG.splitlines(keepends=True)[0], "holds 1 rows, the checkpoint 2"),
        (b"", "holds 0 rows"),
        (push_log([row("refs/tags/b"), row("refs/tags/reg/e2/v1", beacon="5" * 64)]), "not the one"),
        (push_log([row("refs/tags/a"), row("refs/tags/reg/e2/v1", beacon="6" * 64)]), "not the one"),
        (LONGER.replace(b"refs/tags/a", b"refs/tags/x"), "chain is broken"),
    ],
)
def test_a_log_that_begins_otherwise_is_refused(log: bytes, words: str) -> None:
    with pytest.raises(WitnessError, match=words):
        verified(log)


def test_another_repository_or_key_is_refused() -> None:
    with pytest.raises(WitnessError, match="another repository"):
        verified(LOG, "lab/other")
    with pytest.raises(WitnessError, match="a key that is not trusted"):
        verified(LOG, data=sign_checkpoint(OTHER, NAME, LOG))


def tampered(**changes: Any) -> bytes:
    return canonical_bytes(load_json(CHECKPOINT, "checkpoint") | changes)


def made_for_a_tag() -> bytes:
    value = load_json(CHECKPOINT, "checkpoint")
    del value["signature"]
    return canonical_bytes(value | {"signature": sign(KEY, canonical_bytes(value)).decode()})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (tampered(rows=1), "signature does not hold"),
        (tampered(head="0" * 64), "signature does not hold"),
        (tampered(repository="lab/other"), "signature does not hold"),
        (tampered(signature="no signature"), "signature does not hold"),
        (made_for_a_tag(), "signature does not hold"),
        (tampered(schema="trap-checkpoint-2"), "not a checkpoint"),
        (tampered(rows=-1), "not a checkpoint"),
        (tampered(rows=True), "not a checkpoint"),
        (tampered(rows="2"), "not a checkpoint"),
        (tampered(more=1), "not a checkpoint"),
        (tampered(head=None), "not a checkpoint"),
        (CHECKPOINT + b"\n", "canonical form"),
        (CHECKPOINT[:-1], "not a checkpoint"),
        (b"[]", "not a checkpoint"),
        (b"", "not a checkpoint"),
        (b" " * 20_000, "too large"),
    ],
)
def test_another_form_or_signature_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(WitnessError, match=words):
        read_checkpoint(data, "checkpoint")


def test_a_server_s_beacon_is_named_by_its_key() -> None:
    beacon = ServerBeacon(TRUSTED[0], parse_log(LOG, "log"), "the log")
    promise = beacon.promise()
    assert promise.chain == chain_name(public_text(KEY)) != chain_name(public_text(OTHER))
    assert promise.chain.startswith("witness:") and len(promise.chain) == 72
    value = beacon.value(promise, "reg/e2/v1")
    assert value is not None and (value.signature, value.source) == ("5" * 64, "the log row 2")
    assert beacon.value(promise, "reg/e3/v1") is None
    assert ServerBeacon(public_text(OTHER), parse_log(LOG, "log")).value(promise, "reg/e2/v1") is None
