"""The gate's HTTP side: which requests it holds back, and its own answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping

from aiohttp import web

from runners.proxy.admission import Admission
from runners.proxy.forwarding import Passed, Upstream, answer_to
from runners.proxy.places import Ticket
from runners.proxy.prompts import GATED_PATHS
from runners.proxy.refusals import TOO_LARGE, Refusal
from runners.proxy.replies import ReplyReader
from runners.proxy.sessions import Asked, asked_by, owner_of
from runners.proxy.settings import ProxySettings
from runners.proxy.telemetry import CLIENT_GONE, CONTENT_TYPE, Telemetry

_NO = ("", "0", "false", "no")


class GateServer:
    """Answers every request; `quiet` is set while none is under way."""

    def __init__(self, settings: ProxySettings, admission: Admission, upstream: Upstream, told: Telemetry) -> None:
        self.quiet = asyncio.Event()
        self.quiet.set()
        self._cap = settings.cap
        self._admission = admission
        self._upstream = upstream
        self._told = told
        self._active = 0
        # No handler passes the whole body on unless it is gated, so its size is bounded there alone.
        self.application = web.Application(client_max_size=settings.max_body_bytes)
        self.application.router.add_get("/gate/metrics", self._metrics)
        self.application.router.add_get("/gate/sessions", self._sessions)
        self.application.router.add_delete("/sessions/{name:.+}", self._end)
        self.application.router.add_route("*", "/{path:.*}", self._any)

    async def _any(self, request: web.Request) -> web.StreamResponse:
        self._active += 1
        self.quiet.clear()
        try:
            path = gated_path(request.method, request.path)
            if path is None:
                return (await self._upstream.forward(request, None, lambda _: None)).response
            return await self._gated(request, path)
        finally:
            self._active -= 1
            if not self._active:
                self.quiet.set()

    async def _gated(self, request: web.Request, path: str) -> web.StreamResponse:
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return self._answer(TOO_LARGE)
        asked = asked_by(path, request.headers, body)
        session = self._admission.book.session_of(asked)
        decided: asyncio.Future[Refusal | None] = asyncio.get_running_loop().create_future()

        def tell(refusal: Refusal | None) -> None:
            if not decided.done():
                decided.set_result(refusal)

        ticket = self._admission.ask(session, tell, len(body), _ends(request.headers))
        try:
            refusal = await decided
            if refusal:
                self._admission.book.failed(session, asked)
                return self._answer(refusal)
            return await self._pass_on(request, path, body, ticket, asked)
        except asyncio.CancelledError:
            self._told.answered(CLIENT_GONE)
            self._admission.book.client_left(session, asked)
            raise
        finally:
            if ticket.goes:
                self._admission.done(session)
            else:
                self._admission.client_left(ticket)

    async def _pass_on(
        self, request: web.Request, path: str, body: bytes, ticket: Ticket, asked: Asked
    ) -> web.StreamResponse:
        def reader_for(headers: Mapping[str, str]) -> ReplyReader | None:
            return ReplyReader(asked.kind, path, headers) if asked.prompt else None

        passed = await self._upstream.forward(request, body, reader_for)
        self._keep(passed, ticket, asked)
        return passed.response

    def _keep(self, passed: Passed, ticket: Ticket, asked: Asked) -> None:
        """What the next turn of the session is told by, and what is counted."""
        book, session = self._admission.book, ticket.session
        if passed.left:
            book.client_left(session, asked)
        elif passed.whole and passed.response.status == web.HTTPOk.status_code:
            book.replied(session, asked, passed.reader)
        else:
            book.failed(session, asked)
        if passed.refusal:
            self._told.engine_failed(passed.refusal.code)
        self._told.answered(CLIENT_GONE if passed.left else passed.response.status)

    def _answer(self, refusal: Refusal) -> web.Response:
        self._told.answered(refusal.status)
        return answer_to(refusal)

    async def _metrics(self, _: web.Request) -> web.Response:
        page = self._told.page(self._admission.counts())
        return web.Response(body=page, headers={"Content-Type": CONTENT_TYPE})

    async def _sessions(self, _: web.Request) -> web.Response:
        counts = self._admission.counts()
        sessions = [
            {"session": session.key, "state": self._admission.state(session), "in_flight": session.in_flight}
            for session in self._admission.book.sessions.values()
        ]
        return web.json_response({"engaged": counts.engaged, "cap": self._cap, "sessions": sessions})

    async def _end(self, request: web.Request) -> web.Response:
        """204: the session is over. 202: it will be, once its replies are done."""
        session = self._admission.book.named(owner_of(request.headers), request.match_info["name"])
        if session is None:
            return answer_to(Refusal(404, "gate_no_such_session", "no session of this name is known to the gate"))
        return web.Response(status=204 if self._admission.end(session) else 202)


def gated_path(method: str, path: str) -> str | None:
    """The gated path that a request means, however its slashes are written."""
    plain = re.sub(r"/+", "/", path).rstrip("/")
    return plain if method == "POST" and plain in GATED_PATHS else None


def _ends(headers: Mapping[str, str]) -> bool:
    return headers.get("X-Session-End", "").strip().lower() not in _NO
