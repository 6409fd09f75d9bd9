"""Status: derived from the order that witnesses attest, never declared."""

from __future__ import annotations

from dataclasses import dataclass

from registry.timestamps import moment

RANK = {"exploratory": 0, "void": 0, "retrospective": 1, "registered": 2, "pre-registered": 3}


@dataclass(frozen=True)
class Status:
    """A derived status and why it is this one."""

    name: str
    reason: str


def derive_status(*, pushed_at: str | None, first_run_at: str | None, independent: bool) -> Status:
    """The first that applies: retrospective, pre-registered, registered.

    `pushed_at` and `first_run_at` are RFC 3339 UTC; `independent` whether a
    witness of the auditor's policy proves the push.
    """
    if pushed_at and first_run_at and moment(first_run_at) < moment(pushed_at):
        return Status("retrospective", f"a run started {first_run_at}, before the push at {pushed_at}")
    if independent:
        return Status("pre-registered", "a witness that the auditor trusts saw the push before the first run")
    if pushed_at is None:
        return Status("registered", "committed, but no witness saw the push")
    return Status(
        "registered",
        "witnessed by the author's machine only: its owner could recreate the log, so no more can be shown",
    )


def claim_exceeds(claim: str, status: Status) -> bool:
    """Whether a claim is stronger than what was derived."""
    return RANK.get(claim, 9) > RANK[status.name]
