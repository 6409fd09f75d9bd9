"""The proof of a prediction tag: pushed before any run, and evaluated again.

Checks, in order: the tag and its signature, the file in its commit, the file
at the head, one push seen by a witness, the registration it belongs to, no run
before the push, and the same values when every predictor is evaluated again.
"""

from __future__ import annotations

import math

from registry.attempt_log import AttemptRecord
from registry.predictions import Values
from registry.registration import Registration
from registry.timestamps import moment
from verifier.check import Check, Outcome, group, proven, refuted, unprovable
from verifier.evidence import StudyEvidence, TagEvidence
from verifier.predictors import computed
from verifier.registration_checks import check_push, check_signature, check_tag, check_unchanged
from verifier.report import Proof
from verifier.status import derive_status

MODEL_TOLERANCE = 1e-9
"""Model F's sums may differ in their last bits between machines."""


def prove_predictions(
    tag: TagEvidence,
    evidence: StudyEvidence,
    trusted_keys: tuple[str, ...],
    registered: Proof | None,
    again: Values | None,
) -> Proof:
    """The proof of one prediction tag; `registered` is its registration's
    proof, `again` the values of an evaluation made now.
    """
    starts = _first_start(registered)
    pushed = tag.rows[0] if tag.rows else None
    checks = [
        check_tag(tag),
        check_signature(tag, evidence.settings.signing_key, trusted_keys),
        _check_frozen(tag),
        check_unchanged(tag),
        check_push(tag, evidence.witness),
        _check_registration(tag, registered),
        check_before_runs(pushed.timestamp if pushed else None, starts),
        _check_again(tag, again),
    ]
    return Proof(
        tag=tag.name,
        kind="predictions",
        registration=registered.registration if registered else None,
        check=group(tag.name, checks, "every check holds"),
        status=derive_status(pushed_at=pushed.timestamp if pushed else None, first_run_at=starts, independent=False),
        push=pushed,
        beacon=registered.beacon if registered else None,
    )


def _first_start(registered: Proof | None) -> str | None:
    starts = [r.time for r in registered.attempts if r.event == "start"] if registered else []
    return min(starts, key=moment, default=None)


def _check_frozen(tag: TagEvidence) -> Check:
    name = "predictions_frozen"
    if tag.tag is None:
        return unprovable(name, "there is no tag object to read the predictions from")
    if tag.predictions is None:
        return refuted(name, tag.problem or "the tagged commit holds no predictions")
    if tag.tag.digest != tag.predictions.digest:
        return refuted(name, "the digest in the tag is not that of the predictions in its commit")
    return proven(name, f"SHA-256 {tag.predictions.digest}")


def _check_registration(tag: TagEvidence, registered: Proof | None) -> Check:
    name = "predictions_of"
    if tag.predictions is None or registered is None or registered.registration is None:
        return unprovable(name, f"the registration of {tag.name} is not in the study")
    registration = registered.registration
    if (tag.predictions.id, tag.predictions.version) != (tag.id, tag.version):
        return refuted(name, f"the file is of {tag.predictions.id} v{tag.predictions.version}, the tag {tag.name}")
    if tag.predictions.registration_digest != registration.digest:
        return refuted(name, "the predictions are of another registration digest")
    return proven(name, f"predictions of {registration.tag}")


def check_before_runs(pushed_at: str | None, first_start: str | None) -> Check:
    """A witness saw the predictions pushed before the first start record."""
    name = "before_any_run"
    if pushed_at is None:
        return unprovable(name, "no witness saw the predictions pushed")
    if first_start is not None and moment(first_start) <= moment(pushed_at):
        return refuted(name, f"a run was started {first_start}, the predictions were pushed {pushed_at}")
    return proven(name, f"pushed {pushed_at}, before any run was started")


def _check_again(tag: TagEvidence, again: Values | None) -> Check:
    name = "evaluated_again"
    if tag.predictions is None or again is None:
        return unprovable(name, "the predictors could not be evaluated again")
    frozen = tag.predictions.values
    if set(frozen) != set(again):
        return refuted(name, "the predictions are not of the registered predictors and runs")
    for (predictor, run), value in frozen.items():
        if not math.isclose(value, again[predictor, run], rel_tol=MODEL_TOLERANCE):
            return refuted(name, f"{predictor} of {run.path} was frozen as {value!r}, and is {again[predictor, run]!r}")
    return proven(name, f"{len(frozen)} values, the same when evaluated again")


def frozen_predictions(evidence: StudyEvidence, tag: TagEvidence) -> Values:
    """The values frozen under the registration's prediction tag, if any."""
    for other in evidence.predictions:
        predictions = other.predictions
        own = (other.id, other.version) == (tag.id, tag.version)
        if own and predictions and tag.registration and predictions.registration_digest == tag.registration.digest:
            return predictions.values
    return {}


def check_predicted(registration: Registration, frozen: Values) -> Check:
    """What was to be predicted on the drawn plans was predicted."""
    name, wanted = "predicted", computed(registration)
    if not wanted:
        return proven(name, "no predictor is computed", needed=False)
    if not frozen:
        return unprovable(name, f"{len(wanted)} predictors were to be computed, and no predictions are tagged")
    return proven(name, f"{len(frozen)} predicted values are tagged; they have a proof of their own")


def in_time(evidence: StudyEvidence, tag: TagEvidence, attempts: list[AttemptRecord]) -> bool:
    """Whether the predictions were pushed before any run: else no verdict may
    rest on them.
    """
    own = [other for other in evidence.predictions if (other.id, other.version) == (tag.id, tag.version)]
    rows = [row for other in own for row in other.rows[:1]]
    starts = [record.time for record in attempts if record.event == "start"]
    pushed_at = rows[0].timestamp if rows else None
    return check_before_runs(pushed_at, min(starts, key=moment, default=None)).outcome is Outcome.PROVEN
