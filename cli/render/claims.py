"""An audit of claims as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cli.workflows.audit import Audit
from registry.plain_text import plain
from verifier.check import Outcome
from verifier.claims import ClaimProof
from verifier.report import dumps, to_json


def audit_text(audit: Audit) -> str:
    """Every claim with its checks; the last line is the proof count."""
    lines = [f"claims: {plain(audit.claims.title)}", f"  made in: {plain(audit.claims.source)}"]
    lines.append(f"  push log: {plain(audit.witness_source)}")
    for proof in audit.proofs:
        lines += ["", *_proof_lines(proof)]
    return "\n".join([*lines, "", audit.last_line])


def _proof_lines(proof: ClaimProof) -> Iterator[str]:
    yield f"{plain(proof.claim.id)}  {plain(proof.claim.tag)}: {proof.check.outcome}"
    yield f"  status {proof.status.name}: {plain(proof.status.reason, 400)}"
    for check in proof.check.children:
        if check.needed or check.outcome is not Outcome.PROVEN:
            yield f"  {check.outcome}  {check.name}: {plain(check.reason, 400)}"


def audit_json(audit: Audit) -> str:
    """The audit as JSON (`trap-audit-1`)."""
    value: dict[str, Any] = {
        "schema": "trap-audit-1",
        "title": audit.claims.title,
        "source": audit.claims.source,
        "witness_source": audit.witness_source,
        "proofs": [to_json(proof) | {"failed": proof.failed} for proof in audit.proofs],
        "proof_count": len(audit.proofs),
        "failure_count": audit.failures,
        "exit_code": audit.exit_code,
    }
    return dumps(value)
