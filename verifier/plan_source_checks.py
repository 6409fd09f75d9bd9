"""The registration whose plans another takes, against its own proof."""

from __future__ import annotations

from collections.abc import Mapping

from registry.plan_source import difference
from registry.registration import Registration
from verifier.check import Check, Outcome, proven, refuted, unprovable
from verifier.report import Proof

_DRAWN = (
    "tag_is_annotated",
    "tag_signed",
    "registration_frozen",
    "unchanged_at_head",
    "push_witnessed",
    "drawn_after_push",
)
"""What shows that plans were drawn for a registration; its runs do not matter."""


def check_plan_from(registration: Registration, proofs: Mapping[str, Proof]) -> Check:
    """The plans are those that were drawn for the registration it names."""
    name, quoted = "plan_from", registration.plan_source
    if quoted is None:
        return proven(name, "its plans are its own", needed=False)
    source = proofs.get(quoted.tag)
    other = source.registration if source else None
    if source is None or other is None:
        return unprovable(name, f"{quoted.tag}, whose plans it takes, is not in the study")
    if other.digest != quoted.digest:
        return refuted(name, f"{quoted.tag} has another digest than the one that was quoted")
    drawn = [check for check in source.check.children if check.name in _DRAWN]
    for outcome, say in ((Outcome.REFUTED, refuted), (Outcome.UNPROVABLE, unprovable)):
        bad = next((check for check in drawn if check.outcome is outcome and check.needed), None)
        if bad:
            return say(name, f"{quoted.tag}: {bad.name}: {bad.reason}")
    if source.beacon is None or not quoted.quotes(source.beacon):
        return refuted(name, f"{quoted.tag} was drawn from another beacon value than the one that was quoted")
    own, theirs = registration.draft.design, other.draft.design
    unlike = difference(own, _lambda_ref(registration), theirs, _lambda_ref(other))
    if unlike:
        return refuted(name, f"the plans of {quoted.tag} are not for this design: {unlike}")
    return proven(name, f"the plans of {quoted.tag}, which existed before this registration was made")


def _lambda_ref(registration: Registration) -> float | None:
    return registration.calibration.lambda_ref_per_s if registration.calibration else None
