"""One HTTP exchange of PyGithub's with everything bounded: time, size, hops.

PyGithub reads whole bodies, waits and asks again without end for a 202, drops
the query and the port of a redirect, and retries by a clock of its own. So it
is given this connection: what it gets back is whole, small, and final.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, ItemsView
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urljoin

from registry.witness.api_base import ApiBase

_MAX_HOPS = 5
_CHUNK_BYTES = 65_536
_T = TypeVar("_T")


class Unanswered(Exception):
    """No usable answer: words for people, and whether asking again may help."""

    def __init__(self, words: str, *, again: bool = False) -> None:
        super().__init__(words)
        self.words = words
        self.again = again


@dataclass(frozen=True)
class Reply:
    """A whole answer: status, headers with names in lower case, body as text."""

    status: int
    headers: dict[str, str] = field(repr=False)
    body: str = field(repr=False)

    def getheaders(self) -> ItemsView[str, str]:
        """Nothing, for PyGithub: it would parse numbers in hostile headers."""
        empty: dict[str, str] = {}
        return empty.items()

    def read(self) -> str:
        """The body, for PyGithub."""
        return self.body


class CappedConnection:
    """A connection for PyGithub's `requestJson(cnx=...)`, to one API base only.

    `timeouts_s` are for connecting and for each read, `answer_s` for the whole
    exchange. `secret` is a token that no answer may repeat. `last` is the last
    reply.
    """

    def __init__(
        self, base: ApiBase, *, timeouts_s: tuple[float, float], body_bytes: int, answer_s: float, secret: str | None
    ) -> None:
        import requests

        self._base = base
        self._timeouts_s = timeouts_s
        self._body_bytes = body_bytes
        self._answer_s = answer_s
        self._secret = secret
        self._session = requests.Session()
        self._session.auth = lambda request: request  # else requests reads ~/.netrc
        self._session.trust_env = not base.loopback
        self.last: Reply | None = None

    def request(self, verb: str, url: str, data: str | None, headers: dict[str, str], stream: bool = False) -> None:
        """What to ask; PyGithub calls it before `getresponse`."""
        self._asked = (verb, url, data, headers)

    def getresponse(self) -> Reply:
        """The final reply; Unanswered where there is none within the bounds."""
        import requests
        import urllib3

        verb, path, data, headers = self._asked
        deadline_s = time.monotonic() + self._answer_s
        try:
            for _ in range(_MAX_HOPS):
                reply = self._exchange(verb, path, data, headers, deadline_s)
                target = self._target(verb, path, reply)
                if target is None:
                    self.last = reply
                    return reply
                path = target
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise _unanswered(error) from None
        raise Unanswered("it redirects in circles")

    def _exchange(self, verb: str, path: str, data: str | None, headers: dict[str, str], deadline_s: float) -> Reply:
        answer = self._session.request(
            verb,
            self._base.origin + path,
            data=data,
            headers={**headers, "Accept-Encoding": "gzip"},
            timeout=self._timeouts_s,
            allow_redirects=False,
            stream=True,
        )
        with answer:
            found = {name.lower(): value for name, value in answer.headers.items()}
            body = self._text(answer, found, deadline_s)
        reply = Reply(answer.status_code, found, body)
        if self._secret and any(self._secret in text for text in (body, *found.values())):
            raise Unanswered("the answer repeats the token, so it is not kept")
        return reply

    def _text(self, answer: Any, headers: dict[str, str], deadline_s: float) -> str:
        if headers.get("content-encoding", "identity").lower() not in ("identity", "gzip"):
            raise Unanswered("the answer is encoded in a way that was not asked for")
        parts = []
        left = self._body_bytes
        for part in answer.iter_content(_CHUNK_BYTES):
            left -= len(part)
            if left < 0:
                raise Unanswered(f"the answer is larger than {self._body_bytes} bytes")
            if time.monotonic() > deadline_s:
                raise Unanswered(_slow(self._answer_s))
            parts.append(part)
        try:
            return b"".join(parts).decode("utf-8")
        except UnicodeDecodeError:
            raise Unanswered("the answer is not UTF-8") from None

    def _target(self, verb: str, path: str, reply: Reply) -> str | None:
        """Where a redirect leads, as a path on the host; None for a final reply."""
        if reply.status == 202:
            raise Unanswered("the answer is not ready", again=True)
        if not 300 <= reply.status < 400:
            return None
        if reply.status not in (307, 308) and (verb != "GET" or reply.status not in (301, 302)):
            raise Unanswered(f"it redirects with status {reply.status}")
        location = reply.headers.get("location", "")
        relative = self._base.relative(urljoin(self._base.origin + path, location)) if location else None
        if relative is None:
            raise Unanswered("it redirects away from the API that was asked")
        return self._base.prefix + relative


def within(limit_s: float, work: Callable[[], _T]) -> _T:
    """What `work` returns; Unanswered once `limit_s` seconds have passed.

    Socket timeouts start anew with every byte, so they bound no exchange.
    """
    done: list[_T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(limit_s)
    if failed:
        raise failed[0]
    if not done:
        raise Unanswered(_slow(limit_s))
    return done[0]


def _slow(limit_s: float) -> str:
    return f"the answer was not complete after {limit_s:g} seconds"


def _unanswered(error: Exception) -> Unanswered:
    import requests
    import urllib3

    if isinstance(error, requests.exceptions.SSLError):
        return Unanswered("its certificate does not hold")
    if isinstance(error, requests.Timeout):
        return Unanswered("it does not answer in time", again=True)
    broken = (requests.exceptions.ChunkedEncodingError, requests.exceptions.ContentDecodingError)
    if isinstance(error, (*broken, urllib3.exceptions.ProtocolError)):
        return Unanswered("the answer is cut short or garbled", again=True)
    if isinstance(error, requests.ConnectionError):
        return Unanswered("it cannot be reached", again=True)
    return Unanswered("the answer is not HTTP that can be read")
