"""Status: derived from the order that witnesses attest, never declared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from registry.timestamps import moment
from registry.witness.sightings import Sighting

RANK = {"exploratory": 0, "void": 0, "retrospective": 1, "registered": 2, "pre-registered": 3}


@dataclass(frozen=True)
class Status:
    """A derived status and why it is this one.

    `attainable` is the status that the study's own copies would give if they
    were confirmed: a claim up to it lacks evidence, a claim beyond it fails.
    """

    name: str
    reason: str
    attainable: str


@dataclass(frozen=True)
class Order:
    """By what a registration precedes its runs.

    `by_beacon`: plans that could not exist before a draw; else run clocks, the
    author's own. `trusted` is whether the draw is a policy's, `own_draw` whether
    it is the author's own machine's. `round_at` is
    when the beacon's round was out (drand), `first_run_at` when the first run
    started by its own clock, `allowance_s` what the policy grants that clock.
    """

    by_beacon: bool
    trusted: bool
    own_draw: bool
    round_at: str | None
    first_run_at: str | None
    allowance_s: float = 0.0

    @property
    def words(self) -> str:
        """The order in words, for the reason."""
        if self.by_beacon:
            return "before its plans could exist" if self.round_at else "before its plans were drawn"
        return "before the first run, by run clocks: the author's own"


def derive_status(sightings: Sequence[Sighting], order: Order) -> Status:
    """The first that applies: void, retrospective, pre-registered, registered.

    `sightings` come the weightiest first. Only a push that is dated can come
    too late: a latest time says nothing of what was before.
    """
    push = next((sighting for sighting in sightings if sighting.pushed and sighting.dated), None)
    in_time = any(s.pushed and s.independent and _in_time(s, order) for s in sightings)
    if push and not in_time and order.round_at and moment(push.time) >= moment(order.round_at):
        return _final("void", f"pushed {push.time}, not before its beacon round was out at {order.round_at}")
    drawn = order.by_beacon and order.trusted
    if push and not in_time and order.first_run_at and not drawn and moment(order.first_run_at) < moment(push.time):
        return _final("retrospective", f"a run started {order.first_run_at}, before the push at {push.time}")
    trusted = next((s for s in sightings if s.independent and _in_time(s, order)), None)
    if trusted and (order.trusted or not order.by_beacon):
        words = f"{trusted.witness} had seen it at {trusted.time}, {order.words}"
        return _final("pre-registered", f"{words} ({trusted.source})")
    supplied = next((s for s in sightings if s.pushed and s.confirm and _in_time(s, order)), None)
    if supplied and not (order.by_beacon and order.own_draw):
        untrusted = "; its beacon is not your policy's" if order.by_beacon and not order.trusted else ""
        reason = f"{supplied.witness} at {supplied.time}, as the author supplied it{untrusted}; {supplied.confirm}"
        return replace(_final("registered", reason), attainable="pre-registered")
    return _final("registered", _why_no_more(sightings, order))


def _final(name: str, reason: str) -> Status:
    return Status(name, reason, name)


def _in_time(sighting: Sighting, order: Order) -> bool:
    """Strictly before the round, or before the first run less the allowance."""
    if order.by_beacon:
        return order.round_at is None or moment(sighting.time) < moment(order.round_at)
    if order.first_run_at is None:
        return True
    return moment(sighting.time) < moment(order.first_run_at) - timedelta(seconds=order.allowance_s)


def _why_no_more(sightings: Sequence[Sighting], order: Order) -> str:
    if not sightings:
        return "committed, but no witness saw the push"
    late = next((s for s in sightings if not _in_time(s, order)), None)
    if late and not order.by_beacon:
        return f"{late.witness} saw it at {late.time}, not strictly before the first run at {order.first_run_at}"
    if order.by_beacon and not order.trusted:
        return "its plans were drawn by a witness that your policy does not name: its owner could draw again"
    return f"witnessed by {sightings[0].witness} only ({sightings[0].source}), which your policy does not name"


def claim_exceeds(claim: str, status: Status) -> bool:
    """Whether a claim is stronger than anything that the evidence can give."""
    return RANK.get(claim, 9) > RANK[status.attainable]
