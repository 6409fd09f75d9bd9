"""An engine that is no engine, a gate before it, and a clock that is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from runners.gate import GateEvent
from runners.proxy.admission import Admission
from runners.proxy.places import Ticket
from runners.proxy.refusals import Refusal
from runners.proxy.serving import Stop, serve
from runners.proxy.sessions import Asked, Session, SessionBook
from runners.proxy.settings import ProxySettings

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Bench:
    """An admission under a clock of the test's own, and all that it told."""

    def __init__(self, tick_s: float = 0.0, **settings: Any) -> None:
        self.now_s = 0.0
        self.tick_s = tick_s
        self.events: list[GateEvent] = []
        self.refusals: list[tuple[str, str]] = []
        self.waits: list[float] = []
        self.returns = 0
        self.settings = ProxySettings("http://engine", **{"cap": 1, **settings})
        self.book = SessionBook()
        self.admission = Admission(self.settings, self.book, self.clock, self)
        self.answers: dict[Ticket, Refusal | None] = {}

    def clock(self) -> float:
        """Goes on by a tick whenever it is read, as a real one does."""
        self.now_s += self.tick_s
        return self.now_s

    def event(self, event: GateEvent) -> None:
        self.events.append(event)

    def refused(self, refusal: Refusal, session: Session, time_s: float) -> None:
        self.refusals.append((refusal.code, session.key))

    def waited(self, waited_s: float) -> None:
        self.waits.append(waited_s)

    def returned(self) -> None:
        self.returns += 1

    def session(self, name: str) -> Session:
        return self.book.session_of(Asked(b"owner", name))

    def ask(self, name: str, body_bytes: int = 0, ends: bool = False) -> Ticket:
        told: list[Refusal | None] = []
        ticket = self.admission.ask(self.session(name), told.append, body_bytes, ends)
        ticket.tell = lambda answer: self.tell(ticket, answer)
        if told:
            self.tell(ticket, told[0])
        return ticket

    def tell(self, ticket: Ticket, answer: Refusal | None) -> None:
        assert ticket not in self.answers, "told twice"
        self.answers[ticket] = answer

    def went(self, ticket: Ticket) -> bool:
        return ticket in self.answers and self.answers[ticket] is None

    def waits_for(self, ticket: Ticket) -> bool:
        return ticket not in self.answers

    def code(self, ticket: Ticket) -> str | None:
        answer = self.answers.get(ticket)
        return answer.code if answer else None

    def at(self, time_s: float) -> None:
        self.now_s = time_s
        self.admission.sweep()


@asynccontextmanager
async def engine(handler: Handler) -> AsyncIterator[str]:
    """The URL of a server that answers everything by `handler`."""
    application = web.Application(client_max_size=2**30)
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application, access_log=None, auto_decompress=False, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


class Client:
    """Asks a gate at `url`."""

    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self.url = url
        self.http = http
        self.stop = Stop()
        self.warned: list[str] = []

    async def complete(self, session: str, **more: Any) -> aiohttp.ClientResponse:
        headers = {"X-Session-Id": session, **more.pop("headers", {})}
        return await self.post("/v1/completions", headers=headers, **{"json": {"prompt": "a"}, **more})

    async def post(self, path: str, **more: Any) -> aiohttp.ClientResponse:
        answer = await self.http.post(self.url + path, **more)
        await answer.read()
        return answer

    async def numbers(self) -> dict[str, float]:
        async with self.http.get(self.url + "/gate/metrics") as answer:
            lines = (await answer.text()).splitlines()
        pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {name.removeprefix("trapkit_gate_"): float(value) for name, _, value in pairs}

    async def until(self, name: str, value: float) -> None:
        """Wait until one of the gate's metrics has this value."""
        async with asyncio.timeout(10):
            while (await self.numbers()).get(name) != value:
                await asyncio.sleep(0.01)


@asynccontextmanager
async def gate(upstream: str, judgement: Any = None, write: Any = None, **settings: Any) -> AsyncIterator[Client]:
    """A gate before `upstream` in this process."""
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with aiohttp.ClientSession() as http:
        client = Client("", http)
        chosen = ProxySettings(upstream, **{"cap": 1, "port": 0, "drain_s": 5.0, **settings})
        task = asyncio.ensure_future(
            serve(chosen, ready.set_result, client.warned.append, judgement, client.stop, write)
        )
        await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
        client.url = (await ready).split()[3]
        try:
            yield client
        finally:
            client.stop.tell()
            await task
