"""The ledger as one JSON value: what was promised, when, and what came out.

The same repository and run files give the same bytes: no wall clock, no
viewer's paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ledger.attack_model import ATTACK_MODEL
from ledger.designs import PROSE, changes_of, designs_of
from ledger.thresholds import thresholds_of
from ledger.timeline import timeline_of
from registry.draft import Draft
from registry.rule_words import plain_words
from registry.ssh_signature import fingerprint
from verifier.report import Proof, StudyReport, proof_json, to_json

SCHEMA = "trap-ledger-2"

NO_ONE_CAN_PROVE = (
    "Consistent records are not proof that a GPU ran.",
    "Registrations in other repositories cannot be excluded.",
    "Pushed is shown; whether the repository was public is not.",
    "The ledger is tamper-evident to holders of an earlier copy only.",
    "Computed by {author}; verify it yourself with: trapkit verify",
)


def ledger_document(report: StudyReport, policy_sha256: str | None = None, signer: str | None = None) -> dict[str, Any]:
    """Everything that the ledger says but its log, as plain JSON; `policy_sha256`
    names a trust policy other than what is built in, `signer` is the public key
    that the ledger will be signed with.
    """
    return {
        "schema": SCHEMA,
        "study": report.study,
        "policy_sha256": policy_sha256,
        "proof_count": len(report.proofs),
        "failure_count": report.failures,
        "last_line": report.last_line,
        "registrations": [_entry(proof, report.proofs) for proof in report.proofs],
        "designs": designs_of(report.proofs),
        "attempts_log_problems": list(report.log_problems),
        "exploratory_runs": report.exploratory,
        "unseen_pushes": list(report.unseen),
        "attack_model": [list(row) for row in ATTACK_MODEL],
        "no_one_can_prove": no_one_can_prove(signer),
    }


def no_one_can_prove(signer: str | None) -> list[str]:
    """What is said at a ledger's end; `signer` is its key, `ssh-ed25519 AAAA...`."""
    author = f"the holder of the key {fingerprint(signer)}" if signer else "someone who did not sign it"
    return [text.format(author=author) for text in NO_ONE_CAN_PROVE]


def _entry(proof: Proof, proofs: Sequence[Proof]) -> dict[str, Any]:
    entry = proof_json(proof)
    entry.pop("moments")
    registration = proof.registration
    if registration is None or proof.kind != "registration":
        return entry
    draft = registration.draft
    thresholds = thresholds_of(proof)
    for run, value in zip(proof.runs, entry["runs"], strict=True):
        value["thresholds"] = thresholds.get(run.run, {})
        value["folder"] = f"runs/{registration.folder}/{run.run.path}/attempt-{run.attempt}" if run.attempt else None
    entry |= {
        "timeline": timeline_of(proof.moments),
        "file": registration.file,
        "draft_sha256": registration.draft_sha256,
        "rule": _rule(draft),
        "judged_window": draft.judged_window,
        "seed_binding": draft.design.seeds.binding,
        "calibration": to_json(registration.calibration),
        "plan_from": to_json(registration.plan_source),
        "rehearsal": registration.rehearsal,
        "supersedes": registration.supersedes,
        "changes": changes_of(proof, proofs),
        "exclusions": list(draft.exclusions),
        "max_attempts": draft.max_attempts,
        "simulated": any(run.simulated for run in proof.runs),
        "engine": registration.engine.frozen() if registration.engine else None,
    }
    for name in PROSE:
        entry[name] = draft.source.get(name)
    return entry


def _rule(draft: Draft) -> dict[str, Any]:
    """The rules as frozen, by arm and name, and in plain words beside."""
    runs, reported = ({f"{r.arm}.{r.name}": r.text for r in rules} for rules in (draft.rule.runs, draft.rule.reported))
    words = {name: plain_words(text) for name, text in (runs | reported).items()}
    rate = draft.rule.rate.text
    return {"runs": runs, "reported": reported, "rate": rate, "words": words, "rate_words": plain_words(rate)}
