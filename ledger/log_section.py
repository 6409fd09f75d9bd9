"""What readers are told of the log."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ledger.checkpoint import parse_checkpoint
from ledger.envelope import envelope_of
from ledger.statements import KEY
from registry.plain_text import code, plain
from registry.ssh_signature import fingerprint


@dataclass(frozen=True)
class LogWords:
    """A log in words: entries, its origin, root (base64), and the key that signed
    the checkpoint, with its fingerprint; both are None where nobody did.
    """

    size: int
    origin: str
    root: str
    key: str | None
    fingerprint: str | None


def log_words(log: dict[str, Any]) -> LogWords:
    """What a reader is told of a ledger's log."""
    checkpoint = parse_checkpoint(log["checkpoint"], "the ledger")
    key = _last_key(log["entries"]) if checkpoint.signature else None
    root = base64.b64encode(checkpoint.root).decode()
    return LogWords(checkpoint.size, plain(log["origin"]), root, key, fingerprint(key) if key else None)


def log_section(log: dict[str, Any]) -> Iterator[str]:
    """The lines of LEDGER.md about a ledger's log, and how to check it."""
    words = log_words(log)
    yield from ("", "## The log", "")
    yield f"- {words.size} entries in {code(words.origin)}, root {code(words.root)}."
    if words.key:
        yield f"- Signed by {code(words.key)}, {code(words.fingerprint)}."
    else:
        yield "- **Unsigned**: whoever changes it can also make its digests fit."
    yield "- Check it alone, offline: `trapkit ledger verify evidence/ledger.json`."


def _last_key(entries: list[dict[str, Any]]) -> str:
    """The key that signs: the last key statement names it."""
    statements = (envelope_of(entry, "the ledger").statement() for entry in reversed(entries))
    return next(str(each["predicate"]["key"]) for each in statements if each["predicateType"] == KEY)
