"""A ledger's file: the same bytes for the same findings, and one flipped bit is found."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.checkpoint import Checkpoint
from ledger.log import LedgerLog
from ledger.reading import Ledger, document_digest, ledger_bytes, read_ledger
from ledger.writing import revoked, rotated, with_checkpoint
from registry.errors import CapExceeded, RecordError, StudyError
from tests.ledger.samples import KEYS, ORIGIN, TEXTS, body, finding, read, written

TWO = [finding("reg/e2/v1", "2026-01-02T00:00:00Z"), finding("reg/basin/v1", "2026-01-01T00:00:00Z")]
SIGNED = written(TWO)
UNSIGNED = written(TWO, None)


def rich() -> bytes:
    """Findings, a changed one, a rotation and a revocation."""
    changed = [finding(words="FAIL"), TWO[1]]
    ledger = read(written(changed, previous=read(SIGNED)))
    turned = read(ledger_bytes(rotated(ledger, KEYS[0], KEYS[1])))
    return ledger_bytes(revoked(turned, KEYS[1], TEXTS[0], 2))


RICH = rich()


def test_a_ledger_is_the_same_twice_and_reads_back() -> None:
    assert written(TWO) == SIGNED == written(TWO, previous=read(SIGNED))
    ledger = read(SIGNED)
    assert ledger.signer == TEXTS[0] and len(ledger.log) == 3
    assert read(UNSIGNED).signer is None


def test_leaves_are_ordered_by_push_then_id_then_version() -> None:
    same = "2026-01-01T00:00:00Z"
    tags = ["reg/b/v10", "reg/b/v9", "reg/a/v1", "pred/b/v9"]
    findings = [finding("reg/unseen/v1", None), finding("reg/late/v1", "2026-01-01T00:00:00.000001Z")]
    findings += [finding(tag, same) for tag in tags]
    order = ["pred/b/v9", "reg/a/v1", "reg/b/v9", "reg/b/v10", "reg/late/v1", "reg/unseen/v1"]
    assert read(written(findings, None)).log.tags() == order


def test_without_the_key_the_signed_one_stays_while_nothing_is_new() -> None:
    ledger = read(SIGNED)
    for key in (None, KEYS[3]):
        assert written(TWO, key, ledger) == SIGNED
        more = read(written([*TWO, finding("reg/new/v1")], key, ledger))
        assert more.signer is None and len(more.log) == 4 and more.log.entries[3].signer is None
        assert [e.envelope for e in more.log.entries[:3]] == [e.envelope for e in ledger.log.entries]
        assert ledger_bytes(more.value) == written([*TWO, finding("reg/new/v1")], key, more)


def test_the_key_signs_what_others_left_unsigned_and_logs_nothing_again() -> None:
    unsigned = read(UNSIGNED)
    signed = read(written(TWO, previous=unsigned))
    assert signed.signer == TEXTS[0] and len(signed.log) == 3
    assert [entry.signer for entry in signed.log.entries] == [None, None, TEXTS[0]]


def test_a_key_that_is_not_the_study_s_signs_nothing() -> None:
    assert read(written(TWO, KEYS[1])).signer is None


def test_a_changed_finding_is_appended_and_a_vanished_one_stays_in_the_log() -> None:
    ledger = read(written([finding(words="FAIL")], previous=read(SIGNED)))
    assert len(ledger.log) == 4
    assert ledger.log.tags() == ["reg/basin/v1", "reg/e2/v1"] and ledger.value["proof_count"] == 1


def test_rotation_and_revocation() -> None:
    ledger = read(RICH)
    assert ledger.signer == TEXTS[1] and [each.key for each in ledger.log.keys] == TEXTS[:2]
    assert [ledger.log.counts(number) for number in range(6)] == [True, True, False, False, True, True]
    again = [finding(words="FAIL"), TWO[1]]
    assert written(again, None, ledger) == RICH == written(again, KEYS[1], ledger)
    assert read(written([*again, finding("reg/new/v1")], KEYS[0], ledger)).signer is None
    assert read(written([*again, finding("reg/new/v1")], KEYS[1], ledger)).signer == TEXTS[1]
    for wrong in (
        lambda: rotated(ledger, KEYS[0], KEYS[2]),
        lambda: rotated(ledger, KEYS[1], KEYS[0]),
        lambda: revoked(ledger, KEYS[1], TEXTS[1], 0),
        lambda: revoked(ledger, KEYS[1], TEXTS[2], 0),
        lambda: revoked(ledger, KEYS[1], TEXTS[0], 7),
        lambda: revoked(ledger, KEYS[0], TEXTS[0], 0),
    ):
        with pytest.raises(StudyError):
            wrong()


def flipped(data: bytes, bit: int) -> bytes:
    place = bit // 8
    return data[:place] + bytes([data[place] ^ 1 << bit % 8]) + data[place + 1 :]


def refused(data: bytes) -> bool:
    try:
        read_ledger(data, "ledger.json")
    except (RecordError, CapExceeded):
        return True
    return False


@pytest.mark.parametrize("data", [written([]), written([], None)], ids=["signed", "unsigned"])
def test_every_flipped_bit_of_a_small_ledger_is_found(data: bytes) -> None:
    assert not refused(data)
    assert [bit for bit in range(8 * len(data)) if not refused(flipped(data, bit))] == []


@given(st.integers(0, 8 * len(RICH) - 1), st.integers(0, 8 * len(UNSIGNED) - 1))
@settings(deadline=None)
def test_any_flipped_bit_is_found(signed: int, unsigned: int) -> None:
    assert refused(flipped(RICH, signed))
    assert refused(flipped(UNSIGNED, unsigned))


@given(st.integers(0, len(RICH) - 1), st.binary(max_size=3))
@settings(deadline=None)
def test_any_cut_or_insertion_is_found(place: int, inserted: bytes) -> None:
    assert refused(RICH[:place])
    changed = RICH[:place] + inserted + RICH[place:]
    assert changed == RICH or refused(changed)


def forged(change: dict[str, Any], *, log: LedgerLog | None = None, **checkpoint: Any) -> bytes:
    """A ledger of whoever has the key, with something that does not fit."""
    ledger = read(SIGNED)
    base = {name: part for name, part in ledger.value.items() if name != "log"}
    value = with_checkpoint(base | change, log or ledger.log, KEYS[0])
    if checkpoint:
        note = Checkpoint(ORIGIN, len(ledger.log), ledger.log.tree.root(), document_digest(value))
        fields = {name: getattr(note, name) for name in ("origin", "size", "root", "document")}
        value["log"]["checkpoint"] = Checkpoint(**fields | checkpoint).signed(KEYS[0])
    return ledger_bytes(value)


def resigned(ledger: Ledger, number: int) -> bytes:
    value = json.loads(ledger_bytes(ledger.value))
    body_ = {name: part for name, part in value.items() if name != "log"}
    return ledger_bytes(with_checkpoint(body_, ledger.log, KEYS[number]))


BARE = ledger_bytes(body([], None))
BAD = {
    "empty": (b"", "not strict JSON"),
    "no JSON": (b"\xff{", "not strict JSON"),
    "a list": (b"[]\n", "schema"),
    "too deep": (b"[" * 100_000, "nested"),
    "a key twice": (SIGNED.replace(b' "study"', b' "study": "x",\n "study"', 1), "twice"),
    "of an older schema": (SIGNED.replace(b"trap-ledger-2", b"trap-ledger-1", 1), "schema"),
    "written otherwise": (json.dumps(json.loads(SIGNED)).encode(), "one form"),
    "a number spelt otherwise": (SIGNED.replace(b'"rate": 1,', b'"rate": 1.0,', 1), "one form"),
    "a zero with a sign": (SIGNED.replace(b'"seed": 0,', b'"seed": -0.0,', 1), "one form"),
    "without its last newline": (SIGNED[:-1], "one form"),
    "without a log": (BARE, "with a log"),
    "a log that is a text": (ledger_bytes(body([], None) | {"log": "x"}), "with a log"),
    "a checkpoint that is none": (
        ledger_bytes(body([], None) | {"log": {"origin": "", "entries": [], "checkpoint": "x"}}), "not a checkpoint",
    ),
    "another document": (SIGNED.replace(b"2 proofs, 0", b"9 proofs, 0", 1), "document"),
    "outside the schema": (forged({"proof_count": "2"}), "schema"),
    "another origin": (forged({}, origin="trapkit-ledger/other"), "another log"),
    "another size": (forged({}, size=2), "2 entries, the log has 3"),
    "another root": (forged({}, root=bytes(32)), "root"),
    "signed by a stranger": (resigned(read(SIGNED), 2), "signature does not hold"),
    "signed by a former key": (resigned(read(RICH), 0), "signature does not hold"),
    "signed without a key statement": (resigned(read(UNSIGNED), 0), "signature does not hold"),
    "a finding that the log lacks": (forged({"registrations": [*TWO, finding("reg/x/v1")]}), "last word"),
    "a finding that the log has otherwise": (forged({"registrations": [finding(words="FAIL")]}), "last word"),
    "a tag twice": (forged({"registrations": [TWO[0], TWO[0]]}), "twice"),
    "without what no one can prove": (forged({"no_one_can_prove": []}), "no one can prove"),
    "an entry that is none": (
        SIGNED.replace(b'"payloadType"', b'"payloadtype"', 1), "document",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_ledger_that_does_not_hold_is_refused_in_words(name: str) -> None:
    data, words = BAD[name]
    assert data != SIGNED
    with pytest.raises((RecordError, CapExceeded)) as refusal:
        read_ledger(data, "ledger.json")
    assert words in refusal.value.diagnostics()


def test_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ledger.reading.MAX_ENTRIES", 2)
    with pytest.raises(CapExceeded):
        read(SIGNED)
    monkeypatch.setattr("ledger.reading.MAX_LEDGER_BYTES", 100)
    with pytest.raises(CapExceeded):
        read(SIGNED)


def test_the_schema_is_one_and_says_what_every_field_is() -> None:
    from ledger.reading import _validator

    schema = _validator().schema
    jsonschema.Draft202012Validator.check_schema(schema)

    def fields(part: Any) -> Any:
        if isinstance(part, dict):
            yield from part.get("properties", {}).items() if isinstance(part.get("properties"), dict) else ()
            for child in part.values():
                yield from fields(child)

    assert [name for name, field in fields(schema) if "description" not in field and "$ref" not in field] == []
