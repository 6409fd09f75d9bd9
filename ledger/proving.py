"""Proofs about a ledger's log: that it grew from an earlier one, and that a
finding stands in it. Each is made and checked here, with the ledger away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ledger.checkpoint import Checkpoint, parse_checkpoint
from ledger.envelope import envelope_of
from ledger.log import LedgerLog
from ledger.merkle import HASH_BYTES, consistent, included, leaf_hash
from ledger.reading import Ledger, ledger_bytes
from ledger.statements import FINDING
from registry.canonical import load_json
from registry.errors import CapExceeded, RecordError, StudyError, TrapError
from registry.ssh_signature import fingerprint

PROOF_SCHEMA = "trap-ledger-proof-1"
MAX_PROOF_BYTES = 134_217_728
MAX_PATH = 64
MAX_KEY_ENTRIES = 1000


@dataclass(frozen=True)
class Proven:
    """A finding that a proof shows to stand in a log: its entry's index, the
    checkpoint, who signed that (None: nobody), and the keys' entries alone.
    """

    finding: dict[str, Any]
    index: int
    checkpoint: Checkpoint
    signer: str | None
    keys: LedgerLog
    counts: bool


def growth(log: LedgerLog, earlier: Checkpoint, where: str) -> list[bytes]:
    """The proof that a log begins with the entries of an earlier checkpoint, made
    and checked; RecordError where it does not. `where` names the earlier one.
    """
    if earlier.origin != log.origin:
        raise RecordError("the earlier checkpoint is of another log", where=where, value=earlier.origin)
    if earlier.size > len(log):
        raise RecordError("the log has lost entries", where=where, value=f"{earlier.size} before, {len(log)} now")
    path, root = log.tree.consistency(earlier.size), log.tree.root()
    if not consistent(earlier.size, earlier.root, len(log), root, path):
        raise RecordError(f"the log does not begin with the {earlier.size} entries that it had", where=where)
    if earlier.signature and not earlier.signed_by(log.key_at(earlier.size)):
        raise RecordError("the earlier checkpoint's signature does not hold", where=where)
    return path


def inclusion_proof(ledger: Ledger, tag: str) -> dict[str, Any]:
    """The last finding about a tag, and all that shows that it stands in the log:
    a JSON value that `check_proof` accepts alone.
    """
    index = ledger.log.latest(tag)
    if index is None:
        known = ", ".join(ledger.log.tags()) or "none"
        raise StudyError("the ledger has no finding about this tag", value=tag, remedy=f"it has: {known}")
    keys = [number for number, entry in enumerate(ledger.log.entries) if entry.kind != FINDING]
    return {
        "schema": PROOF_SCHEMA,
        "checkpoint": ledger.value["log"]["checkpoint"],
        "finding": _placed(ledger.log, index),
        "keys": [_placed(ledger.log, number) for number in keys],
    }


def _placed(log: LedgerLog, index: int) -> dict[str, Any]:
    path = [part.hex() for part in log.tree.inclusion(index)]
    return {"index": index, "envelope": log.entries[index].envelope.as_json(), "path": path}


def check_proof(data: bytes, where: str) -> Proven:
    """Check a proof alone; RecordError or CapExceeded where it does not hold.

    It brings the statements about keys. That none is left out, a revocation
    say, only the whole ledger shows.
    """
    try:
        value = load_json(data, where, MAX_PROOF_BYTES)
        if ledger_bytes(value) != data or set(value) != {"schema", "checkpoint", "finding", "keys"}:
            raise RecordError("not in the one form in which proofs are written", where=where)
        if value["schema"] != PROOF_SCHEMA:
            raise RecordError("a proof of another schema", where=where, value=str(value["schema"])[:100])
        checkpoint = parse_checkpoint(value["checkpoint"], where)
        if len(value["keys"]) > MAX_KEY_ENTRIES:
            raise CapExceeded("a proof with too many keys", where=where, value=len(value["keys"]))
        placed = sorted([value["finding"], *value["keys"]], key=lambda entry: int(entry["index"]))
        log = LedgerLog(checkpoint.origin)
        for entry in placed:
            _admit(log, entry, checkpoint, where)
        index = int(value["finding"]["index"])
        (finding,) = [entry for entry in log.entries if entry.kind == FINDING]
    except (RecordError, CapExceeded):
        raise
    except (TrapError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise RecordError("not a proof of a ledger's finding", where=where, value=str(error)[:100]) from None
    if checkpoint.signature and not checkpoint.signed_by(log.key):
        key = fingerprint(log.key) if log.key else "none"
        raise RecordError("the checkpoint's signature does not hold", where=where, remedy=f"signed by {key}")
    counts = finding.signer is not None and index < log.revoked.get(finding.signer, index + 1)
    signer = log.key if checkpoint.signature else None
    return Proven(finding.predicate["finding"], index, checkpoint, signer, log, counts)


def _admit(log: LedgerLog, entry: dict[str, Any], checkpoint: Checkpoint, where: str) -> None:
    """Admit an entry whose place in the log its path shows."""
    if set(entry) != {"index", "envelope", "path"} or type(entry["index"]) is not int:
        raise RecordError("an entry of a proof with other fields", where=where)
    if len(entry["path"]) > MAX_PATH or any(len(part) != 2 * HASH_BYTES for part in entry["path"]):
        raise RecordError("a path that no log has", where=where)
    path = [bytes.fromhex(part) for part in entry["path"]]
    if [part.hex() for part in path] != entry["path"]:
        raise RecordError("a path that is not lower-case hex", where=where)
    envelope = envelope_of(entry["envelope"], f"{where}, entry {entry['index']}")
    if not included(leaf_hash(envelope.to_bytes()), entry["index"], checkpoint.size, path, checkpoint.root):
        raise RecordError("the path does not lead from the entry to the root", where=where, value=entry["index"])
    log.append(envelope, entry["index"])
