"""A claim about a repository and its proof, by what was read and witnessed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from registry.canonical import sha256_hex
from registry.claims import Claim
from registry.mirror import Mirror
from registry.timestamps import moment
from registry.witness.rows import PushRow, in_order
from registry.witness.sightings import PushLog, Sighting, by_weight
from verifier.check import Check, Outcome, group
from verifier.claim_checks import (
    ClaimedTag,
    Seen,
    check_before_first_run,
    check_commit,
    check_exists,
    check_files,
    check_kind,
    check_pushed,
    check_time,
)
from verifier.github_logs import GAPPED
from verifier.status import Order, Status, derive_status

Ancestry = Callable[[str, str], bool | None]


@dataclass(frozen=True)
class ClaimProof:
    """A claim, its checks nested, its derived status and what witnesses saw."""

    claim: Claim
    check: Check
    status: Status
    sightings: tuple[Sighting, ...]

    @property
    def failed(self) -> bool:
        """Whether something contradicts the claim."""
        return self.check.outcome is Outcome.REFUTED

    @property
    def incomplete(self) -> bool:
        """Whether evidence is missing."""
        return self.check.outcome is Outcome.UNPROVABLE


def read_claimed(mirror: Mirror, claim: Claim) -> ClaimedTag:
    """What a mirror holds under a claim's tag."""
    oid, kind = mirror.refs().get(f"refs/tags/{claim.tag}", (None, "missing"))
    if oid is None:
        return ClaimedTag(None, kind, None)
    commit = mirror.commit_of(oid)
    name = _own_name(mirror.object_bytes(oid, "tag") or b"") if kind == "tag" else None
    if commit is None:
        return ClaimedTag(oid, kind, None, name)
    found = ((path, mirror.blob(commit, path)) for path, _ in claim.files)
    digests = tuple((path, None if data is None else sha256_hex(data)) for path, data in found)
    return ClaimedTag(oid, kind, commit, name, digests)


def _own_name(tag: bytes) -> str | None:
    """The name in a tag object's own header."""
    lines = tag.partition(b"\n\n")[0].split(b"\n")
    return next((line[4:].decode("utf-8", "replace") for line in lines if line.startswith(b"tag ")), None)


def prove_claim(
    claim: Claim,
    found: ClaimedTag,
    logs: Sequence[PushLog],
    is_ancestor: Ancestry,
    allowance_s: float,
    statuses: Sequence[Sighting] = (),
) -> ClaimProof:
    """The proof of one claim. `is_ancestor(a, b)` says whether commit `a` is in
    the history of `b`; `statuses` are sightings of the commit beside any log.
    """
    seen = find_seen(claim, found, logs, is_ancestor, statuses)
    status = status_of(claim, found, seen, allowance_s)
    checks = [
        check_exists(claim, found),
        check_kind(claim, found),
        check_commit(claim, found),
        check_files(claim, found),
        check_pushed(claim, found, seen, logs),
        check_time(claim, seen),
        check_before_first_run(claim, status),
    ]
    sightings = tuple(each.sighting for each in seen)
    return ClaimProof(claim, group(claim.id, checks, "every check holds"), status, sightings)


def find_seen(
    claim: Claim, found: ClaimedTag, logs: Sequence[PushLog], is_ancestor: Ancestry, statuses: Sequence[Sighting]
) -> tuple[Seen, ...]:
    """What witnesses saw of the claimed commit, the weightiest first. A tag of
    another commit is another thing: nothing that is seen of it speaks here.
    """
    if found.commit is None or not found.is_of(claim):
        return ()
    seen = [Seen(status) for status in statuses]
    for log in logs:
        for row in log.of_tag(claim.tag, found.oid, found.commit)[:1]:
            seen.append(Seen(log.sighting(row), _brought(found.commit, log, row, is_ancestor)))
    order = by_weight(each.sighting for each in seen)
    return tuple(sorted(seen, key=lambda each: order.index(each.sighting)))


def _brought(commit: str, log: PushLog, row: PushRow, is_ancestor: Ancestry) -> bool | None:
    """Whether the commit came with this row. Not where the branch had it
    before, so that an earlier row is missing; unknown where it cannot be told.
    """
    if log.witness == GAPPED:
        return None
    if set(row.before) != {"0"}:
        held = is_ancestor(commit, row.before)
        return None if held is None else not held
    begins_with_a_branch = set(in_order(log.rows)[0].before) == {"0"}
    return True if begins_with_a_branch else None


def status_of(claim: Claim, found: ClaimedTag, seen: Sequence[Seen], allowance_s: float) -> Status:
    """The status that verify would derive, with run clocks as the only order."""
    if found.commit is None or not found.is_of(claim):
        words = "the tag is not in the repository" if found.oid is None else "the tag is not of the claimed commit"
        return Status("exploratory", f"{words}: nothing here is registered as claimed", "exploratory")
    starts = [run.started_at for run in claim.runs]
    first = min(starts, key=moment, default=None)
    kept = [each for each in seen if each.brought or first is None or moment(each.sighting.time) < moment(first)]
    if first is None and seen:
        words = claim.before or "anything"
        return Status(
            "registered", f"pushed, but no run start is stated: nothing shows it before {words}", "registered"
        )
    if seen and not kept:
        late = seen[0].sighting
        words = f"{late.witness} saw it at {late.time}, not strictly before the first run at {first}"
        return Status("registered", f"{words}; it may have been pushed earlier", "registered")
    order = Order(
        by_beacon=False, trusted=False, own_draw=True, round_at=None, first_run_at=first, allowance_s=allowance_s
    )
    return derive_status([each.sighting for each in kept], order)
