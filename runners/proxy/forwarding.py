"""One request to the engine, one answer to the client, byte for byte.

Nothing is decompressed, buffered or written anew. Headers that concern one
connection only are left out in both directions (RFC 9110, 7.6.1).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import aiohttp
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from runners.proxy.refusals import BROKEN, SLOW, UNREACHABLE, Refusal
from runners.proxy.replies import ReplyReader

_CONNECT_S = 10.0
_KEEP_S = 3.0  # Shorter than the 5 s after which uvicorn closes: else a request may meet the closing.
_SHORT_BYTES = 65_536
_METRICS_S = 5.0
_MOST_METRICS_BYTES = 8 * 1_048_576
_ONE_CONNECTION = (
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
)
_OUR_OWN = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")

ReaderFor = Callable[[Mapping[str, str]], ReplyReader | None]


@dataclass(frozen=True)
class Passed:
    """How it went. `whole`: the engine's answer reached the client in full;
    `refusal`: there was none, or it broke off; `left`: the client did.
    """

    response: web.StreamResponse
    reader: ReplyReader | None = None
    whole: bool = False
    refusal: Refusal | None = None
    left: bool = False


class Upstream:
    """Connections to the engine at `url`, open within `async with`."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._url = url
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=timeout_s)

    async def __aenter__(self) -> Self:
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=self._timeout,
            auto_decompress=False,
            skip_auto_headers=_OUR_OWN,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def forward(self, request: web.Request, body: bytes | None, reader_for: ReaderFor) -> Passed:
        """Ask the engine and pass its answer on; None as body: as it arrives.

        `reader_for` gets the answer's headers. A client that leaves cancels
        the call, and with it the engine's work.
        """
        headers = _end_to_end(request.headers, "host", "expect", *(() if body is None else ("content-length",)))
        data = body if body is not None else request.content if request.body_exists else None
        path = request.raw_path if request.raw_path.startswith("/") else request.rel_url.raw_path_qs
        try:
            answer = await self._client.request(
                request.method, URL(self._url + path, encoded=True), headers=headers, data=data, allow_redirects=False
            )
        except TimeoutError:
            return _failed(SLOW)
        except aiohttp.ClientConnectorError:
            return _failed(UNREACHABLE)
        except aiohttp.ClientError:
            return _failed(BROKEN)
        async with answer:
            reader = reader_for(answer.headers) if answer.status == web.HTTPOk.status_code else None
            short = 0 < (answer.content_length or 0) <= _SHORT_BYTES and answer.content_type != "text/event-stream"
            if short and request.method != "HEAD":
                return await _at_once(request, answer, reader)
            return await _relay(request, answer, reader)

    async def metrics_text(self) -> str:
        """The engine's `/metrics`. aiohttp.ClientError, TimeoutError or ValueError: it cannot be had."""
        timeout = aiohttp.ClientTimeout(total=_METRICS_S)
        async with self._client.get(self._url + "/metrics", timeout=timeout, allow_redirects=False) as answer:
            answer.raise_for_status()
            read = bytearray()
            async for piece in answer.content.iter_any():
                read += piece
                if len(read) > _MOST_METRICS_BYTES:
                    raise ValueError("the engine's metrics are too long")
            return read.decode("utf-8")


async def _at_once(request: web.Request, answer: aiohttp.ClientResponse, reader: ReplyReader | None) -> Passed:
    """Pass on an answer that is short and no stream: head and body are one write."""
    try:
        body = await answer.read()
    except TimeoutError:
        return _failed(SLOW)
    except (aiohttp.ClientError, OSError):
        return _failed(BROKEN)
    response = web.Response(status=answer.status, reason=answer.reason, headers=_end_to_end(answer.headers), body=body)
    try:
        await response.prepare(request)
        await response.write_eof()
    except ConnectionResetError:
        return Passed(response, left=True)
    if reader:
        reader.feed(body)
    return Passed(response, reader, whole=True)


async def _relay(request: web.Request, answer: aiohttp.ClientResponse, reader: ReplyReader | None) -> Passed:
    response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=_end_to_end(answer.headers))
    try:
        await response.prepare(request)
        pieces = answer.content.iter_any()
        while (piece := await _next(pieces)) is not None:
            await response.write(piece)
            if reader:
                reader.feed(piece)
        await response.write_eof()
    except _EngineBrokeOff as error:
        # The client must not take what it has for the whole: its connection ends before the answer does.
        if request.transport:
            request.transport.close()
        return Passed(response, reader, refusal=error.refusal)
    except ConnectionResetError:
        return Passed(response, reader, left=True)
    return Passed(response, reader, whole=True)


class _EngineBrokeOff(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__()
        self.refusal = refusal


async def _next(pieces: aiohttp.streams.AsyncStreamIterator[bytes]) -> bytes | None:
    """The next bytes from the engine; its errors apart from the client's."""
    try:
        return await anext(pieces, None)
    except (TimeoutError, asyncio.IncompleteReadError):
        raise _EngineBrokeOff(SLOW) from None
    except (aiohttp.ClientError, OSError):
        raise _EngineBrokeOff(BROKEN) from None


def _end_to_end(headers: CIMultiDictProxy[str] | CIMultiDict[str], *without: str) -> CIMultiDict[str]:
    listed = (name.strip().lower() for value in headers.getall("Connection", []) for name in value.split(","))
    left_out = {*_ONE_CONNECTION, *listed, *without}
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in left_out)


def _failed(refusal: Refusal) -> Passed:
    return Passed(answer_to(refusal), refusal=refusal)


def answer_to(refusal: Refusal) -> web.Response:
    """The refusal as an answer."""
    return web.json_response(refusal.body, status=refusal.status, headers=refusal.headers)
