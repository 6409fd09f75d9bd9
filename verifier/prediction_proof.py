"""The proof of a prediction tag: pushed before any run, and evaluated again.

Checks, in order: the tag and its signature, the file in its commit, the file
at the head, one push seen by a witness, the registration it belongs to, no run
before the push, and the same values when every predictor is evaluated again.
"""

from __future__ import annotations

import math

from registry.predictions import Values
from registry.registration import Registration
from verifier.check import Check, Outcome, group, proven, refuted, unprovable
from verifier.evidence import StudyEvidence, TagEvidence
from verifier.predictors import computed
from verifier.registration_checks import check_signature, check_tag, check_unchanged
from verifier.report import Proof
from verifier.status import Status
from verifier.witness_checks import check_before_runs, check_push

MODEL_TOLERANCE = 1e-9
"""Model F's sums may differ in their last bits between machines."""


def prove_predictions(
    tag: TagEvidence,
    evidence: StudyEvidence,
    registered: Proof | None,
    again: Values | None,
) -> Proof:
    """The proof of one prediction tag; `registered` is its registration's
    proof, `again` the values of an evaluation made now.
    """
    before = check_before_runs(tag, evidence)
    checks = [
        check_tag(tag),
        check_signature(tag, evidence.settings.signing_key, evidence.policy.signing_keys),
        _check_frozen(tag),
        check_unchanged(tag),
        check_push(tag, evidence.logs),
        _check_registration(tag, registered),
        before,
        _check_again(tag, again),
    ]
    return Proof(
        tag=tag.name,
        kind="predictions",
        registration=registered.registration if registered else None,
        check=group(tag.name, checks, "every check holds"),
        status=_status(tag, registered, before),
        sightings=list(tag.sightings),
        beacon=registered.beacon if registered else None,
    )


def _status(tag: TagEvidence, registered: Proof | None, before: Check) -> Status:
    """The registration's own status, unless the predictions came too late."""
    if before.outcome is Outcome.REFUTED:
        return Status("retrospective", before.reason, "retrospective")
    if before.outcome is Outcome.UNPROVABLE or registered is None:
        return Status("registered", before.reason, "registered")
    if registered.status.name == "pre-registered" and not (tag.push and tag.push.independent):
        attainable = "pre-registered" if tag.push and tag.push.confirm else "registered"
        return Status("registered", "no witness of your policy saw the predictions pushed", attainable)
    return registered.status


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


def in_time(evidence: StudyEvidence, tag: TagEvidence) -> bool:
    """Whether the predictions were pushed before any run: else no verdict may
    rest on them.
    """
    own = [other for other in evidence.predictions if (other.id, other.version) == (tag.id, tag.version)]
    return all(check_before_runs(other, evidence).outcome is Outcome.PROVEN for other in own)
