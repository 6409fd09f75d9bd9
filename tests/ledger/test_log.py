"""The log: who may append what, and when."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.envelope import Envelope, sealed
from ledger.log import LedgerLog
from ledger.statements import finding_statement, key_statement, revocation_statement, statement
from registry.errors import CapExceeded, RecordError
from tests.ledger.samples import KEYS, ORIGIN, TEXTS, finding


def found(tag: str = "reg/e2/v1", signer: int | None = 0, **changes: Any) -> Envelope:
    """A finding about a tag, signed by key number `signer`."""
    value = finding_statement(ORIGIN, finding(tag) | changes)
    return sealed(value) if signer is None else sealed(value, KEYS[signer])


def follows(new: int, old: int | None, *signers: int) -> Envelope:
    """A key statement."""
    value = key_statement(ORIGIN, TEXTS[new], None if old is None else TEXTS[old])
    return sealed(value, *(KEYS[number] for number in signers))


def revokes(key: int, size: Any, signer: int) -> Envelope:
    return sealed(revocation_statement(ORIGIN, TEXTS[key], size), KEYS[signer])


FIRST = follows(0, None, 0)
SECOND = follows(1, 0, 0, 1)


def test_keys_follow_one_another_and_signatures_of_a_revoked_one_stop_counting() -> None:
    log = LedgerLog(ORIGIN, [found("reg/z/v1", None), FIRST, found(), found("reg/b/v1"), SECOND, found("reg/c/v1", 1)])
    assert [(each.key, each.index) for each in log.keys] == [(TEXTS[0], 1), (TEXTS[1], 4)]
    assert [log.key_at(size) for size in (1, 2, 4, 5)] == [None, TEXTS[0], TEXTS[0], TEXTS[1]]
    assert [log.counts(index) for index in range(6)] == [False, True, True, True, True, True]
    log.append(revokes(0, 3, 1))
    assert [log.counts(index) for index in (2, 3, 4, 5)] == [True, False, True, True]
    log.append(revokes(0, 2, 1))
    log.append(revokes(0, 5, 1))
    assert log.revoked == {TEXTS[0]: 2}


def test_a_changed_finding_stands_beside_the_old_one() -> None:
    log = LedgerLog(ORIGIN, [FIRST, found(), found(claim="registered")])
    assert log.latest("reg/e2/v1") == 2 and log.tags() == ["reg/e2/v1"]
    assert not log.holds(finding()) and log.holds(finding() | {"claim": "registered"})
    log.append(found())
    assert log.holds(finding()) and len(log.tree) == 4


LISTED = finding() | {"tag": []}
BAD = {
    "another kind": ([FIRST], sealed(statement("urn:example:1", [], {"log": ORIGIN}), KEYS[0])),
    "no predicate": ([FIRST], sealed(statement("urn:trapkit:finding:1", [], None), KEYS[0])),  # type: ignore[arg-type]
    "no finding": ([FIRST], sealed(statement("urn:trapkit:finding:1", [], {"log": ORIGIN}), KEYS[0])),
    "a tag that is a list": (
        [FIRST],
        sealed(statement("urn:trapkit:finding:1", [], {"finding": {"tag": []}}), KEYS[0]),
    ),
    "of another log": ([FIRST], sealed(finding_statement("trapkit-ledger/other", finding()), KEYS[0])),
    "subjects that do not fit": ([FIRST], sealed(finding_statement(ORIGIN, finding()) | {"subject": []}, KEYS[0])),
    "not canonical": ([], Envelope(found(signer=None).payload + b" ", ())),
    "logged already": ([FIRST, found()], found()),
    "logged already, unsigned": ([FIRST, found()], found(signer=None)),
    "signed before any key": ([], found()),
    "signed by a stranger": ([FIRST], found(signer=2)),
    "signed by a former key": ([FIRST, SECOND], found(signer=0)),
    "two signatures": ([FIRST], sealed(finding_statement(ORIGIN, finding()), KEYS[0], KEYS[2])),
    "a broken signature": ([FIRST], Envelope(found().payload, ((found().signatures[0][0], bytes(64)),))),
    "a first key unsigned": ([], follows(0, None)),
    "a first key signed by another": ([], follows(0, None, 1)),
    "a second first key": ([FIRST], follows(1, None, 1)),
    "a rotation by the old key alone": ([FIRST], follows(1, 0, 0)),
    "a rotation by the new key alone": ([FIRST], follows(1, 0, 1)),
    "a rotation by strangers": ([FIRST], follows(1, 0, 2, 1)),
    "a rotation that follows nobody": ([], follows(1, 0, 0, 1)),
    "a rotation that follows another": ([FIRST], follows(2, 1, 0, 2)),
    "a rotation back": ([FIRST, SECOND], follows(0, 1, 1, 0)),
    "a key that is none": ([], sealed(statement("urn:trapkit:ledger-key:1", [], {"key": "x"}), KEYS[0])),
    "a revocation of the key that signs": ([FIRST, SECOND], revokes(1, 0, 1)),
    "a revocation of a stranger": ([FIRST, SECOND], revokes(2, 0, 1)),
    "a revocation by a former key": ([FIRST, SECOND], revokes(0, 0, 0)),
    "a revocation unsigned": ([FIRST, SECOND], sealed(revocation_statement(ORIGIN, TEXTS[0], 0))),
    "a revocation from the future": ([FIRST, SECOND], revokes(0, 3, 1)),
    "a revocation from a text": ([FIRST, SECOND], revokes(0, "0", 1)),
    "a revocation from true": ([FIRST, SECOND], revokes(0, True, 1)),
}


@pytest.mark.parametrize("name", BAD)
def test_what_may_not_stand_there_is_refused(name: str) -> None:
    before, envelope = BAD[name]
    log = LedgerLog(ORIGIN, before)
    with pytest.raises(RecordError):
        log.append(envelope)
    assert len(log) == len(before) == len(log.tree)


def test_the_number_of_entries_is_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ledger.log.MAX_ENTRIES", 2)
    with pytest.raises(CapExceeded):
        LedgerLog(ORIGIN, [FIRST, found("reg/a/v1"), found("reg/b/v1")])
