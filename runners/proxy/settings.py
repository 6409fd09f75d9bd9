"""How a gate is served: every number that an operator can choose."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from registry.design import GateSetting
from registry.errors import TrapError

RETRY_AFTER_S = 30
"""What a refused client is told to wait; clients commonly heed up to 60 s."""

REMEMBER_S = 3600.0
"""For how long a session is remembered after it lost its slot by silence."""

MOST_SESSIONS = 20_000
"""Known at a time; of more, those that lost their slots are forgotten, the first first."""

MOST_HELD_BYTES = 1_073_741_824
"""Of bodies whose requests wait."""


@dataclass(frozen=True)
class ProxySettings:
    """`release_after_s` None: the gate stays engaged. Times are seconds."""

    upstream: str
    cap: int
    host: str = "127.0.0.1"
    port: int = 8100
    engage_when_trapped: bool = False
    release_after_s: float | None = None
    poll_s: float = 10.0
    idle_end_s: float = 60.0
    keep_place_s: float = 30.0
    max_waiting: int = 1000
    max_wait_s: float = 3600.0
    drain_s: float = 60.0
    upstream_timeout_s: float = 3600.0
    max_body_bytes: int = 64 * 1_048_576
    log: Path | None = None

    def gate(self) -> GateSetting:
        """The gate at the start: engaged, or open until it is told to engage."""
        return GateSetting(self.cap, math.inf if self.engage_when_trapped else 0.0, self.release_after_s)


def checked_upstream(url: str) -> str:
    """The engine's URL without a slash at its end.

    TrapError: not HTTP, or with a user, a query or a fragment.
    """
    remedy = "the engine's address, as in http://127.0.0.1:8000"
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known or "@" in url or "?" in url or "#" in url or any(c.isspace() or not c.isprintable() for c in url):
        # The value is not shown: it may hold a password.
        raise TrapError("this is no URL of an engine", where="--upstream", remedy=remedy)
    return url.rstrip("/")
