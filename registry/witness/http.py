"""Bounded HTTP with the servers that the auditor's policy names.

https only (http on loopback, and for answers that carry a signature of their
own), no redirects, no compression, no cookies, no `.netrc`; every answer has a
cap and every call a deadline. Of the environment, `HTTPS_PROXY`, `HTTP_PROXY`,
`NO_PROXY` and `REQUESTS_CA_BUNDLE` count: they are the auditor's own.
"""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Callable, Collection
from typing import BinaryIO

from registry.errors import WitnessError
from registry.witness.http_exchange import Request, StatusError, TryAgain, exchange

__all__ = ["StatusError", "download", "get", "host_of", "post"]

DEADLINE_S = 60.0
ATTEMPTS = 3
CAP_BYTES = 1_048_576
_URL = re.compile(r"(https?)://([a-z0-9.-]+|\[[0-9a-f:]+\])(?::([0-9]{1,5}))?(/[!-\[\]-~]*)?", re.IGNORECASE)
_LOOPBACK = re.compile(r"127(\.[0-9]{1,3}){3}|\[::1\]|localhost")
_DEFAULT_PORTS = {"http": "80", "https": "443"}

Sleep = Callable[[float], object]


def host_of(url: str, *, plain_http: bool = False) -> str:
    """`host` or `host:port` of an acceptable URL, lower-case, default port left out.

    Raises WitnessError for anything but https, or http on loopback; also for
    a user name, a space or a backslash in the URL. `plain_http` takes http
    everywhere: for answers that carry a signature of their own.
    """
    match = _URL.fullmatch(url)
    scheme, host, port, _ = (part and part.lower() for part in match.groups()) if match else ("", "", "", "")
    if not match or (scheme == "http" and not plain_http and not _LOOPBACK.fullmatch(host)):
        raise WitnessError(
            "not an address that may be asked",
            where=re.sub(r"//[^/]*@", "//", url.partition("?")[0]),
            remedy="use https (or http on this machine's loopback), without user name or password",
        )
    return host if port in (None, _DEFAULT_PORTS[scheme]) else f"{host}:{port}"


def get(
    url: str,
    *,
    hosts: Collection[str],
    cap_bytes: int = CAP_BYTES,
    types: Collection[str] = (),
    deadline_s: float = DEADLINE_S,
    sleep: Sleep = time.sleep,
    token: str | None = None,
) -> bytes:
    """The body of a 200 answer.

    `hosts` are in the form of `host_of`; `types` are the media types that are
    acceptable (none named: any but HTML); `deadline_s` bounds the whole call.
    `token` is sent as a bearer token, and stands in no error.
    A 429 or 5xx is tried again, twice. Raises WitnessError (StatusError where
    the status is not 200) and CapExceeded.
    """
    into = io.BytesIO()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    _fetch(Request("GET", url, cap_bytes, types, headers=headers), into, hosts, deadline_s, sleep)
    return into.getvalue()


def post(
    url: str,
    body: bytes,
    *,
    hosts: Collection[str],
    content_type: str,
    cap_bytes: int = CAP_BYTES,
    types: Collection[str] = (),
    deadline_s: float = DEADLINE_S,
    plain_http: bool = False,
    sleep: Sleep = time.sleep,
) -> bytes:
    """As `get`, sending `body`, which may be sent again after a 429 or 5xx; `plain_http` as for `host_of`."""
    into = io.BytesIO()
    request = Request("POST", url, cap_bytes, types, body, {"Content-Type": content_type})
    _fetch(request, into, hosts, deadline_s, sleep, plain_http)
    return into.getvalue()


def download(
    url: str,
    into: BinaryIO,
    *,
    hosts: Collection[str],
    cap_bytes: int,
    deadline_s: float,
    sleep: Sleep = time.sleep,
) -> None:
    """As `get`, written to a file opened for writing."""
    _fetch(Request("GET", url, cap_bytes), into, hosts, deadline_s, sleep)


def _fetch(
    request: Request,
    into: BinaryIO,
    hosts: Collection[str],
    deadline_s: float,
    sleep: Sleep,
    plain_http: bool = False,
) -> None:
    if host_of(request.url, plain_http=plain_http) not in hosts:
        raise WitnessError(
            "this host is not one that the policy names", where=request.where, remedy="name it in your own policy file"
        )
    end = time.monotonic() + deadline_s
    for attempt in range(1, ATTEMPTS + 1):
        into.seek(0)
        into.truncate()
        try:
            _within(end, request, into)
        except TryAgain as error:
            if attempt == ATTEMPTS:
                raise
            pause_s = 2.0 ** (attempt - 1) if error.pause_s is None else error.pause_s
            sleep(min(pause_s, max(0.0, end - time.monotonic())))
        else:
            return


def _within(end: float, request: Request, into: BinaryIO) -> None:
    """One exchange, given up at `end` even where a header drips in byte by byte."""
    outcome: list[BaseException | None] = []

    def run() -> None:
        try:
            exchange(request, into, end)
            outcome.append(None)
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(max(0.0, end - time.monotonic()))
    if not outcome:
        raise WitnessError("the server took too long", where=request.where, remedy="try again later")
    if outcome[0] is not None:
        raise outcome[0]
