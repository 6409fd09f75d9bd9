"""The checks of a registration, in the order of trust.

1. The tag is annotated, names itself and points at a commit.
2. Its SSH signature holds, by a key that the policy or the study names.
3. The registration blob in that commit has the digest that the tag states.
4. The file at the study's head is that blob still.
5. The verifier computes readings as the registration froze them.
6. A cell with a name of the paper's has that cell's constants.
7. It supersedes the version before it, by digest.

What rests on witnesses is in `witness_checks`. Each is a pure function of evidence already read.
"""

from __future__ import annotations

from dataclasses import replace

from artifacts.records import RECORDS_VERSION
from modelf.cells import CELLS
from registry.reading_catalogue import READINGS_VERSION
from registry.registration import Registration
from registry.ssh_signature import SignatureRejected, verify
from verifier.check import Check, proven, refuted, unprovable
from verifier.evidence import TagEvidence
from verifier.golden import golden_digest


def check_tag(evidence: TagEvidence) -> Check:
    """Check 1. A lightweight tag is no tag object: unprovable, not tampering."""
    name = "tag_is_annotated"
    if evidence.tag is None:
        outcome = refuted if evidence.oid is None and evidence.rows else unprovable
        words = evidence.problem or "no tag"
        if outcome is refuted:
            words = f"the witness saw {evidence.name} pushed, and {words}"
        return outcome(name, words)
    if evidence.tag.name != evidence.name:
        return refuted(name, f"the tag object names itself {evidence.tag.name}, its ref {evidence.name}")
    return proven(name, f"{evidence.name} is an annotated tag of commit {evidence.tag.commit[:12]}")


def check_signature(evidence: TagEvidence, study_key: str, trusted: tuple[str, ...]) -> Check:
    """Check 2. A key that only the study names is worth the study's word."""
    name = "tag_signed"
    if evidence.tag is None or not evidence.tag.signature:
        return unprovable(name, "the tag is not signed" if evidence.tag else "there is no tag object")
    try:
        key = verify(evidence.tag.signature, evidence.tag.signed)
    except SignatureRejected as error:
        return refuted(name, error.what)
    if key in trusted:
        return proven(name, "signed by a key of the auditor's policy")
    if key == study_key:
        return proven(name, "signed by the key that the study names")
    return refuted(name, "signed by a key that neither the policy nor the study names")


def check_frozen(evidence: TagEvidence) -> Check:
    """Check 3. The digest is of the blob in the commit, never of a checkout."""
    name = "registration_frozen"
    if evidence.tag is None:
        return unprovable(name, "there is no tag object to read the registration from")
    if evidence.frozen is None:
        return refuted(name, "the tagged commit holds no such registration")
    if evidence.registration is None and evidence.over_cap:
        return unprovable(name, f"the registration is too much to read: {evidence.problem}")
    if evidence.registration is None:
        return refuted(name, f"the registration cannot be read: {evidence.problem}")
    registration = evidence.registration
    if (registration.id, registration.version) != (evidence.id, evidence.version):
        return refuted(name, f"the file is {registration.tag}, the tag {evidence.name}")
    if evidence.tag.digest != registration.digest:
        return refuted(name, "the digest in the tag is not that of the registration in its commit")
    if registration.claim != (registration.draft.claim or registration.claim):
        return refuted(name, f"it claims {registration.claim}, its draft {registration.draft.claim}")
    return proven(name, f"SHA-256 {registration.digest}")


def check_unchanged(evidence: TagEvidence) -> Check:
    """Check 4."""
    name = "unchanged_at_head"
    if evidence.frozen is None:
        return unprovable(name, "there is no frozen file to compare with")
    if evidence.at_head is None:
        return refuted(name, f"the {_noun(evidence)} was removed at the study's head")
    if evidence.at_head != evidence.frozen:
        return refuted(name, f"the {_noun(evidence)} at the study's head differs from the tagged one")
    if evidence.contents > 1:
        return refuted(name, f"{evidence.contents} different files were committed as {evidence.name}")
    return proven(name, "the file at the head is the tagged one")


def _noun(evidence: TagEvidence) -> str:
    return "registration" if evidence.name.startswith("reg/") else "prediction file"


def check_readings(registration: Registration) -> Check:
    """Check 5. Another version of the readings decides nothing."""
    name = "readings_version"
    if registration.readings_version != READINGS_VERSION:
        return unprovable(
            name, f"frozen with readings {registration.readings_version}, this verifier has {READINGS_VERSION}"
        )
    if registration.records_version != RECORDS_VERSION:
        return unprovable(name, f"frozen with records {registration.records_version}, known are {RECORDS_VERSION}")
    if registration.readings_golden_sha256 != golden_digest():
        return unprovable(name, "this verifier's golden vectors differ from the frozen ones")
    return proven(name, f"readings {READINGS_VERSION}, golden vectors agree")


def check_cell(registration: Registration) -> Check:
    """Check 6. A name of the paper's with other constants misleads its reader."""
    name, cell = "cell", registration.cell
    known = CELLS.get(cell.name)
    if known and replace(known, constants=()) != replace(cell, constants=()):
        return unprovable(name, f"the frozen constants of {cell.name} are not those that this verifier knows")
    return proven(name, f"{cell.name}: {'as this verifier knows it' if known else 'a cell of the study'}")


def check_supersedes(registration: Registration, tags: tuple[TagEvidence, ...]) -> Check:
    """Check 7. So an earlier version cannot be passed over in silence."""
    name = "supersedes"
    earlier = [tag for tag in tags if tag.id == registration.id and tag.version < registration.version]
    before = max(earlier, key=lambda tag: tag.version, default=None)
    if before is None and registration.supersedes is None:
        return proven(name, "the first version")
    if before is None or before.registration is None:
        return unprovable(name, "the version that it supersedes is not in the study")
    if registration.supersedes != before.registration.digest:
        return refuted(name, f"it does not name {before.name}, the version before it")
    return proven(name, f"it supersedes {before.name}")
