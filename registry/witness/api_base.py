"""The base of an HTTP API, and which URLs lie below it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from registry.errors import WitnessError
from registry.plain_text import without_credentials

_PORTS = {"https": 443, "http": 80}
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_PRINTABLE = re.compile(r"[!-\[\]-~]{1,8000}")  # no backslash


@dataclass(frozen=True)
class ApiBase:
    """Scheme, host, port and path prefix (no slash at its end)."""

    scheme: str
    host: str
    port: int
    prefix: str

    @property
    def loopback(self) -> bool:
        """Whether the API is on this machine."""
        return self.host in _LOOPBACK

    @property
    def origin(self) -> str:
        """`https://host`, with the port where it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    def url(self, path: str) -> str:
        """The whole URL of a path below the base."""
        return self.origin + self.prefix + path

    def relative(self, url: str) -> str | None:
        """The path and query below the base, `/...`; None for a URL that leaves it.

        Scheme, host and port must be the base's own; dots that climb, user
        names, backslashes and fragments are refused.
        """
        parts = _split(url)
        if parts is None or (parts.scheme, parts.hostname, _port(parts)) != (self.scheme, self.host, self.port):
            return None
        climbs = any(unquote(part) in (".", "..") for part in parts.path.split("/"))
        if climbs or not parts.path.startswith(f"{self.prefix}/"):
            return None
        return parts.path[len(self.prefix) :] + (f"?{parts.query}" if parts.query else "")


def parse_api_base(text: str) -> ApiBase:
    """`https://host[:port][/prefix]`; plain http only for this machine.

    Raises WitnessError for anything else.
    """
    parts = _split(text)
    port = _port(parts) if parts else None
    if parts is None or port is None or not parts.hostname or parts.query:
        raise WitnessError(
            "the base of the API is not an https URL", value=without_credentials(text), remedy="https://api.github.com"
        )
    base = ApiBase(parts.scheme, parts.hostname, port, parts.path.rstrip("/"))
    if base.scheme != "https" and not base.loopback:
        raise WitnessError("the base of the API is not https", value=text, remedy="plain http stays on this machine")
    return base


def _split(url: str) -> SplitResult | None:
    """The parts of a printable http(s) URL without user or fragment."""
    try:
        parts = urlsplit(url) if _PRINTABLE.fullmatch(url) else None
    except ValueError:
        return None
    if parts is None or parts.scheme not in _PORTS or "@" in parts.netloc or "#" in url:
        return None
    return parts


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port or _PORTS[parts.scheme]
    except ValueError:
        return None
