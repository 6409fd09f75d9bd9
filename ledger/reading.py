"""Reading a ledger file alone, offline, as if an enemy had written it.

A ledger is the bytes of `ledger_bytes`, and no others: so every bit of it is
covered by the checkpoint, or is the checkpoint.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from ledger.checkpoint import Checkpoint, parse_checkpoint
from ledger.document import SCHEMA, no_one_can_prove
from ledger.envelope import envelope_of
from ledger.log import MAX_ENTRIES, LedgerLog
from registry.canonical import canonical_bytes, digest, load_json
from registry.errors import CapExceeded, RecordError, TrapError
from registry.ssh_signature import fingerprint
from verifier.report import dumps

MAX_LEDGER_BYTES = 268_435_456


@dataclass(frozen=True)
class Ledger:
    """A ledger that holds together: its whole value, its log, its checkpoint,
    and the public key that signed the checkpoint (None: it is unsigned).
    """

    value: dict[str, Any]
    log: LedgerLog
    checkpoint: Checkpoint
    signer: str | None


def ledger_bytes(value: dict[str, Any]) -> bytes:
    """The one form of a ledger's file."""
    return (dumps(value) + "\n").encode()


def plain_numbers(value: Any) -> Any:
    """A JSON value with each number as RFC 8785 has it: 10, not 10.0, and 0, not
    -0.0. Numbers that are equal have one spelling then.
    """
    return load_json(canonical_bytes(value), "a ledger", MAX_LEDGER_BYTES)


def document_digest(value: dict[str, Any]) -> str:
    """SHA-256 of what a checkpoint covers: all but the checkpoint itself."""
    log = {name: part for name, part in value["log"].items() if name != "checkpoint"}
    return digest(value | {"log": log})


def read_ledger(data: bytes, where: str) -> Ledger:
    """A ledger, wholly checked against itself; RecordError or CapExceeded for
    one that does not hold, with the first reason found.
    """
    value = _strict(data, where)
    try:
        origin, entries = value["log"]["origin"], value["log"]["entries"]
        checkpoint = parse_checkpoint(value["log"]["checkpoint"], where)
        covered = document_digest(value)
    except (KeyError, TypeError, AttributeError) as error:
        raise RecordError("not a ledger with a log", where=where, value=str(error)[:100]) from None
    if covered != checkpoint.document:
        raise RecordError("the document is not the one that the checkpoint names", where=where, value=covered)
    _check_schema(value, where)
    if len(entries) > MAX_ENTRIES:
        raise CapExceeded("the log has too many entries", where=where, value=len(entries))
    log = LedgerLog(origin, (envelope_of(entry, f"{where}, entry {n}") for n, entry in enumerate(entries)))
    ledger = Ledger(value, log, checkpoint, log.key if checkpoint.signature else None)
    _check_checkpoint(ledger, where)
    _check_document(ledger, where)
    return ledger


def _strict(data: bytes, where: str) -> dict[str, Any]:
    try:
        value = load_json(data, where, MAX_LEDGER_BYTES)
        one_form = ledger_bytes(plain_numbers(value))
    except CapExceeded:
        raise
    except TrapError as error:
        raise RecordError(error.what, where=where) from None
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise RecordError(f"not a ledger of the schema {SCHEMA}", where=where)
    if one_form != data:
        raise RecordError("not in the one form in which ledgers are written", where=where)
    return value


def _check_checkpoint(ledger: Ledger, where: str) -> None:
    log, checkpoint = ledger.log, ledger.checkpoint
    if checkpoint.origin != log.origin:
        raise RecordError("the checkpoint is of another log", where=where, value=checkpoint.origin)
    if checkpoint.size != len(log):
        raise RecordError(f"the checkpoint is of {checkpoint.size} entries, the log has {len(log)}", where=where)
    if checkpoint.root != log.tree.root():
        raise RecordError("the log's root is not the checkpoint's", where=where)
    if checkpoint.signature and not checkpoint.signed_by(log.key):
        key = fingerprint(log.key) if log.key else "none"
        raise RecordError(
            "the checkpoint's signature does not hold", where=where, remedy=f"signed by the log's key: {key}"
        )


def _check_document(ledger: Ledger, where: str) -> None:
    """The document beside the log says what the log says last."""
    tags = [entry["tag"] for entry in ledger.value["registrations"]]
    if len(set(tags)) != len(tags):
        raise RecordError("a tag stands twice in the document", where=where)
    for entry in ledger.value["registrations"]:
        if not ledger.log.holds(entry):
            raise RecordError("the log's last word on a tag is not the document's", where=where, value=entry["tag"])
    if ledger.value["no_one_can_prove"] != no_one_can_prove(ledger.signer):
        raise RecordError("the document names another signer, or leaves out what no one can prove", where=where)


def _check_schema(value: dict[str, Any], where: str) -> None:
    finding = next(iter(_validator().iter_errors(value)), None)
    if finding is not None:
        place = "/".join(str(part) for part in finding.absolute_path) or "the whole"
        raise RecordError(f"not a ledger by its schema: {finding.message[:200]}", where=f"{where}, {place[:200]}")


@lru_cache
def _validator() -> Any:
    import jsonschema

    path = resources.files("ledger") / "schema" / "ledger.schema.json"
    return jsonschema.Draft202012Validator(json.loads(path.read_text("utf-8")))
