"""What the stubs of engines share: turns, the cache, time, faults, and serving.

In a test: `async with VLLMStub(StubSettings(...)) as stub: ... stub.url`. A stub
serves on a free port of the loopback; `stub.turns` says what it was asked, and
`stub.faults` may be changed while it serves.
"""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from tests.engines.faults import CONTENT, Fault
from tests.engines.prefix_cache import PrefixCache

EVENT_STREAM = {"Content-Type": "text/event-stream; charset=utf-8"}
VOCABULARY_SIZE = 1000


@dataclass
class StubSettings:
    """How a stub behaves. Times in seconds, per token where the name says so."""

    served_model: str = "m"
    block_tokens: int = 32
    pool_tokens: int = 30_016
    caching: bool = True
    cached_tokens_told: bool = True
    """vLLM's --enable-prompt-tokens-details."""
    can_flush: bool = True
    """vLLM's development mode."""
    longest_context_tokens: int = 65_536
    most_running: int = 256
    prefill_token_s: float = 0.0
    output_token_s: float = 0.0
    faults: set[Fault] = field(default_factory=set)
    good_turns: int = 0
    """Turns that are answered rightly before the faults begin."""
    huge_line_bytes: int = 2 * 1024 * 1024


@dataclass
class StubTurn:
    """A turn that a stub was asked, and what came of it; `received_s` on time.monotonic()."""

    received_s: float
    headers: Mapping[str, str]
    body: dict[str, Any]
    prompt: list[int]
    output_tokens: int
    faults: frozenset[Fault] = frozenset()
    salt: str = ""
    cached_tokens: int = 0
    queue_s: float = 0.0
    output: list[int] = field(default_factory=list)
    finished: bool = False


