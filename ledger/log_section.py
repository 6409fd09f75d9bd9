"""What LEDGER.md says of the log."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from ledger.checkpoint import parse_checkpoint
from ledger.envelope import envelope_of
from ledger.statements import KEY
from registry.plain_text import code
from registry.ssh_signature import fingerprint


def log_section(log: dict[str, Any]) -> Iterator[str]:
    """Size, root and key of a ledger's log, and how to check it."""
    checkpoint = parse_checkpoint(log["checkpoint"], "the ledger")
    yield from ("", "## The log", "")
    root = base64.b64encode(checkpoint.root).decode()
    yield f"- {checkpoint.size} entries in {code(log['origin'])}, root {code(root)}."
    if checkpoint.signature:
        key = _last_key(log["entries"])
        yield f"- Signed by {code(key)}, {code(fingerprint(key))}."
    else:
        yield "- **Unsigned**: whoever changes it can also make its digests fit."
    yield "- Check it alone, offline: `trapkit ledger verify evidence/ledger.json`."


def _last_key(entries: list[dict[str, Any]]) -> str:
    """The key that signs: the last key statement names it."""
    statements = (envelope_of(entry, "the ledger").statement() for entry in reversed(entries))
    return next(str(each["predicate"]["key"]) for each in statements if each["predicateType"] == KEY)
