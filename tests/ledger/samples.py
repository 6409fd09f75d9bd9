"""Ledgers made of nothing but two findings and three keys."""

from __future__ import annotations

import copy
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger.document import no_one_can_prove
from ledger.reading import Ledger, ledger_bytes, read_ledger
from ledger.writing import Author, next_ledger
from registry.ssh_signature import public_text

KEYS = [Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32) for number in range(1, 5)]
TEXTS = [public_text(key) for key in KEYS]
ORIGIN = "trapkit-ledger/sample"


def finding(tag: str = "reg/e2/v1", time: str | None = "2026-01-01T00:00:00Z", words: str = "PASS") -> dict[str, Any]:
    """What a ledger says of one tag, as short as the schema lets it be."""
    return {
        "tag": tag, "kind": "registration", "title": "A test", "question": None, "digest": "0" * 64, "claim": "none",
        "status": {"name": "registered", "reason": "seen"}, "failed": False, "verdict": {"value": True, "words": words},
        "push": {"time": time, "witness": "a witness"} if time else None, "sightings": [], "beacon": None,
        "check": {"name": "all", "outcome": "PROVEN", "reason": "", "needed": True, "children": []},
        "rates": [], "missing": [], "scores": [], "attempts": [],
        "runs": [
            {"path": "e2.v1/A/1/0", "arm": "A", "rate": 1.0, "seed": 0, "state": "complete", "simulated": True,
             "run_sha256": "1" * 64, "outcome": "PROVEN", "readings": {}, "verdicts": []}
        ],
    }  # fmt: skip


def body(findings: list[dict[str, Any]], signer: str | None) -> dict[str, Any]:
    """A document without its log."""
    return {
        "schema": "trap-ledger-2", "study": "sample", "policy_sha256": None, "proof_count": len(findings),
        "failure_count": 0, "last_line": f"{len(findings)} proofs, 0 failures", "registrations": findings,
        "designs": [], "attempts_log_problems": [], "exploratory_runs": [], "unseen_pushes": [], "attack_model": [],
        "no_one_can_prove": no_one_can_prove(signer),
    }  # fmt: skip


def written(
    findings: list[dict[str, Any]], key: Ed25519PrivateKey | None = KEYS[0], previous: Ledger | None = None
) -> bytes:
    """The bytes of a ledger of these findings, which goes on from another."""
    author = Author("sample", TEXTS[0], key)
    return ledger_bytes(next_ledger(lambda signer: body(copy.deepcopy(findings), signer), previous, author))


def read(data: bytes) -> Ledger:
    """A ledger that holds."""
    return read_ledger(data, "ledger.json")