class EngineStub(ABC):
    """The common part; a subclass knows one engine's words."""

    version = "0"

    def __init__(self, settings: StubSettings | None = None) -> None:
        self.settings = settings or StubSettings()
        self.faults = set(self.settings.faults)
        self.cache = PrefixCache(self.settings.block_tokens, self.settings.pool_tokens)
        self.turns: list[StubTurn] = []
        self.running = self.waiting = 0
        self.prompt_tokens = self.cached_tokens = self.output_tokens = 0
        self.flushes = self.health_checks = 0
        self.port = 0
        self._slots = asyncio.Semaphore(self.settings.most_running)
        self._stopping = asyncio.Event()

    @abstractmethod
    def routes(self) -> list[web.RouteDef]:
        """The engine's paths."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self, port: int = 0) -> None:
        application = web.Application(client_max_size=64 * 1024 * 1024)
        application.add_routes(self.routes())
        self._runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.2)
        await self._runner.setup()
        self._site = web.TCPSite(self._runner, "127.0.0.1", port)
        await self._site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        self._stopping.set()
        await self._runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def refuse_new_connections(self) -> None:
        """Stop listening; what is connected stays connected."""
        if self._site in self._runner.sites:
            await self._site.stop()

    def shown_faults(self) -> frozenset[Fault]:
        """The faults that show now: none until `good_turns` were asked."""
        return frozenset(self.faults if len(self.turns) >= self.settings.good_turns else ())

    def identity(self, turn: StubTurn) -> str:
        """An answer's id; with a character of two bytes where it is to be parted."""
        return f"cmpl-{self.turns.index(turn) + 1}{'é' if Fault.SPLIT_UTF8 in turn.faults else ''}"

    @property
    def busy(self) -> bool:
        return bool(self.running or self.waiting)

    def told_prompt_tokens(self, turn: StubTurn) -> int:
        return len(turn.prompt) + (Fault.WRONG_PROMPT_COUNT in turn.faults)

    def add_turn(self, request: web.Request, body: dict[str, Any], prompt: list[int], output_tokens: int) -> StubTurn:
        headers = request.headers.copy()
        turn = StubTurn(time.monotonic(), headers, body, prompt, output_tokens, self.shown_faults())
        turn.salt = str(body.get("cache_salt") or "")
        self.turns.append(turn)
        return turn

    async def tokens(self, turn: StubTurn) -> AsyncIterator[int]:
        """Run the turn: wait for a slot, find what is cached, compute, decode."""
        self.waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        turn.queue_s = time.monotonic() - turn.received_s
        try:
            if self.settings.caching:
                turn.cached_tokens = self.cache.cached_tokens(turn.prompt, turn.salt)
            self.prompt_tokens += len(turn.prompt)
            self.cached_tokens += turn.cached_tokens
            await asyncio.sleep(self.settings.prefill_token_s * (len(turn.prompt) - turn.cached_tokens))
            wanted = turn.output_tokens - (Fault.FEW_TOKENS in turn.faults)
            for index in range(wanted):
                await asyncio.sleep(self.settings.output_token_s)
                turn.output.append((sum(turn.prompt[-4:]) + 7 * index) % VOCABULARY_SIZE)
                self.output_tokens += 1
                # The last token's keys and values are never computed.
                computed = turn.prompt + turn.output[:-1]
                if self.settings.caching and index in (0, wanted - 1):
                    self.cache.keep(computed, turn.salt)
                turn.finished = index == wanted - 1
                yield turn.output[-1]
        finally:
            self.running -= 1
            self._slots.release()

    async def answer(
        self, request: web.Request, turn: StubTurn, events: AsyncIterator[bytes], error: dict[str, Any]
    ) -> web.StreamResponse:
        """Send a stream's events, or what the turn's faults make of them."""
        if Fault.HTTP_500 in turn.faults:
            return web.json_response({"error": error}, status=500)
        if Fault.HANG in turn.faults:
            await self._stopping.wait()
        response = web.StreamResponse(headers=EVENT_STREAM)
        await response.prepare(request)
        fault = next((fault for fault in Fault if fault in turn.faults - CONTENT), None)
        with suppress(ConnectionError):
            async for piece in self._pieces(events, fault, error):
                if piece is None:
                    assert request.transport is not None
                    request.transport.abort()
                    return response
                await response.write(piece)
            if fault is Fault.REFUSE:
                await self.refuse_new_connections()
            await response.write_eof()
        return response

    async def _pieces(
        self, events: AsyncIterator[bytes], fault: Fault | None, error: dict[str, Any]
    ) -> AsyncIterator[bytes | None]:
        """The writes of a body; None: break the connection here."""
        whole = {
            Fault.EMPTY: b"",
            Fault.GARBAGE: b'data: {"choices": [\xff\xfe}\n\n',
            Fault.HUGE_LINE: b'data: {"id":"' + b"x" * self.settings.huge_line_bytes + b'"}\n\n',
        }
        if fault in whole:
            yield whole[fault]
            return
        count = 0
        async for event in events:
            count += 1
            if fault is Fault.SPLIT_UTF8:
                middle = event.find("é".encode()) + 1
                yield event[:middle]
                # Two writes in one turn of the loop would leave in one segment.
                await asyncio.sleep(0.001)
                yield event[middle:]
            elif fault is Fault.CUT_LINE and count == 2:
                yield event[: len(event) // 2]
                return
            else:
                yield event
            if fault is Fault.DROP:
                yield None
            elif fault is Fault.HANG_MIDWAY:
                await self._stopping.wait()
            elif fault is Fault.STREAM_ERROR:
                yield event_of({"error": error}) + DONE
                return


DONE = b"data: [DONE]\n\n"


def event_of(value: dict[str, Any]) -> bytes:
    """One server-sent event, written as the engines write them: no spaces, UTF-8."""
    return b"data: " + json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n\n"


def metrics_text(samples: list[tuple[str, str, dict[str, str], float]]) -> web.Response:
    """A Prometheus page of (name, kind, labels, value); samples of one name stand together."""
    lines: list[str] = []
    told: set[str] = set()
    for name, kind, labels, value in samples:
        if name not in told:
            lines += [f"# HELP {name} A stub's.", f"# TYPE {name} {kind}"]
            told.add(name)
        inner = ",".join(f'{key}="{text}"' for key, text in labels.items())
        lines.append(f"{name}{{{inner}}} {float(value)}")
    return web.Response(text="\n".join(lines) + "\n", headers={"Content-Type": "text/plain; version=0.0.4"})
