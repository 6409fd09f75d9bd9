"""Ask a live engine for its metrics: one GET, bounded in time, size and hops."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from registry.errors import EngineError, TrapError
from registry.plain_text import plain
from runners.engines.metrics import CAP_CHARACTERS, EngineSample, parse_metrics

if TYPE_CHECKING:
    import aiohttp

TIMEOUT_S = 10.0
"""For the whole exchange, redirects included."""

_MAX_HOPS = 2
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_URL = re.compile(r"https?://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?(/[!-\"$->@-\[\]-~]*)?", re.IGNORECASE)


def metrics_url(url: str) -> str:
    """Where an engine shows its metrics: its address, with `/metrics` unless that is there already.

    Raises TrapError for what is no http or https address, holds a user name
    or password, a query or a fragment.
    """
    address = url.strip()
    match = _URL.fullmatch(address)
    if match is None or int((match[2] or ":1")[1:]) not in range(1, 65_536):
        raise TrapError(
            "not the address of an engine",
            value=plain(re.sub(r"//[^/]*@", "//", address), 200),
            remedy="http://HOST:PORT, without user name, password or query",
        )
    base = address.rstrip("/")
    return base if base.endswith("/metrics") else f"{base}/metrics"


def scrape(url: str, timeout_s: float = TIMEOUT_S) -> EngineSample:
    """A sample of the engine at `url`, which `metrics_url` has made.

    Redirects are followed on the same scheme, host and port only. Proxies of
    the environment are not asked: an engine is a neighbour. Raises EngineError.
    """
    try:
        return parse_metrics(asyncio.run(_text(url, timeout_s)))
    except EngineError as error:
        raise EngineError(error.what, where=error.where or url, value=error.value, remedy=error.remedy) from None


async def _text(url: str, timeout_s: float) -> str:
    import aiohttp

    try:
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=timeout_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers={"Accept": "text/plain", "Accept-Encoding": "identity", "User-Agent": "trapkit"},
        ) as session:
            for _ in range(_MAX_HOPS + 1):
                async with session.get(url, allow_redirects=False) as answer:
                    if answer.status not in _REDIRECTS:
                        return await _body(answer)
                    url = _target(url, answer.headers.get("Location", ""))
    except TimeoutError:
        raise EngineError("the engine does not answer in time", value=f"{timeout_s:g} s") from None
    except aiohttp.ClientConnectionError:
        raise EngineError("the engine cannot be reached", remedy="check address and port") from None
    except (aiohttp.ClientError, OSError, ValueError):
        raise EngineError("the engine's answer is not HTTP that can be read") from None
    raise EngineError("the engine redirects in circles")


async def _body(answer: aiohttp.ClientResponse) -> str:
    """The text of a final answer, refused by its status or once it is over the cap."""
    if answer.status != 200:
        raise EngineError(
            f"the engine answered {answer.status} where its metrics should be",
            remedy="give the engine's own address; SGLang shows metrics with --enable-metrics only",
        )
    if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise EngineError("the answer is compressed, though that was not asked for")
    body = bytearray()
    async for piece in answer.content.iter_chunked(65_536):
        body += piece
        if len(body) > CAP_CHARACTERS:
            raise EngineError("the engine's metrics are longer than any engine's", value=f"over {CAP_CHARACTERS} bytes")
    return body.decode("utf-8", "replace")


def _target(url: str, location: str) -> str:
    """Where a redirect leads; EngineError for another scheme, host or port."""
    try:
        target = urljoin(url, location)
        here, there = urlsplit(url), urlsplit(target)
        alike = (here.scheme, here.hostname, here.port) == (there.scheme, there.hostname, there.port)
    except ValueError:
        alike, target = False, location
    if not location or not alike or "@" in target:
        raise EngineError("the engine redirects elsewhere", value=plain(location, 200), remedy="give that address")
    return target
