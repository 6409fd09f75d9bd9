"""Reading a witness server from afar: its log, its checkpoint, its promises."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable

from registry.errors import WitnessError
from registry.witness.checkpoint import MAX_CHECKPOINT_BYTES, key_of
from registry.witness.log import MAX_LOG_BYTES
from registry.witness.rows import PushRow

_KEY = re.compile(r"ssh-ed25519 [A-Za-z0-9+/=]{40,200}")
_NEVER = {
    "branch_deletion": "was deleted",
    "tag_deletion": "was deleted",
    "tag_update": "was moved",
    "force_push": "was rewritten",
}

Get = Callable[[str, int], bytes]
"""Fetches a URL: its body, of so many bytes at most."""


def fetch_log(url: str, repository: str, *, get: Get | None = None, token: str | None = None) -> tuple[bytes, bytes]:
    """The log and the checkpoint of `owner/name`, unverified.

    `url` is the server's base. The checkpoint is asked first, so a log that
    grows meanwhile is longer, never shorter. `token` is for private servers,
    and goes to that URL only. `get` takes the place of HTTP. WitnessError or
    CapExceeded where the server gives no usable answer.
    """

    def over_http(address: str, cap_bytes: int) -> bytes:
        from registry.witness import http

        return http.get(address, hosts={http.host_of(url)}, cap_bytes=cap_bytes, token=token)

    fetch = get or over_http
    base = f"{url.rstrip('/')}/witness/{repository}"
    checkpoint = fetch(f"{base}/checkpoint", MAX_CHECKPOINT_BYTES)
    return fetch(f"{base}/log", MAX_LOG_BYTES), checkpoint


def fetch_key(url: str) -> str:
    """The public key that a server says is its own, `ssh-ed25519 AAAA...`."""
    from registry.witness import http

    text = http.get(f"{url.rstrip('/')}/witness/key", hosts={http.host_of(url)}, cap_bytes=1000)
    key = key_of(text.decode("ascii", "replace"))
    if not _KEY.fullmatch(key):
        raise WitnessError("the server tells no key", where=url, remedy="is it a witness server? trapkit witness serve")
    return key


def token_from_environment() -> str | None:
    """The token for a private witness server, from TRAP_WITNESS_TOKEN."""
    return os.environ.get("TRAP_WITNESS_TOKEN") or None


def broken_promises(rows: Iterable[PushRow]) -> list[str]:
    """What a log shows that a witness server never lets happen, in words.

    Every row goes on from the one before of its ref; nothing is deleted, moved
    or rewritten. Empty where all promises are kept.
    """
    found = []
    last: dict[str, str] = {}
    for row in rows:
        if row.activity_type in _NEVER:
            found.append(f"row {row.id}: {row.ref} {_NEVER[row.activity_type]}")
        elif row.before != last.get(row.ref, "0" * len(row.before)):
            found.append(f"row {row.id}: {row.ref} does not go on from its row before")
        last[row.ref] = row.after
    return found
