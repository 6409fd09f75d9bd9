"""The log of a ledger: sealed statements in a Merkle tree, and whose key counts.

One key signs at a time. The first key statement names it and is signed by it;
the next one is signed by the old and the new key, and the new one takes over. A
revocation is signed by the key of its place, and names a former one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ledger.envelope import Envelope
from ledger.merkle import MerkleTree
from ledger.statements import FINDING, KEY, REVOCATION, finding_statement, key_statement, revocation_statement
from registry.canonical import canonical_bytes, digest
from registry.errors import CapExceeded, RecordError
from registry.ssh_signature import SignatureRejected, fingerprint

MAX_ENTRIES = 1_000_000


@dataclass(frozen=True)
class Succession:
    """A public key (`ssh-ed25519 AAAA...`) that signs from entry `index` on."""

    key: str
    index: int


@dataclass(frozen=True)
class Logged:
    """An entry that was admitted: its kind, its predicate, and who signed it
    (None: nobody).
    """

    envelope: Envelope
    kind: str
    predicate: dict[str, Any]
    signer: str | None


class LedgerLog:
    """A log that only grows; every entry is checked when it is appended.

    `tree` is its Merkle tree, `keys` who signed from where on, `revoked` from
    which index on a former key's signatures count no more.
    """

    def __init__(self, origin: str, envelopes: Iterable[Envelope] = ()) -> None:
        self.origin = origin
        self.entries: list[Logged] = []
        self.tree = MerkleTree()
        self.keys: list[Succession] = []
        self.revoked: dict[str, int] = {}
        self._latest: dict[str, int] = {}
        for envelope in envelopes:
            self.append(envelope)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def key(self) -> str | None:
        """The key that signs now."""
        return self.keys[-1].key if self.keys else None

    def key_at(self, size: int) -> str | None:
        """The key that signed when the log had `size` entries."""
        return next((each.key for each in reversed(self.keys) if each.index < size), None)

    def latest(self, tag: str) -> int | None:
        """The index of the last finding about a tag."""
        return self._latest.get(tag)

    def tags(self) -> list[str]:
        """Every tag that a finding is about, in the log's order."""
        return list(self._latest)

    def holds(self, finding: dict[str, Any]) -> bool:
        """Whether the last finding about its tag is this very one."""
        index = self.latest(finding["tag"])
        return index is not None and digest(self.entries[index].predicate["finding"]) == digest(finding)

    def counts(self, index: int) -> bool:
        """Whether an entry is signed by a key that was not revoked for it."""
        signer = self.entries[index].signer
        return signer is not None and index < self.revoked.get(signer, len(self) + 1)

    def append(self, envelope: Envelope, index: int | None = None) -> None:
        """Admit an entry; RecordError for one that may not stand here. `index` is
        its place in the whole log where only some entries are at hand.
        """
        index = len(self) if index is None else index
        where = f"entry {index} of the log"
        if index >= MAX_ENTRIES:
            raise CapExceeded("the log has too many entries", value=index)
        value = envelope.statement()
        kind, predicate = str(value.get("predicateType")), value.get("predicate")
        if not isinstance(predicate, dict):
            raise RecordError("a malformed statement", where=where)
        try:
            wanted, signers = self._expected(kind, predicate, index, where)
            if canonical_bytes(wanted) != envelope.payload:
                raise RecordError("a statement that does not fit what it states", where=where)
        except (KeyError, TypeError, AttributeError, ValueError, SignatureRejected) as error:
            raise RecordError("a malformed statement", where=where, value=str(error)[:100]) from None
        unsigned = kind == FINDING and not envelope.signatures
        if not unsigned and not envelope.signed_by(signers):
            raise RecordError(
                "an entry whose signatures do not hold",
                where=where,
                value=[keyid for keyid, _ in envelope.signatures],
                remedy=f"signed by {' and '.join(map(fingerprint, signers)) or 'nobody: the log has no key yet'}",
            )
        self._admit(index, kind, predicate)
        self.entries.append(Logged(envelope, kind, predicate, None if unsigned else signers[-1]))
        self.tree.append(envelope.to_bytes())

    def _expected(
        self, kind: str, predicate: dict[str, Any], index: int, where: str
    ) -> tuple[dict[str, Any], list[str]]:
        """The statement that must stand here, and who must have signed it."""
        signing = [self.key] if self.key else []
        former = [each.key for each in self.keys]
        if kind == FINDING:
            if self.holds(predicate["finding"]):
                raise RecordError("a finding that stands in the log already", where=where)
            return finding_statement(self.origin, predicate["finding"]), signing
        if kind == KEY:
            if predicate["key"] in former:
                raise RecordError("a key that signed before", where=where, value=predicate["key"])
            return key_statement(self.origin, predicate["key"], self.key), [*signing, predicate["key"]]
        if kind == REVOCATION:
            if predicate["key"] not in former[:-1]:
                raise RecordError("only a former key can be revoked", where=where, value=predicate["key"])
            if type(predicate["from_size"]) is not int or not 0 <= predicate["from_size"] <= index:
                raise RecordError("a revocation from no size of this log", where=where, value=predicate["from_size"])
            return revocation_statement(self.origin, predicate["key"], predicate["from_size"]), signing
        raise RecordError("a statement of another kind", where=where, value=kind[:100])

    def _admit(self, index: int, kind: str, predicate: dict[str, Any]) -> None:
        if kind == FINDING:
            self._latest[predicate["finding"]["tag"]] = index
        elif kind == KEY:
            self.keys.append(Succession(predicate["key"], index))
        else:
            key, size = predicate["key"], predicate["from_size"]
            self.revoked[key] = min(size, self.revoked.get(key, size))
