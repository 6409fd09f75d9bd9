"""The gate as a process: binding, housekeeping, and an end without losses."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from aiohttp import web

from registry.errors import TrapError
from runners.gate import SessionGate
from runners.proxy.admission import Admission
from runners.proxy.forwarding import Upstream
from runners.proxy.server import GateServer
from runners.proxy.sessions import SessionBook
from runners.proxy.settings import ProxySettings
from runners.proxy.telemetry import Telemetry
from runners.proxy.watching import Judgement, Watch

_SWEEP_S = 0.25
_BACKLOG = 1024
_LAST_WORDS_S = 1.0

# aiohttp's own errors can quote a header that it could not read, so nobody hears them.
_UNHEARD = logging.getLogger("trapkit.gate.unheard")
_UNHEARD.disabled = True


class Stop:
    """Told once by a signal: finish. Told again: at once."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.urged = asyncio.Event()

    def tell(self) -> None:
        """Stop, or stop at once."""
        (self.urged if self.asked.is_set() else self.asked).set()


async def serve(
    settings: ProxySettings,
    say: Callable[[str], None],
    warn: Callable[[str], None],
    judgement: Judgement[Any] | None = None,
    stop: Stop | None = None,
    write: Callable[[str], object] | None = None,
) -> None:
    """Serve until SIGTERM, SIGINT or `stop`; then waiting requests get 503 and
    running ones finish, for `drain_s` at most.

    `judgement` is needed to engage when trapped. `say` receives one line once
    requests are taken, `warn` what the engine's state has become, `write` the
    events.
    TrapError: the address cannot be listened on.
    """
    stop = stop or Stop()
    start_s = time.monotonic()
    told = Telemetry(settings.cap, write)

    def clock() -> float:
        return time.monotonic() - start_s

    admission = Admission(settings, SessionBook(), clock, told)
    _warm_up(settings)
    async with Upstream(settings.upstream, settings.upstream_timeout_s) as upstream:
        server = GateServer(settings, admission, upstream, told)
        runner = web.AppRunner(
            server.application,
            access_log=None,
            logger=_UNHEARD,
            handler_cancellation=True,
            auto_decompress=False,
            shutdown_timeout=_LAST_WORDS_S,
        )
        await runner.setup()
        try:
            site = web.TCPSite(runner, settings.host, settings.port, backlog=_BACKLOG)
            await _listen(site, settings)
            work = [_sweep(admission)]
            if judgement and settings.engage_when_trapped:
                watch = Watch(upstream.metrics_text, judgement, admission.engage, told, warn, clock)
                work.append(watch.run(settings.poll_s))
            say(_ready(settings, runner))
            await _until(stop, work)
            await site.stop()
            admission.stop()
            await _drain(server, stop, settings.drain_s)
        finally:
            await runner.cleanup()


async def _listen(site: web.TCPSite, settings: ProxySettings) -> None:
    try:
        await site.start()
    except (OSError, OverflowError) as error:
        used = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        raise TrapError(
            "the port is in use" if used else "this address cannot be listened on",
            where="--host, --port",
            value=f"{settings.host}:{settings.port}",
            remedy="end what listens there, or choose another: --port 0 takes any free one",
        ) from None


async def _sweep(admission: Admission) -> None:
    while True:
        await asyncio.sleep(_SWEEP_S)
        admission.sweep()


async def _until(stop: Stop, work: list[Any]) -> None:
    """Do the work until told to stop; an error in it ends the gate."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(ValueError, RuntimeError):  # Not in the main thread.
            loop.add_signal_handler(number, stop.tell)
    tasks = [asyncio.ensure_future(each) for each in (stop.asked.wait(), *work)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _drain(server: GateServer, stop: Stop, drain_s: float) -> None:
    waits = [asyncio.ensure_future(each.wait()) for each in (server.quiet, stop.urged)]
    await asyncio.wait(waits, timeout=drain_s, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)


def _ready(settings: ProxySettings, runner: web.AppRunner) -> str:
    host, port = runner.addresses[0][:2]
    shown = f"[{host}]" if ":" in host else host
    state = "open until the engine is trapped" if settings.engage_when_trapped else "engaged"
    return f"gate ready on http://{shown}:{port} before {settings.upstream}, cap {settings.cap}, {state}"


def _warm_up(settings: ProxySettings) -> None:
    """Have the gate's rules compiled before the first request needs them."""
    gate = SessionGate(settings.gate())
    gate.engage(0.0)
    gate.request("first", 0.0)
    gate.leave("first", 0.0)
