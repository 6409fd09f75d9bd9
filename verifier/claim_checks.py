"""The checks of a claim about a repository, in the words of a registration's.

In the order of trust: the tag, its commit, the files in it, the push, its
time, the runs that came after. Run starts are the claimant's word, and the
reason says so. Each is a pure function of what was already read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from registry.claims import Claim
from registry.timestamps import moment
from registry.witness.sightings import PushLog, Sighting
from verifier.check import Check, proven, refuted, unprovable
from verifier.status import Status


@dataclass(frozen=True)
class ClaimedTag:
    """What a repository holds under a claim's tag: the ref's object and kind,
    the commit behind it, the name that a tag object gives itself, and the
    digests of the claimed files there.
    """

    oid: str | None
    kind: str
    commit: str | None
    own_name: str | None = None
    files: tuple[tuple[str, str | None], ...] = ()

    def is_of(self, claim: Claim) -> bool:
        """Whether the tag is of the claimed commit."""
        return self.commit is not None and self.commit.startswith(claim.commit)


@dataclass(frozen=True)
class Seen:
    """A sighting, and whether the commit came with that very push: then its
    time is the push's, else only a latest time (None: unknown).
    """

    sighting: Sighting
    brought: bool | None = None


def check_exists(claim: Claim, found: ClaimedTag) -> Check:
    """The tag is there. A missing one may have been deleted, or never fetched."""
    name = "tag_exists"
    if found.oid is None:
        return unprovable(name, f"the tag {claim.tag} is not in the repository")
    if found.commit is None:
        return refuted(name, f"the tag {claim.tag} does not point at a commit")
    return proven(name, f"the repository holds the tag {claim.tag}")


def check_kind(claim: Claim, found: ClaimedTag) -> Check:
    """The tag is of the claimed kind, and an annotated one names itself."""
    if claim.tag_kind == "lightweight":
        name = "tag_is_lightweight"
        if found.oid is None:
            return unprovable(name, "there is no tag")
        if found.kind == "tag":
            return refuted(name, f"{claim.tag} is an annotated tag, claimed was a lightweight one")
        return proven(name, f"{claim.tag} is a lightweight tag")
    name = "tag_is_annotated"
    if claim.tag_kind == "any":
        return proven(name, "no kind of tag is claimed", needed=False)
    if found.oid is None:
        return unprovable(name, "there is no tag")
    if found.kind != "tag":
        return refuted(name, f"{claim.tag} is a lightweight tag, not a tag object")
    if found.own_name != claim.tag:
        return refuted(name, f"the tag object names itself {found.own_name}, its ref {claim.tag}")
    return proven(name, f"{claim.tag} is an annotated tag")


def check_commit(claim: Claim, found: ClaimedTag) -> Check:
    """The tag points at the claimed commit."""
    name = "commit_is"
    if found.commit is None:
        return unprovable(name, "there is no tagged commit to compare with")
    if not found.is_of(claim):
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
    return proven(name, f"{len(claim.files)} claimed file digests hold in the tagged commit")


def check_pushed(claim: Claim, found: ClaimedTag, seen: Sequence[Seen], logs: Sequence[PushLog]) -> Check:
    """A witness of the policy saw the commit pushed."""
    name = "push_witnessed"
    problem = next((log.problem for log in logs if log.problem), None)
    if problem:
        return refuted(name, problem)
    if not found.is_of(claim):
        return unprovable(name, "no tag of the claimed commit is here to look for")
    asked = "; ".join(f"{log.witness}: {log.source}" for log in logs) or "no witness was asked: --online"
    if not seen:
        return unprovable(name, f"no witness saw it pushed ({asked})")
    first = seen[0].sighting
    verb = "pushed" if seen[0].brought else "pushed by"
    words = f"{verb} {first.time}, by the clock of {first.witness} ({first.source})"
    if not first.independent:
        return unprovable(name, f"{words}; {first.confirm or 'your policy does not name it'}")
    return proven(name, words)


def check_time(claim: Claim, seen: Sequence[Seen]) -> Check:
    """A witness's time of the push is the claimed one.

    An earlier sighting contradicts the claim. A later one does only where the
    commit came with that push: else the log's beginning may be missing.
    """
    name = "pushed_when_claimed"
    if claim.pushed_at is None:
        return proven(name, "no time is claimed", needed=False)
    pushes = [each for each in seen if each.sighting.kind == "push"]
    trusted = [each for each in pushes if each.sighting.independent]
    if not trusted:
        more = f" ({_apart(claim, pushes[0])}: a copy)" if pushes else ""
        return unprovable(name, f"claimed is {claim.pushed_at}, and no independent witness says when{more}")
    right = next((e for e in trusted if e.brought is not False and abs(_off_s(claim, e)) <= claim.within_s), None)
    if right:
        return proven(name, _apart(claim, right))
    allowed = f"allowed were {claim.within_s:g} s"
    wrong = next((e for e in trusted if e.brought or _off_s(claim, e) < -claim.within_s), None)
    if wrong:
        return refuted(name, f"{_apart(claim, wrong)}, {allowed}")
    return unprovable(name, f"{_apart(claim, trusted[0])}, {allowed}; it may have been pushed earlier")


def _off_s(claim: Claim, seen: Seen) -> float:
    """How much later than claimed it was seen, seconds."""
    assert claim.pushed_at is not None
    return (moment(seen.sighting.time) - moment(claim.pushed_at)).total_seconds()


def _apart(claim: Claim, seen: Seen) -> str:
    off_s = _off_s(claim, seen)
    side = "later" if off_s > 0 else "earlier"
    words = f"{abs(off_s):g} s {side}" if off_s else "the same"
    return f"claimed {claim.pushed_at}, {seen.sighting.witness} says {seen.sighting.time}: {words}"


def check_before_first_run(claim: Claim, status: Status) -> Check:
    """The push came strictly before every run that is claimed to follow it."""
    name = "before_first_run"
    if not claim.runs and claim.before is None:
        return proven(name, "no run is claimed to follow", needed=False)
    if not claim.runs:
        return unprovable(name, f"claimed before {claim.before}, without any run's start")
    if status.name == "retrospective":
        return refuted(name, f"{status.reason}; {_word(claim)}")
    if status.name == "pre-registered":
        return proven(name, f"{status.reason}; {_word(claim)}")
    return unprovable(name, status.reason)


def _word(claim: Claim) -> str:
    first = min(claim.runs, key=lambda run: moment(run.started_at))
    source = f", from {first.source}" if first.source else ""
    return f"{len(claim.runs)} run starts are the claimant's word, the first that of {first.name}{source}"
