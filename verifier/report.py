"""What a verification found, as plain values for tables, JSON and the ledger."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, is_dataclass
from enum import Enum
from typing import Any

from registry.attempt_log import AttemptRecord
from registry.beacon import BeaconValue
from registry.plain_text import escaped_json
from registry.registration import Registration
from registry.witness.sightings import Sighting
from verifier.check import Check, Outcome
from verifier.moments import Moment
from verifier.run_report import RunReport
from verifier.scores import Score
from verifier.status import Status, claim_exceeds
from verifier.verdict import OverallVerdict, RateVerdict


@dataclass
class Proof:
    """One proof: a tag of a registration or (`kind` predictions) of its
    predictions, with its checks nested. Runs, rates, scores and attempts are
    the registration's.
    """

    tag: str
    registration: Registration | None
    check: Check
    status: Status
    sightings: list[Sighting]
    beacon: BeaconValue | None
    kind: str = "registration"
    runs: list[RunReport] = field(default_factory=list)
    rates: list[RateVerdict] = field(default_factory=list)
    verdict: OverallVerdict = field(default_factory=lambda: OverallVerdict(None, "NOT DECIDABLE"))
    scores: list[Score] = field(default_factory=list)
    attempts: list[AttemptRecord] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)

    @property
    def push(self) -> Sighting | None:
        """The weightiest sighting of the tag's push, if there is one."""
        return next((sighting for sighting in self.sightings if sighting.pushed), None)

    @property
    def claim(self) -> str:
        """The status that the registration claims."""
        return self.registration.claim if self.registration else "none"

    @property
    def claim_too_strong(self) -> bool:
        """Whether the claim exceeds the derived status."""
        return self.registration is not None and claim_exceeds(self.claim, self.status)

    @property
    def failed(self) -> bool:
        """A refuted check, or a claim beyond the status."""
        return self.check.outcome is Outcome.REFUTED or self.claim_too_strong

    @property
    def missing(self) -> list[RunReport]:
        """Registered runs that have no complete, published attempt."""
        return [run for run in self.runs if run.state not in ("complete", "unavailable")]

    @property
    def incomplete(self) -> bool:
        """No failure shown, but something is missing or not decidable."""
        undecided = self.kind == "registration" and (bool(self.missing) or self.verdict.value is None)
        return self.check.outcome is Outcome.UNPROVABLE or undecided


@dataclass
class StudyReport:
    """A verification of a whole study, or of some of its registrations.

    `unseen` are pushes whose commits the clone lacks: what they held cannot
    be told.
    """

    study: str
    head: str
    proofs: list[Proof]
    witness_source: str
    log_problems: tuple[str, ...]
    exploratory: list[str]
    unseen: tuple[str, ...] = ()

    @property
    def failures(self) -> int:
        """How many proofs failed."""
        return sum(proof.failed for proof in self.proofs)

    @property
    def exit_code(self) -> int:
        """0 all proven; 1 a failure; 3 something missing or undecided."""
        if self.failures or self.log_problems:
            return 1
        return 3 if any(proof.incomplete for proof in self.proofs) or not self.proofs else 0

    @property
    def last_line(self) -> str:
        """`N proofs, M failures`."""
        return f"{len(self.proofs)} proofs, {self.failures} failures"


def to_json(value: Any) -> Any:
    """Plain JSON: dataclasses as objects, NaN as null, tuples as lists."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return to_json({name: getattr(value, name) for name in value.__dataclass_fields__})
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def proof_json(proof: Proof) -> dict[str, Any]:
    """A proof as JSON for `verify --json` and the ledger."""
    registration = proof.registration
    return {
        "tag": proof.tag,
        "kind": proof.kind,
        "title": registration.draft.title if registration else None,
        "question": registration.draft.question if registration else None,
        "digest": registration.digest if registration else None,
        "cell": registration.cell.name if registration else None,
        "claim": proof.claim,
        "status": to_json(proof.status),
        "failed": proof.failed,
        "claim_too_strong": proof.claim_too_strong,
        "verdict": to_json(proof.verdict),
        "push": to_json(proof.push),
        "sightings": to_json(proof.sightings),
        "beacon": to_json(proof.beacon),
        "check": to_json(proof.check),
        "rates": to_json(proof.rates),
        "runs": [_run_json(run) for run in proof.runs],
        "missing": [run.run.path for run in proof.missing],
        "scores": to_json(proof.scores),
        "attempts": [asdict(record) for record in proof.attempts],
        "moments": to_json(proof.moments),
    }


def _run_json(run: RunReport) -> dict[str, Any]:
    value: dict[str, Any] = to_json(run.check) if run.check else {}
    return {
        "path": run.run.path,
        "arm": run.run.arm,
        "rate": run.run.rate,
        "seed": run.run.seed,
        "state": run.state,
        "attempt": run.attempt,
        "simulated": run.simulated,
        "machine": run.machine,
        "job": run.job,
        "engine": run.engine,
        "run_sha256": run.run_sha256,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "outcome": value.get("outcome"),
        "reason": value.get("reason"),
        "readings": to_json(run.readings),
        "verdicts": to_json(run.verdicts),
    }


def report_json(report: StudyReport) -> dict[str, Any]:
    """The whole report as JSON."""
    return {
        "schema": "trap-report-1",
        "study": report.study,
        "head": report.head,
        "witness_source": report.witness_source,
        "proofs": [proof_json(proof) for proof in report.proofs],
        "log_problems": list(report.log_problems),
        "exploratory": report.exploratory,
        "unseen_pushes": list(report.unseen),
        "proof_count": len(report.proofs),
        "failure_count": report.failures,
        "exit_code": report.exit_code,
    }


def dumps(value: Any) -> str:
    """JSON text with sorted keys, the same bytes for the same value, safe on a terminal."""
    return escaped_json(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False))
