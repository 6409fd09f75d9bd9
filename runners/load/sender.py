"""One turn over HTTP: the request's bytes, the stream's, and when.

The policy for what goes wrong: a turn that the engine refuses, cuts off,
answers with other counts than asked or not at all is an error, and its session
ends there; nothing is sent twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import aiohttp

from registry.errors import EngineError
from runners.engines.adapter import Adapter, Reply
from runners.engines.facts import NOT_SHOWN, secret_of
from runners.engines.stream import MAX_STREAM_BYTES, shown
from runners.load.clock import RunClock
from runners.load.records import TurnRow

KEEP_ALIVE_S = 3.0
"""Below the 5 s after which uvicorn closes an idle connection: a request never
meets one that is being closed."""

CONNECT_TIMEOUT_S = 10.0
_TOKEN_TAIL_BYTES = 32


class TurnFailed(Exception):
    """A turn that ended without an answer that counts; says why in words."""


@dataclass(frozen=True)
class Target:
    """Where turns go: the engine's base URL, and how it is spoken to."""

    url: str
    adapter: Adapter
    model: str
    headers: dict[str, str]


class Sender:
    """Sends turns; an async context manager that owns the connections.

    `last_byte_s` is when the engine last sent anything, or when it last was
    asked while idle; `open_turns` how many turns wait for their end.
    """

    def __init__(self, target: Target, clock: RunClock) -> None:
        self._target = target
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None
        self.last_byte_s = 0.0
        self.open_turns = 0
        self.failed_in_a_row = 0
        self.last_failure = ""

    async def __aenter__(self) -> Sender:
        trace = aiohttp.TraceConfig()
        trace.on_request_headers_sent.append(self._submitted)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
            trace_configs=[trace],
            auto_decompress=False,
            headers={**self._target.headers, "Content-Type": "application/json"},
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def _submitted(self, _: Any, context: SimpleNamespace, __: Any) -> None:
        row: TurnRow = context.trace_request_ctx
        row.submit_s = self._clock.now_s()

    async def send(self, row: TurnRow, prompt: bytes, output_tokens: int) -> Reply:
        """Send one turn and read its whole answer; notes the times in `row`.

        TurnFailed, with `done_s` noted, where it ended without one.
        """
        if not self.open_turns:
            self.last_byte_s = self._clock.now_s()
        self.open_turns += 1
        try:
            stream = await self._exchange(row, prompt, output_tokens)
            row.done_s = self._clock.now_s()
            reply = self._target.adapter.reply(stream)
            _check_counts(row, reply, output_tokens)
        except (aiohttp.ClientError, EngineError, TimeoutError, TurnFailed, OSError, ValueError) as error:
            row.done_s = self._clock.now_s() if row.done_s is None else row.done_s
            self.failed_in_a_row += 1
            self.last_failure = _words(error)
            raise TurnFailed(self.last_failure) from None
        finally:
            self.open_turns -= 1
        self.failed_in_a_row = 0
        return reply

    async def _exchange(self, row: TurnRow, prompt: bytes, output_tokens: int) -> bytes:
        assert self._session is not None
        target = self._target
        async with self._session.post(
            target.url + target.adapter.path,
            data=target.adapter.body(target.model, prompt, output_tokens),
            headers={"X-Session-Id": row.session},
            allow_redirects=False,
            trace_request_ctx=row,
        ) as response:
            if response.status != 200:
                body = await response.content.read(2000)
                raise TurnFailed(f"status {response.status}: {shown(self._without_secret(body))}")
            return self._without_secret(await self._read(row, response.content))

    def _without_secret(self, data: bytes) -> bytes:
        """An engine may say its key back; errors are recorded and published."""
        secret = secret_of(self._target.headers)
        return data.replace(secret.encode(), NOT_SHOWN.encode()) if secret else data

    async def _read(self, row: TurnRow, content: aiohttp.StreamReader) -> bytes:
        pieces: list[bytes] = []
        size, tail = 0, b""
        async for piece in content.iter_any():
            self.last_byte_s = self._clock.now_s()
            if row.first_token_s is None:
                if self._target.adapter.shows_token(tail + piece):
                    row.first_token_s = self.last_byte_s
                tail = piece[-_TOKEN_TAIL_BYTES:]
            size += len(piece)
            if size > MAX_STREAM_BYTES:
                raise TurnFailed(f"an answer without end: more than {MAX_STREAM_BYTES} bytes")
            pieces.append(piece)
        return b"".join(pieces)


def _check_counts(row: TurnRow, reply: Reply, output_tokens: int) -> None:
    """TurnFailed where the engine did not compute what it was asked."""
    if reply.prompt_tokens != row.prompt_tokens:
        raise TurnFailed(f"wrong count: {reply.prompt_tokens} prompt tokens, {row.prompt_tokens} were sent")
    if len(reply.output_ids) != output_tokens:
        raise TurnFailed(f"wrong count: {len(reply.output_ids)} output tokens, {output_tokens} were asked for")
    if reply.cached_tokens is None:
        raise TurnFailed("no cached tokens: the engine does not say how much it reused")
    if reply.cached_tokens >= row.prompt_tokens:
        raise TurnFailed(f"wrong count: {reply.cached_tokens} cached of {row.prompt_tokens} prompt tokens")


def _words(error: BaseException) -> str:
    if isinstance(error, TurnFailed):
        return str(error)
    if isinstance(error, EngineError):
        return f"{error.what}: {error.value}" if error.value is not None else error.what
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"connection refused: {error.os_error.strerror or 'no answer'}"
    if isinstance(error, TimeoutError):
        return "time-out: the engine took no connection"
    return f"connection lost: {shown(str(error).encode())}"
