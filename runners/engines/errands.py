"""Small requests to an engine beside its turns: ready, facts, flush, metrics."""

from __future__ import annotations

import asyncio
import time

import aiohttp

from registry.errors import EngineError
from runners.engines.adapter import Adapter
from runners.engines.facts import EngineFacts, json_of, secret_of, version_of
from runners.engines.metrics import EngineSample, parse_metrics

HEALTH_PATH = "/health"
METRICS_PATH = "/metrics"
MAX_ANSWER_BYTES = 4 * 1024 * 1024
ERRAND_TIMEOUT_S = 5.0
FLUSH_TIMEOUT_S = 70.0
FLUSH_TRIES_S = 60.0


class Errands:
    """Asks one engine at `url`; an async context manager."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self._url = url
        self._headers = headers

    async def __aenter__(self) -> Errands:
        self._http = aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(),
            connector=aiohttp.TCPConnector(force_close=True),
            headers=self._headers,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def ask(self, path: str, method: str = "GET", timeout_s: float = ERRAND_TIMEOUT_S) -> tuple[int, bytes]:
        """Status and body; status 0 where nobody answered."""
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=2.0)
        try:
            async with self._http.request(method, self._url + path, allow_redirects=False, timeout=timeout) as response:
                body = bytearray()
                async for piece in response.content.iter_any():
                    body += piece
                    if len(body) > MAX_ANSWER_BYTES:
                        return 0, b""
                return response.status, bytes(body)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return 0, b""

    async def healthy(self) -> bool:
        """Whether the engine says that it is up."""
        return (await self.ask(HEALTH_PATH))[0] == 200

    async def metrics(self, timeout_s: float = ERRAND_TIMEOUT_S) -> bytes | None:
        """The engine's metrics as they come; None where there are none."""
        status, body = await self.ask(METRICS_PATH, timeout_s=timeout_s)
        return body if status == 200 else None

    async def facts(self, adapter: Adapter) -> EngineFacts:
        """What the engine says of itself."""
        version = await self.ask(adapter.version_path) if adapter.version_path else (0, b"")
        resolved = await self.ask(adapter.resolved_path) if adapter.resolved_path else (0, b"")
        return EngineFacts(
            version_of(version[1]) if version[0] == 200 else None,
            json_of(resolved[1], secret_of(self._headers)) if resolved[0] == 200 else None,
            sample_of(await self.metrics()),
        )

    async def flush(self, adapter: Adapter) -> None:
        """Empty the engine's cache; EngineError where it stays busy."""
        if adapter.flush_path is None:
            return
        until_s = time.monotonic() + FLUSH_TRIES_S
        while time.monotonic() < until_s:
            status, body = await self.ask(adapter.flush_path, "POST", FLUSH_TIMEOUT_S)
            if adapter.check_flushed(status, body):
                return
            await asyncio.sleep(0.5)
        raise EngineError(
            "the engine did not empty its cache",
            value=f"status {status}",
            remedy="is someone else using it? a run needs the engine for itself",
        )


def sample_of(text: bytes | None) -> EngineSample | None:
    """A scrape as numbers; None where it is no scrape."""
    if text is None:
        return None
    try:
        return parse_metrics(text.decode("utf-8", "replace"))
    except EngineError:
        return None
