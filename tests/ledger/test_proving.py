"""Proofs: that a finding stands in a log, and that a log grew from an earlier one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.checkpoint import parse_checkpoint
from ledger.proving import check_proof, growth, inclusion_proof
from ledger.reading import ledger_bytes
from ledger.writing import revoked, rotated
from registry.errors import CapExceeded, RecordError, StudyError
from tests.ledger.samples import KEYS, TEXTS, finding, read, written

FINDINGS = [finding(f"reg/e{number}/v1") for number in range(5)]
LEDGER = read(written(FINDINGS))
ROTATED = read(ledger_bytes(rotated(LEDGER, KEYS[0], KEYS[1])))
REVOKED = read(ledger_bytes(revoked(ROTATED, KEYS[1], TEXTS[0], 3)))
UNSIGNED = read(written(FINDINGS, None))
PROOF = ledger_bytes(inclusion_proof(REVOKED, "reg/e3/v1"))


@pytest.mark.parametrize("number", range(5))
def test_a_proof_stands_alone(number: int) -> None:
    for ledger, signer in ((LEDGER, TEXTS[0]), (ROTATED, TEXTS[1]), (UNSIGNED, None)):
        found = check_proof(ledger_bytes(inclusion_proof(ledger, f"reg/e{number}/v1")), "proof.json")
        assert found.finding == FINDINGS[number] and found.signer == signer
        assert found.checkpoint == ledger.checkpoint and found.counts is (signer is not None)
        assert found.index == ledger.log.latest(f"reg/e{number}/v1")


def test_a_proof_tells_of_rotations_and_revocations() -> None:
    proofs = [ledger_bytes(inclusion_proof(REVOKED, f"reg/e{number}/v1")) for number in (1, 3)]
    assert [check_proof(proof, "proof.json").counts for proof in proofs] == [True, False]
    assert [each.index for each in check_proof(PROOF, "p").keys.keys] == [0, 6]


def test_there_is_no_proof_of_what_is_not_there() -> None:
    with pytest.raises(StudyError, match="no finding"):
        inclusion_proof(LEDGER, "reg/e9/v1")


@given(st.integers(0, 8 * len(PROOF) - 1))
@settings(deadline=None)
def test_any_flipped_bit_of_a_proof_is_found(bit: int) -> None:
    data = bytearray(PROOF)
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises((RecordError, CapExceeded)):
        check_proof(bytes(data), "proof.json")


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    value = json.loads(PROOF)
    change(value)
    return ledger_bytes(value)


BAD = {
    "no JSON": b"{",
    "a list": b"[]\n",
    "written otherwise": json.dumps(json.loads(PROOF)).encode(),
    "another schema": changed(lambda p: p.update(schema="trap-ledger-proof-2")),
    "more fields": changed(lambda p: p.update(note="")),
    "no checkpoint": changed(lambda p: p.update(checkpoint=7)),
    "another place": changed(lambda p: p["finding"].update(index=3)),
    "a place that is a text": changed(lambda p: p["finding"].update(index="4")),
    "a place before the first": changed(lambda p: p["finding"].update(index=-1)),
    "a place beyond the last": changed(lambda p: p["finding"].update(index=99)),
    "a path cut": changed(lambda p: p["finding"]["path"].pop()),
    "a path that is too long": changed(lambda p: p["finding"].update(path=["00" * 32] * 65)),
    "a path of other hashes": changed(lambda p: p["finding"]["path"].__setitem__(0, "00" * 32)),
    "a path in capitals": changed(lambda p: p["finding"].update(path=[part.upper() for part in p["finding"]["path"]])),
    "a path that is no hex": changed(lambda p: p["finding"]["path"].__setitem__(0, "zz" * 32)),
    "another finding": changed(lambda p: p["finding"].update(envelope=p["keys"][0]["envelope"])),
    "a key left out": changed(lambda p: p["keys"].pop(0)),
    "the keys left out": changed(lambda p: p.update(keys=[])),
    "a key twice": changed(lambda p: p["keys"].append(p["keys"][0])),
    "an entry that is a list": changed(lambda p: p["keys"].append([])),
    "too many keys": changed(lambda p: p.update(keys=p["keys"] * 400)),
    "another checkpoint": changed(lambda p: p.update(checkpoint=LEDGER.value["log"]["checkpoint"])),
    "a checkpoint of a stranger": changed(lambda p: p.update(checkpoint=REVOKED.checkpoint.signed(KEYS[2]))),
}


@pytest.mark.parametrize("name", BAD)
def test_a_proof_that_does_not_hold_is_refused(name: str) -> None:
    with pytest.raises((RecordError, CapExceeded)):
        check_proof(BAD[name], "proof.json")


def test_a_log_grows_from_its_earlier_checkpoints() -> None:
    for earlier in (LEDGER, ROTATED, REVOKED):
        note = parse_checkpoint(earlier.value["log"]["checkpoint"], "earlier")
        assert len(growth(REVOKED.log, note, "earlier")) < 6
    assert growth(REVOKED.log, REVOKED.checkpoint, "earlier") == []
    unsigned = parse_checkpoint(LEDGER.checkpoint.text, "earlier")
    assert growth(REVOKED.log, unsigned, "earlier")


def test_a_log_that_did_not_grow_from_it_is_refused() -> None:
    for log, earlier, words in (
        (LEDGER.log, ROTATED.checkpoint, "lost entries"),
        (LEDGER.log, read(written(FINDINGS[1:])).checkpoint, "does not begin"),
        (LEDGER.log, UNSIGNED.checkpoint, "does not begin"),
        (LEDGER.log, parse_checkpoint(LEDGER.checkpoint.signed(KEYS[1]), "x"), "signature"),
        (REVOKED.log, parse_checkpoint(LEDGER.checkpoint.signed(KEYS[1]), "x"), "signature"),
        (LEDGER.log, parse_checkpoint(LEDGER.checkpoint.text.replace("sample", "other"), "x"), "another log"),
    ):
        with pytest.raises(RecordError, match=words):
            growth(log, earlier, "earlier")
