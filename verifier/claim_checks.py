"""Claims about a repository, checked in the words of a registration's checks.

In the order of trust: the tag, its commit, the files in it, the push, its
time, the runs that came after. Run starts are the claimant's word, and the
status says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from registry.canonical import sha256_hex
from registry.claims import Claim
from registry.errors import TrapError
from registry.mirror import Mirror
from registry.tags import parse_tag
from registry.timestamps import moment
from registry.witness.sightings import PushLog, Sighting, by_weight
from verifier.check import Check, Outcome, group, proven, refuted, unprovable
from verifier.status import Order, Status, derive_status


@dataclass(frozen=True)
class ClaimedTag:
    """What a repository holds under a claim's tag: the ref's object and kind,
    the commit behind it, and the digests of the claimed files there.
    """

    oid: str | None
    kind: str
    commit: str | None
    files: tuple[tuple[str, str | None], ...] = ()


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
    commit = oid if kind == "commit" else None
    if oid and kind == "tag":
        try:
            commit = parse_tag(mirror.object_bytes(oid, "tag") or b"").commit
        except TrapError:
            commit = None
    if commit is None:
        return ClaimedTag(oid, kind, None)
    found = ((path, mirror.blob(commit, path)) for path, _ in claim.files)
    digests = tuple((path, None if data is None else sha256_hex(data)) for path, data in found)
    return ClaimedTag(oid, kind, commit, digests)


def prove_claim(claim: Claim, found: ClaimedTag, logs: Sequence[PushLog], allowance_s: float) -> ClaimProof:
    """The proof of one claim, by what was read and what witnesses say."""
    rows = [(log, row) for log in logs for row in log.of_tag(claim.tag, found.oid, found.commit)[:1]]
    sightings = tuple(by_weight(log.sighting(row) for log, row in rows))
    starts = [run.started_at for run in claim.runs]
    first = min(starts, key=moment, default=None)
    status = derive_status(sightings, Order(False, False, True, None, first, allowance_s))
    if first is None:
        status = Status("registered", "no run is claimed to follow: only that it was pushed", "registered")
    checks = [
        check_claimed_tag(claim, found),
        check_commit(claim, found),
        check_files(claim, found),
        check_pushed(sightings, logs),
        check_time(claim, sightings),
        check_before_first_run(claim, status),
    ]
    return ClaimProof(claim, group(claim.id, checks, "every check holds"), status, sightings)


def check_claimed_tag(claim: Claim, found: ClaimedTag) -> Check:
    """The tag is there, and of the claimed kind."""
    name = "tag_is_there"
    if found.oid is None:
        return unprovable(name, f"the tag {claim.tag} is not in the repository")
    if found.commit is None:
        return refuted(name, f"the tag {claim.tag} does not point at a commit")
    if claim.annotated and found.kind != "tag":
        return refuted(name, f"{claim.tag} is a lightweight tag, claimed was an annotated one")
    return proven(name, f"{claim.tag} is {'an annotated' if found.kind == 'tag' else 'a lightweight'} tag")


def check_commit(claim: Claim, found: ClaimedTag) -> Check:
    """The tag points at the claimed commit."""
    name = "commit_is"
    if found.commit is None:
        return unprovable(name, "there is no tagged commit to compare with")
    if not found.commit.startswith(claim.commit):
        return refuted(name, f"the tag points at {found.commit[:12]}, claimed was {claim.commit}")
    return proven(name, f"the tag points at {found.commit}")


def check_files(claim: Claim, found: ClaimedTag) -> Check:
    """The commit holds the claimed files, by the digests of git's own bytes."""
    name = "files_frozen"
    if not claim.files:
        return proven(name, "no file is claimed", needed=False)
    if found.commit is None:
        return unprovable(name, "there is no tagged commit to read files from")
    for (path, claimed), (_, held) in zip(claim.files, found.files, strict=True):
        if held is None:
            return refuted(name, f"the tagged commit holds no {path}")
        if held != claimed:
            return refuted(name, f"{path} has the SHA-256 {held}, claimed was {claimed}")
    return proven(name, f"{len(claim.files)} files have their digests in the tagged commit")


def check_pushed(sightings: Sequence[Sighting], logs: Sequence[PushLog]) -> Check:
    """A witness that the claimant does not run saw the commit pushed."""
    name = "push_witnessed"
    problem = next((log.problem for log in logs if log.problem), None)
    if problem:
        return refuted(name, problem)
    if not sightings:
        asked = "; ".join(f"{log.witness}: {log.source}" for log in logs) or "no witness was asked: --online"
        return unprovable(name, f"no witness saw it pushed ({asked})")
    seen = sightings[0]
    words = f"pushed {seen.time}, by the clock of {seen.witness} ({seen.source})"
    return proven(name, words) if seen.independent else unprovable(name, f"{words}: a copy; ask again with --online")


def check_time(claim: Claim, sightings: Sequence[Sighting]) -> Check:
    """The witness's time is the claimed one."""
    name = "pushed_when_claimed"
    if claim.pushed_at is None:
        return proven(name, "no time is claimed", needed=False)
    seen = next((sighting for sighting in sightings if sighting.independent), None)
    if seen is None:
        return unprovable(name, f"claimed is {claim.pushed_at}, and no independent witness says when")
    off_s = abs((moment(seen.time) - moment(claim.pushed_at)).total_seconds())
    words = f"claimed {claim.pushed_at}, {seen.witness} says {seen.time}: {off_s:g} s apart"
    return (
        proven(name, words) if off_s <= claim.within_s else refuted(name, f"{words}, allowed were {claim.within_s:g}")
    )


def check_before_first_run(claim: Claim, status: Status) -> Check:
    """The push came strictly before every run that is claimed to follow it."""
    name = "before_first_run"
    if not claim.runs:
        return proven(name, "no run is claimed to follow", needed=False)
    if status.name == "retrospective":
        return refuted(name, status.reason)
    if status.name == "pre-registered":
        return proven(name, f"{status.reason}; {len(claim.runs)} run starts, the claimant's word")
    return unprovable(name, status.reason)
