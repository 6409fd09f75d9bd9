"""Checks a ledger's file, a proof from one, or an auditor's statement: alone, offline."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ledger.audit_statement import Audit, read_audit
from ledger.checkpoint import MAX_CHECKPOINT_BYTES, Checkpoint, parse_checkpoint
from ledger.proving import PROOF_SCHEMA, Proven, check_proof, growth
from ledger.reading import MAX_LEDGER_BYTES, Ledger, read_ledger
from registry.canonical import load_json
from registry.errors import CapExceeded, RecordError, StudyError, TrapError
from registry.ssh_signature import fingerprint, load_public
from registry.witness.checkpoint import key_of

Found = Ledger | Proven | Audit


@dataclass(frozen=True)
class Growth:
    """That a log grew from an earlier checkpoint, shown by so many hashes."""

    earlier: Checkpoint
    hashes: int


@dataclass(frozen=True)
class Checked:
    """A file that holds: what it is, the key that it rests on (None: it has
    none), whether that was compared with a given one, and what it grew from.
    """

    found: Found
    first_key: str | None
    compared: bool
    growth: Growth | None

    @property
    def signed(self) -> bool:
        """Whether someone signed all of it."""
        return self.found.signer is not None


def check_file(path: Path, key: str | None = None, since: Path | None = None) -> Checked:
    """Check a file; RecordError or CapExceeded where it does not hold, StudyError
    where it cannot be read. `key` is the public key (`ssh-ed25519 AAAA...`) that
    it must rest on, `since` an earlier ledger or checkpoint that it must have
    grown from.
    """
    wanted = key_of(key) if key else None
    if wanted:
        load_public(wanted)
    found = _read(read_capped(path), str(path))
    first = first_key(found)
    if wanted and first and first != wanted:
        raise RecordError(
            "it rests on another key than the one given",
            where=str(path),
            value=fingerprint(first),
            remedy=f"given: {fingerprint(wanted)}",
        )
    return Checked(found, first, bool(wanted and first), _growth(found, since) if since else None)


def first_key(found: Found) -> str | None:
    """The key that all others follow from; the auditor's of a statement."""
    if isinstance(found, Audit):
        return found.signer
    keys = found.log.keys if isinstance(found, Ledger) else found.keys.keys
    return keys[0].key if keys else None


def read_capped(path: Path) -> bytes:
    """A file's bytes; StudyError where there is none, CapExceeded for too many."""
    try:
        if path.stat().st_size > MAX_LEDGER_BYTES:
            raise CapExceeded("the file is too large for a ledger", where=str(path), value=path.stat().st_size)
        return path.read_bytes()
    except OSError as error:
        raise StudyError(
            f"the file cannot be read: {error.strerror}", where=str(path), remedy="name a ledger.json, or a proof"
        ) from None


def _read(data: bytes, where: str) -> Found:
    try:
        value = load_json(data, where, MAX_LEDGER_BYTES)
    except TrapError as error:
        raise RecordError(error.what, where=where) from None
    if isinstance(value, dict) and value.get("schema") == PROOF_SCHEMA:
        return check_proof(data, where)
    if isinstance(value, dict) and "payloadType" in value:
        return read_audit(data, where)
    return read_ledger(data, where)


def _growth(found: Found, since: Path) -> Growth:
    if not isinstance(found, Ledger):
        raise StudyError("only a whole ledger shows what it grew from", remedy="name a ledger.json")
    data = read_capped(since)
    if data.lstrip()[:1] == b"{":
        earlier = read_ledger(data, str(since)).checkpoint
    else:
        earlier = parse_checkpoint(data[: MAX_CHECKPOINT_BYTES + 1].decode("utf-8", "replace"), str(since))
    return Growth(earlier, len(growth(found.log, earlier, str(since))))
