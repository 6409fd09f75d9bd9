"""One HTTP exchange, read under a cap; every way it can go wrong in words."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

from registry.errors import CapExceeded, WitnessError

if TYPE_CHECKING:
    import requests

CONNECT_S = 10.0
READ_S = 20.0
_PIECE_BYTES = 65_536
_RETRIED = frozenset({429, 500, 502, 503, 504})
_LONGEST_PAUSE_S = 10


class StatusError(WitnessError):
    """An answer with a status other than 200; `status` is its number."""

    def __init__(self, status: int, what: str, *, where: str, remedy: str | None = None) -> None:
        super().__init__(what, where=where, value=status, remedy=remedy)
        self.status = status


class TryAgain(StatusError):
    """A 429 or 5xx; `pause_s` is what the server asked for, None where unsaid."""

    def __init__(self, status: int, where: str, pause_s: float | None) -> None:
        what = "the server wants fewer questions" if status == 429 else "the server has a fault"
        super().__init__(status, what, where=where, remedy="try again later")
        self.pause_s = pause_s


@dataclass(frozen=True)
class Request:
    """What to ask, and what is acceptable as an answer."""

    method: str
    url: str
    cap_bytes: int
    types: Collection[str] = ()
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def where(self) -> str:
        """The address without its query, which may hold a secret."""
        return self.url.partition("?")[0]


def exchange(request: Request, into: BinaryIO, end: float) -> None:
    """Write the body of a 200 answer to `into`; `end` is a moment of `time.monotonic`."""
    import requests
    import urllib3

    try:
        with requests.Session() as session:
            session.trust_env = False
            with _send(session, request) as response:
                _check_head(response, request)
                _read_body(response, request, into, end)
    except (requests.exceptions.SSLError, urllib3.exceptions.SSLError):
        raise WitnessError("the server's certificate does not hold", where=request.where) from None
    except (requests.Timeout, urllib3.exceptions.TimeoutError):
        raise WitnessError("the server took too long", where=request.where, remedy="try again later") from None
    except (requests.exceptions.ChunkedEncodingError, urllib3.exceptions.HTTPError):
        raise WitnessError("the answer breaks off", where=request.where, remedy="try again later") from None
    except requests.ConnectionError:
        raise WitnessError(
            "the server could not be reached", where=request.where, remedy="check the network, then try again"
        ) from None
    except (requests.RequestException, OSError, ValueError):
        raise WitnessError("the answer is not HTTP that can be read", where=request.where) from None


def _send(session: requests.Session, request: Request) -> requests.Response:
    headers = {"User-Agent": "trapkit", "Accept-Encoding": "identity", "Accept": ", ".join(request.types) or "*/*"}
    return session.request(
        request.method,
        request.url,
        data=request.body,
        headers=headers | request.headers,
        timeout=(CONNECT_S, READ_S),
        allow_redirects=False,
        stream=True,
        proxies=_proxies(request.url),
        verify=os.environ.get("REQUESTS_CA_BUNDLE") or True,
    )


def _proxies(url: str) -> dict[str, str]:
    """The environment's proxy for a URL; none on loopback, whatever `NO_PROXY` says."""
    from requests.utils import should_bypass_proxies

    parts = urlsplit(url)
    name = f"{parts.scheme.lower()}_proxy"
    proxy = os.environ.get(name) or os.environ.get(name.upper())
    host = parts.hostname or ""
    if not proxy or host.startswith("127.") or host in ("localhost", "::1") or should_bypass_proxies(url, None):
        return {}
    return {parts.scheme.lower(): proxy}


def _check_head(response: requests.Response, request: Request) -> None:
    """Refuse an answer by its status and headers alone."""
    status, where, headers = response.status_code, request.where, response.headers
    if status in _RETRIED:
        asked = headers.get("Retry-After", "")
        raise TryAgain(status, where, float(min(int(asked[:6]), _LONGEST_PAUSE_S)) if asked.isdecimal() else None)
    if 300 <= status < 400:
        target = urlsplit(headers.get("Location", "")).hostname or "elsewhere"
        raise StatusError(status, f"the server points to {target}; redirects are not followed", where=where)
    if status != 200:
        raise StatusError(status, "the server refused", where=where)
    if headers.get("Content-Encoding", "identity").lower() != "identity":
        raise WitnessError("the answer is compressed, though that was not asked for", where=where)
    kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind not in request.types if request.types else kind == "text/html":
        wanted = " or ".join(request.types) or "data"
        raise WitnessError(f"the answer is not {wanted}", where=where, value=kind or "no media type")


def _read_body(response: requests.Response, request: Request, into: BinaryIO, end: float) -> None:
    """Copy the body, refusing one that is over the cap, late or short."""
    said = response.headers.get("Content-Length", "")
    length = int(said) if said.isdecimal() and len(said) < 20 else None
    size = 0
    if length is not None and length > request.cap_bytes:
        raise CapExceeded("the answer is too large", where=request.where, value=length)
    while piece := response.raw.read1(_PIECE_BYTES, decode_content=False):
        size += len(piece)
        if size > request.cap_bytes:
            raise CapExceeded("the answer is too large", where=request.where, value=f"over {request.cap_bytes} bytes")
        if time.monotonic() > end:
            raise WitnessError("the server took too long", where=request.where, remedy="try again later")
        into.write(piece)
    if length is not None and size != length:
        raise WitnessError("the answer breaks off", where=request.where, value=f"{size} of {length} bytes")
