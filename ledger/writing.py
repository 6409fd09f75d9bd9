"""The next ledger: what was there carried over, what is new appended and signed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ledger.checkpoint import Checkpoint
from ledger.document import no_one_can_prove
from ledger.envelope import Envelope, sealed
from ledger.log import LedgerLog
from ledger.reading import Ledger, document_digest, plain_numbers
from ledger.statements import finding_statement, key_statement, leaf_order, revocation_statement
from registry.canonical import digest
from registry.errors import StudyError
from registry.ssh_signature import fingerprint, public_text

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

Body = Callable[[str | None], dict[str, Any]]
"""The document without its log, as the holder of a public key (None: no one) says it."""


@dataclass(frozen=True)
class Author:
    """Who writes a ledger: the study's name, its public key, and the private
    key that is at hand, if any.
    """

    study: str
    study_key: str
    key: Ed25519PrivateKey | None

    def signing(self, log: LedgerLog) -> Ed25519PrivateKey | None:
        """The key at hand where it is the one whose turn it is: the log's, or the
        study's where the log has none yet.
        """
        wanted = log.key or self.study_key
        return self.key if self.key is not None and public_text(self.key) == wanted else None


def origin_of(study: str) -> str:
    """What a study's log is called."""
    return f"trapkit-ledger/{study}"


def next_ledger(body: Body, previous: Ledger | None, author: Author) -> dict[str, Any]:
    """The ledger's value. Where nothing is new, the one that is there, byte for
    byte, so that whoever has no key keeps its signature.
    """
    if previous and previous.signer and _same(previous.value, body(previous.signer)):
        return previous.value
    log = carried_over(previous, author.study)
    key = author.signing(log)
    if key is not None and log.key is None:
        log.append(sealed(key_statement(log.origin, author.study_key, None), key))
    value = body(public_text(key) if key else None)
    for finding in sorted(value["registrations"], key=leaf_order):
        if not log.holds(finding):
            log.append(_sealed(finding_statement(log.origin, finding), key))
    return with_checkpoint(value, log, key)


def carried_over(previous: Ledger | None, study: str) -> LedgerLog:
    """A log that begins with every envelope of an earlier ledger."""
    if previous is None:
        return LedgerLog(origin_of(study))
    return LedgerLog(previous.log.origin, (entry.envelope for entry in previous.log.entries))


def with_checkpoint(body: dict[str, Any], log: LedgerLog, key: Ed25519PrivateKey | None) -> dict[str, Any]:
    """A document with its log and checkpoint."""
    entries = [entry.envelope.as_json() for entry in log.entries]
    value = body | {"log": {"origin": log.origin, "entries": entries, "checkpoint": ""}}
    checkpoint = Checkpoint(log.origin, len(log), log.tree.root(), document_digest(value))
    value["log"]["checkpoint"] = checkpoint.signed(key)
    found: dict[str, Any] = plain_numbers(value)
    return found


def rotated(ledger: Ledger, old: Ed25519PrivateKey, new: Ed25519PrivateKey) -> dict[str, Any]:
    """The ledger with a new key in the place of the old; both sign that."""
    log = _continued(ledger, old)
    follower = public_text(new)
    if follower in [each.key for each in log.keys]:
        raise StudyError("the key signed this ledger before", value=fingerprint(follower), remedy="make a new one")
    log.append(sealed(key_statement(log.origin, follower, log.key), old, new))
    return _again(ledger, log, new)


def revoked(ledger: Ledger, key: Ed25519PrivateKey, former: str, from_size: int) -> dict[str, Any]:
    """The ledger with a former key revoked: its signatures on entries from index
    `from_size` on count no more.
    """
    log = _continued(ledger, key)
    if former == log.key:
        raise StudyError(
            "the key that signs now cannot be revoked", value=former, remedy="first: trapkit ledger rotate KEYFILE"
        )
    if former not in [each.key for each in log.keys]:
        known = [each.key for each in log.keys[:-1]] or "none"
        raise StudyError("not a former key of this ledger", value=former, remedy=f"former keys: {known}")
    if from_size > len(log):
        raise StudyError("the log has not so many entries", value=from_size, remedy=f"at most {len(log)}")
    log.append(sealed(revocation_statement(log.origin, former, from_size), key))
    return _again(ledger, log, key)


def _continued(ledger: Ledger, key: Ed25519PrivateKey) -> LedgerLog:
    log = carried_over(ledger, str(ledger.value["study"]))
    if public_text(key) != log.key:
        raise StudyError(
            "the key at hand is not the ledger's",
            value=fingerprint(public_text(key)),
            remedy=f"TRAP_LEDGER_KEY names the file of {fingerprint(log.key)}"
            if log.key
            else "the ledger has none yet",
        )
    return log


def _again(ledger: Ledger, log: LedgerLog, key: Ed25519PrivateKey) -> dict[str, Any]:
    body = {name: part for name, part in ledger.value.items() if name != "log"}
    return with_checkpoint(body | {"no_one_can_prove": no_one_can_prove(public_text(key))}, log, key)


def _same(value: dict[str, Any], body: dict[str, Any]) -> bool:
    return digest({name: part for name, part in value.items() if name != "log"}) == digest(body)


def _sealed(statement: dict[str, Any], key: Ed25519PrivateKey | None) -> Envelope:
    return sealed(statement, key) if key is not None else sealed(statement)
