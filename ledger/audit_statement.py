"""An auditor's own statement: what was asked of a study's witnesses, and what came out.

It is the auditor's word, signed with the auditor's key, and stands in no
study's log: the time in it is the auditor's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ledger.envelope import Envelope, envelope_of
from ledger.reading import ledger_bytes
from ledger.statements import AUDIT, statement, subject
from registry.canonical import canonical_bytes, digest, load_json
from registry.errors import CapExceeded, RecordError, TrapError
from verifier.report import Proof, StudyReport, report_json, to_json

MAX_AUDIT_BYTES = 16_777_216


@dataclass(frozen=True)
class Answered:
    """Something that was asked: of whom, the answer's HTTP status where it has
    one, and the SHA-256 of the answer, hex.
    """

    what: str
    status: int | None
    sha256: str


@dataclass(frozen=True)
class Occasion:
    """An audit's circumstances: when by the auditor's clock (RFC 3339), with
    whose public key (None: unsigned), by which trust policy, what was asked, and
    which witnesses gave no answer and why.
    """

    at: str
    auditor: str | None
    policy_sha256: str
    online: bool
    asked: Sequence[Answered] = ()
    unanswered: Sequence[str] = ()


@dataclass(frozen=True)
class Audit:
    """An auditor's statement that holds together; `signer` is the auditor's public
    key, None where it is unsigned.
    """

    predicate: dict[str, Any]
    signer: str | None


def audit_predicate(report: StudyReport, study_key: str, occasion: Occasion) -> dict[str, Any]:
    """What an auditor states of a report; `study_key` is the key that the study names."""
    found: dict[str, Any] = to_json(
        {
            "study": report.study,
            "study_key": study_key,
            "head": report.head,
            **{name: getattr(occasion, name) for name in Occasion.__dataclass_fields__},
            "proof_count": len(report.proofs),
            "failure_count": report.failures,
            "exit_code": report.exit_code,
            "report_sha256": digest(report_json(report)),
            "proofs": [_proof(proof) for proof in report.proofs],
        }
    )
    return found


def _proof(proof: Proof) -> dict[str, Any]:
    return {
        "tag": proof.tag,
        "digest": proof.registration.digest if proof.registration else None,
        "claim": proof.claim,
        "status": proof.status.name,
        "outcome": proof.check.outcome,
        "failed": proof.failed,
        "verdict": proof.verdict.words,
        "push": proof.push,
    }


def audit_statement(predicate: dict[str, Any]) -> dict[str, Any]:
    """The in-toto Statement: about the study's head, and each registration read."""
    read = [subject(each["tag"], each["digest"]) for each in predicate["proofs"] if each["digest"]]
    return statement(AUDIT, [subject(predicate["study"], predicate["head"], "gitCommit"), *read], predicate)


def audit_bytes(envelope: Envelope) -> bytes:
    """The one form of a statement's file."""
    return ledger_bytes(envelope.as_json())


def read_audit(data: bytes, where: str) -> Audit:
    """A statement, checked alone; RecordError or CapExceeded where it does not hold."""
    try:
        envelope = envelope_of(load_json(data, where, MAX_AUDIT_BYTES), where)
        if audit_bytes(envelope) != data:
            raise RecordError("not in the one form in which statements are written", where=where)
        value = envelope.statement()
        predicate = value["predicate"]
        if value["predicateType"] != AUDIT or canonical_bytes(audit_statement(predicate)) != envelope.payload:
            raise RecordError("not an auditor's statement", where=where, value=str(value["predicateType"])[:100])
        auditor = predicate["auditor"]
        _shown_fields(predicate)
        if not envelope.signed_by([auditor] if auditor else []):
            raise RecordError("the statement's signature does not hold", where=where)
    except (RecordError, CapExceeded):
        raise
    except (TrapError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise RecordError("not an auditor's statement", where=where, value=str(error)[:100]) from None
    return Audit(predicate, auditor)


def _shown_fields(predicate: dict[str, Any]) -> None:
    """ValueError or KeyError unless everything that is shown is there."""
    kinds: dict[str, type] = {"at": str, "study_key": str, "online": bool, "asked": list, "unanswered": list}
    kinds |= {"proof_count": int, "failure_count": int, "exit_code": int, "policy_sha256": str}
    for name, kind in kinds.items():
        if type(predicate[name]) is not kind:
            raise ValueError(f"{name} is of another kind")
    for answer in predicate["asked"]:
        if not isinstance(answer["what"], str) or not isinstance(answer["sha256"], str):
            raise ValueError("an answer is malformed")
    for proof in predicate["proofs"]:
        if not all(isinstance(proof[name], str) for name in ("tag", "status", "outcome", "verdict")):
            raise ValueError("a proof is malformed")
