"""What was signed about a registration: RFC 3161 tokens, release attestations.

They stand offline: whoever brought them, the signature leads to a root of the
auditor's policy, or they are worth nothing and it is said why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from registry.errors import TrapError, WitnessError
from registry.witness.archive import release_path, timestamp_path
from registry.witness.policy import Policy
from registry.witness.sightings import Sighting

MAX_AUTHORITIES = 8


@dataclass(frozen=True)
class Tagged:
    """A tag as signatures speak of it: its name, the ids of its object and of
    its commit, and the SHA-256 of the tagged file.
    """

    name: str
    oid: str
    commit: str
    file_sha256: str


def signed_sightings(
    tagged: Tagged, read: Callable[[str], bytes | None], policy: Policy, repository_id: int | None
) -> tuple[list[Sighting], list[str]]:
    """What holds under the policy, and why other evidence there does not."""
    sightings: list[Sighting] = []
    unusable: list[str] = []
    for path, judge in _evidence(tagged, policy, repository_id):
        data = read(path)
        if data is None:
            continue
        try:
            sightings.append(judge(data))
        except TrapError as error:
            unusable.append(f"{path}: {error.what}")
    return sightings, unusable


def _evidence(
    tagged: Tagged, policy: Policy, repository_id: int | None
) -> Iterator[tuple[str, Callable[[bytes], Sighting]]]:
    for number in range(1, MAX_AUTHORITIES + 1):
        yield timestamp_path(tagged.name, number), lambda data: _stamp(data, tagged, policy)
    yield release_path(tagged.name), lambda data: _release(data, tagged, policy, repository_id)


def _stamp(token: bytes, tagged: Tagged, policy: Policy) -> Sighting:
    from registry.witness.timestamp_authority import verify_token

    stamp = verify_token(token, tagged.file_sha256, policy.timestamp_roots)
    words = f"token signed by {stamp.authority}"
    return Sighting("timestamp authority", "timestamp", stamp.time, words, independent=True, seen=tagged.file_sha256)


def _release(bundle: bytes, tagged: Tagged, policy: Policy, repository_id: int | None) -> Sighting:
    """A release of this very tag object, or one that carries the frozen file."""
    from registry.witness.release_attestation import verify_release_attestation

    if not (policy.release_signers and policy.release_timestamps):
        raise WitnessError("your policy names no trusted root of GitHub's release attestations")
    found = verify_release_attestation(bundle, policy.release_signers, policy.release_timestamps)
    if repository_id not in (None, found.repository_id):
        raise WitnessError(f"the release is of repository {found.repository_id}, not {repository_id}")
    objects = {f"{kind}:{oid}" for kind in ("sha1", "sha256") for oid in (tagged.oid, tagged.commit)}
    wanted = objects | {f"sha256:{tagged.file_sha256}"}
    if not wanted & set(found.subject_digests):
        raise WitnessError("the release is of another tag object, and does not carry the frozen file")
    words = f"attestation of release {found.tag}"
    return Sighting("GitHub (release)", "release", found.time, words, independent=True, seen=found.tag_digest)
