"""An auditor's statement: it stands alone, and one that does not hold is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.audit_statement import audit_bytes, audit_statement, read_audit
from ledger.envelope import Envelope, sealed
from ledger.statements import finding_statement
from registry.errors import CapExceeded, RecordError
from tests.ledger.samples import KEYS, ORIGIN, TEXTS, finding

PREDICATE: dict[str, Any] = {
    "study": "sample", "study_key": TEXTS[0], "head": "0" * 40, "at": "2026-01-01T00:00:00Z", "auditor": TEXTS[1],
    "policy_sha256": "1" * 64, "online": True, "unanswered": [], "proof_count": 1, "failure_count": 0, "exit_code": 0,
    "asked": [{"what": "https://api.github.com/repos/a/b", "status": 200, "sha256": "2" * 64}],
    "report_sha256": "3" * 64,
    "proofs": [
        {"tag": "reg/e2/v1", "digest": "4" * 64, "claim": "none", "status": "registered", "outcome": "PROVEN",
         "failed": False, "verdict": "PASS", "push": None}
    ],
}  # fmt: skip


def signed(*keys: int, **changes: Any) -> bytes:
    return audit_bytes(sealed(audit_statement(PREDICATE | changes), *(KEYS[number] for number in keys)))


GOOD = signed(1)


def test_a_statement_reads_back() -> None:
    assert read_audit(GOOD, "audit.json").predicate == PREDICATE
    assert read_audit(GOOD, "audit.json").signer == TEXTS[1]
    assert read_audit(signed(auditor=None), "audit.json").signer is None


@given(st.integers(0, 8 * len(GOOD) - 1))
@settings(deadline=None)
def test_any_flipped_bit_is_found(bit: int) -> None:
    data = bytearray(GOOD)
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises((RecordError, CapExceeded)):
        read_audit(bytes(data), "audit.json")


BAD = {
    "no JSON": b"{",
    "a list": b"[]\n",
    "written otherwise": GOOD.replace(b"\n", b""),
    "unsigned where it names an auditor": signed(),
    "signed where it names none": signed(1, auditor=None),
    "signed by another": signed(2),
    "signed twice": signed(1, 2),
    "another statement": audit_bytes(sealed(finding_statement(ORIGIN, finding()), KEYS[1])),
    "an auditor that is no key": signed(1, auditor="me"),
    "a time that is none": signed(1, at=7),
    "an answer without a digest": signed(1, asked=[{"what": "x"}]),
    "a proof that is none": signed(1, proofs=[{"digest": None}]),
    "no statement": audit_bytes(Envelope(b"{}", ())),
}


@pytest.mark.parametrize("name", BAD)
def test_a_statement_that_does_not_hold_is_refused(name: str) -> None:
    with pytest.raises(RecordError):
        read_audit(BAD[name], "audit.json")


def test_the_size_is_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ledger.audit_statement.MAX_AUDIT_BYTES", 100)
    with pytest.raises(CapExceeded):
        read_audit(GOOD, "audit.json")
