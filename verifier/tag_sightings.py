"""What witnesses saw of a tag that is no registration: a published ledger's."""

from __future__ import annotations

from dataclasses import dataclass

from registry.canonical import sha256_hex
from registry.errors import TrapError
from registry.mirror import Mirror
from registry.ssh_signature import SignatureRejected, verify
from registry.tags import parse_tag
from registry.witness.sightings import Sighting, by_weight
from verifier.evidence import TAG_PREFIX, StudyEvidence
from verifier.stamps import Tagged, signed_sightings


@dataclass(frozen=True)
class TaggedFile:
    """A file under a tag: its bytes in the tagged commit (None: there is none),
    the public key that signed the tag (None: nobody), who saw it pushed, the
    weightiest first, and what is wrong with it.
    """

    tag: str
    data: bytes | None
    signer: str | None
    sightings: tuple[Sighting, ...]
    problems: tuple[str, ...]


def tagged_file(mirror: Mirror, evidence: StudyEvidence, tag: str, path: str) -> TaggedFile:
    """Read a file under a tag, as `mirror` and the evidence's push logs have it."""
    oid, kind = mirror.refs().get(TAG_PREFIX + tag, ("", "missing"))
    try:
        found = parse_tag(mirror.object_bytes(oid, "tag") or b"") if kind == "tag" else None
    except TrapError:
        found = None
    if found is None:
        missing = "a witness saw the tag, and it is not in the repository"
        return TaggedFile(tag, None, None, (), (missing if kind == "missing" else "it is no annotated tag",))
    problems = []
    if found.name != tag:
        problems.append("the tag object is another tag's")
    try:
        signer = verify(found.signature, found.signed) if found.signature else None
    except SignatureRejected as error:
        signer = None
        problems.append(error.what)
    data = mirror.blob(found.commit, path)
    if data is None:
        problems.append(f"the tagged commit holds no {path}")
    elif found.digest != sha256_hex(data):
        problems.append("the tag names another digest than the file's")
    rows = [row for log in evidence.logs for row in log.rows_of(TAG_PREFIX + tag)]
    if any(row.after != oid for row in rows):
        problems.append("a witness saw it moved or deleted")
    sightings = [log.sighting(row) for log in evidence.logs for row in log.of_tag(tag, oid, found.commit)[:1]]
    if data is not None:
        number = evidence.settings.github.repository_id if evidence.settings.github else None
        tagged = Tagged(tag, oid, found.commit, sha256_hex(data))
        signed, unusable = signed_sightings(
            tagged, lambda name: mirror.blob(evidence.head, name), evidence.policy, number
        )
        sightings += signed
        problems += unusable
    return TaggedFile(tag, data, signer, tuple(by_weight(sightings)), tuple(problems))
