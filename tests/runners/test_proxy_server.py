"""The gate over HTTP: streams, bytes, order, and what it says of itself."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from registry.errors import TrapError
from runners.proxy.server import gated_path
from runners.proxy.settings import checked_upstream
from tests.runners.proxy_support import Client, engine, gate

SECRET = "Bearer sk-very-secret"


class Engine:
    """Keeps what it was asked; holds its answers back until told."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        self.open = asyncio.Event()
        self.open.set()
        self.cancelled = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.asked.append((request.method, request.raw_path, dict(request.headers), body))
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return web.json_response({"choices": [{"index": 0, "text": "b", "message": {"content": "b"}}]})

    @property
    def sessions(self) -> list[str]:
        return [headers.get("X-Session-Id", "") for _, _, headers, _ in self.asked]


@asynccontextmanager
async def pair(**settings: Any) -> AsyncIterator[tuple[Engine, Client]]:
    behind = Engine()
    async with engine(behind.answer) as url, gate(url, **settings) as client:
        yield behind, client


def runs(body: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await body()

    asyncio.run(bounded())


def test_each_piece_of_a_stream_arrives_before_the_next_is_made() -> None:
    pieces = [b"data: %d\n\n" % number for number in range(5)] + [b"\x00\xff not an event"]
    received: asyncio.Queue[bytes] = asyncio.Queue()

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Own": "a"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            # The next piece is made only once the client has this one.
            assert await asyncio.wait_for(received.get(), 10) == piece
        return response

    async def body() -> None:
        async with engine(stream) as url, gate(url) as client:
            request = client.http.post(client.url + "/v1/chat/completions", json={"stream": True})
            async with request as answer:
                assert answer.headers["X-Own"] == "a"
                async for piece in answer.content.iter_any():
                    received.put_nowait(piece)

    runs(body)
    assert received.empty()


BODIES = [
    b"",
    b"not json",
    b'{"prompt": "a", "prompt": "b"}',
    b'{ "prompt" :\t"\\u00e4\xc3\xa4" }\r\n',
    b'{"messages":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    b'{"messages":[{"role":1,"content":{"x":null},"tool_calls":[{"function":{"name":[],"arguments":{}}}]}]}',
    bytes(range(256)) * 4000,
    gzip.compress(b'{"prompt": "a"}'),
]


PATHS = ["/v1/completions", "/v1/chat/completions", "/v1/responses", "/generate?a=%2F&b", "/x/%2e%2e//y"]


@pytest.mark.parametrize("path", PATHS)
def test_bodies_go_and_come_byte_for_byte(path: str) -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        assert request.raw_path == path
        assert request.method == "POST"
        told = {name: request.headers.get(name, "") for name in ("Content-Encoding", "Content-Type", "X-Odd")}
        return web.Response(
            body=await request.read(), headers={**told, "Content-Type": "a/b"}, status=210, reason="Odd"
        )

    async def body() -> None:
        async with engine(echo) as url, gate(url, cap=100) as client:
            for sent in BODIES:
                packed = {"Content-Encoding": "gzip"} if sent[:2] == b"\x1f\x8b" else {}
                headers = {"X-Odd": "\xe4", "Content-Type": "text/x", **packed}
                request = client.http.post(URL(client.url + path, encoded=True), data=sent, headers=headers)
                async with request as answer:
                    assert (answer.status, answer.reason) == (210, "Odd")
                    assert answer.headers["X-Odd"] == "\xe4"
                    assert answer.headers["Content-Type"] == "a/b"
                    assert await answer.read() == (gzip.decompress(sent) if packed else sent)

    runs(body)


def test_headers_of_one_connection_stay_there_and_the_others_pass() -> None:
    async def body() -> None:
        async with pair() as (behind, client):
            headers = {
                "Connection": "X-Mine",
                "X-Mine": "1",
                "TE": "trailers",
                "Authorization": SECRET,
                "Cookie": "a=b",
            }
            await client.complete("a", headers=headers)
            ((_, _, received, _),) = behind.asked
            assert received["Authorization"] == SECRET
            assert received["Cookie"] == "a=b"
            assert received["X-Session-Id"] == "a"
            assert received["Host"] != client.url.removeprefix("http://")
            assert not {"X-Mine", "TE", "Connection"} & set(received)

    runs(body)


def test_other_paths_pass_while_the_gate_is_full() -> None:
    async def body() -> None:
        async with pair() as (behind, client):
            await client.complete("a")
            waiting = asyncio.ensure_future(client.complete("b"))
            await client.until("waiting_sessions", 1)
            for method, path in (("GET", "/v1/models"), ("GET", "/health"), ("GET", "/metrics"), ("GET", "/generate")):
                async with client.http.request(method, client.url + path) as answer:
                    assert answer.status == 200
                assert behind.asked[-1][:2] == (method, path)
            assert (await client.post("/v1/embeddings", data=b"x")).status == 200
            assert behind.asked[-1][3] == b"x"
            async with client.http.head(client.url + "/v1/models") as answer:
                assert answer.status == 200
            assert not waiting.done()
            async with client.http.delete(client.url + "/sessions/a") as answer:
                assert answer.status == 204
            assert (await waiting).status == 200

    runs(body)


@pytest.mark.parametrize(
    ("method", "path", "gated"),
    [
        ("POST", "/v1/completions", "/v1/completions"),
        ("POST", "//v1//completions/", "/v1/completions"),
        ("POST", "/generate/", "/generate"),
        ("GET", "/v1/completions", None),
        ("POST", "/v1/completions/x", None),
        ("POST", "/", None),
    ],
)
def test_slashes_lead_nobody_round_the_gate(method: str, path: str, gated: str | None) -> None:
    assert gated_path(method, path) == gated


def test_sessions_go_in_order_and_the_cap_holds() -> None:
    async def body() -> None:
        async with pair(cap=2) as (behind, client):
            for name in ("a", "b"):
                await client.complete(name)
            waiting = []
            for number, name in enumerate(("c", "d", "e")):
                waiting.append(asyncio.ensure_future(client.complete(name)))
                await client.until("waiting_sessions", number + 1)
            for ended in ("a", "b", "c"):
                async with client.http.delete(client.url + f"/sessions/{ended}") as answer:
                    assert answer.status == 204
                done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                waiting = [task for task in waiting if task not in done]
            assert behind.sessions == ["a", "b", "c", "d", "e"]
            numbers = await client.numbers()
            assert numbers["holding_sessions"] == 2
            assert numbers["admitted_total"] == 5
            assert numbers["wait_seconds_count"] == 3
            assert numbers['requests_total{code="200"}'] == 5

    runs(body)


def test_a_session_that_says_so_ends_with_its_reply() -> None:
    async def body() -> None:
        async with pair() as (behind, client):
            behind.open.clear()
            first = asyncio.ensure_future(client.complete("a", headers={"X-Session-End": "1"}))
            await client.until("in_flight_requests", 1)
            second = asyncio.ensure_future(client.complete("b", headers={"X-Session-End": "false"}))
            await client.until("waiting_sessions", 1)
            assert behind.sessions == ["a"]
            behind.open.set()
            assert (await first).status == (await second).status == 200
            assert (await client.numbers())["known_sessions"] == 1

    runs(body)


def test_a_session_ended_while_it_is_answered_ends_after_that() -> None:
    async def body() -> None:
        async with pair() as (behind, client):
            behind.open.clear()
            first = asyncio.ensure_future(client.complete("a/b c"))
            await client.until("in_flight_requests", 1)
            async with client.http.delete(client.url + "/sessions/a%2Fb%20c") as answer:
                assert answer.status == 202
            behind.open.set()
            assert (await first).status == 200
            async with client.http.delete(client.url + "/sessions/a%2Fb%20c") as answer:
                assert answer.status == 404
                assert (await answer.json())["error"]["code"] == "gate_no_such_session"

    runs(body)


def test_nobody_ends_a_session_of_another_authorization() -> None:
    async def body() -> None:
        async with pair() as (_, client):
            await client.complete("a", headers={"Authorization": SECRET})
            async with client.http.delete(client.url + "/sessions/a") as answer:
                assert answer.status == 404
            async with client.http.delete(client.url + "/sessions/a", headers={"Authorization": SECRET}) as answer:
                assert answer.status == 204

    runs(body)


def test_turns_that_continue_each_other_are_one_session() -> None:
    async def body() -> None:
        async with pair() as (behind, client):
            first = [{"role": "user", "content": "a"}]
            second = [*first, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
            for messages in (first, second):
                answer = await client.post("/v1/chat/completions", json={"messages": messages, "user": "u"})
                assert answer.status == 200
            other = asyncio.ensure_future(client.post("/v1/chat/completions", json={"messages": first, "user": "u"}))
            await client.until("waiting_sessions", 1)
            assert len(behind.asked) == 2
            assert (await client.numbers())["known_sessions"] == 2
            other.cancel()
            # Its client left; the same prompt claims its place.
            await client.until("in_flight_requests", 0)
            await client.until('requests_total{code="499"}', 1)
            again = asyncio.ensure_future(client.post("/v1/chat/completions", json={"messages": first}))
            await asyncio.sleep(0.05)
            assert (await client.numbers())["known_sessions"] == 2
            again.cancel()
            await client.until('requests_total{code="499"}', 2)

    runs(body)


def test_a_retry_replaces_and_the_older_request_is_told_not_to_come_again() -> None:
    async def body() -> None:
        async with pair() as (_, client):
            await client.complete("a")
            older = asyncio.ensure_future(client.complete("b"))
            await client.until("waiting_sessions", 1)
            newer = asyncio.ensure_future(client.complete("b"))
            answer = await older
            assert answer.status == 409
            assert answer.headers["X-Should-Retry"] == "false"
            async with client.http.delete(client.url + "/sessions/a"):
                pass
            assert (await newer).status == 200
            assert (await client.numbers())['refused_total{reason="gate_replaced"}'] == 1

    runs(body)


def test_an_overflow_is_told_as_openai_clients_read_it() -> None:
    async def body() -> None:
        async with pair(max_waiting=1) as (_, client):
            await client.complete("a")
            waiting = asyncio.ensure_future(client.complete("b"))
            await client.until("waiting_sessions", 1)
            answer = await client.complete("c")
            assert answer.status == 429
            assert answer.headers["Retry-After"] == "30"
            error = (await answer.json())["error"]
            assert error["code"] == "gate_queue_full"
            assert error["type"] == "gate_error"
            assert error["message"]
            numbers = await client.numbers()
            assert numbers['refused_total{reason="gate_queue_full"}'] == numbers['requests_total{code="429"}'] == 1
            client.stop.tell()
            stopped = await waiting
            assert (stopped.status, stopped.headers["Retry-After"]) == (503, "30")

    runs(body)


def test_a_client_that_leaves_ends_the_engines_work() -> None:
    async def body() -> None:
        async with pair() as (behind, client):
            behind.open.clear()
            asking = asyncio.ensure_future(client.complete("a"))
            await client.until("in_flight_requests", 1)
            asking.cancel()
            await client.until("in_flight_requests", 0)
            async with asyncio.timeout(10):
                while not behind.cancelled:
                    await asyncio.sleep(0.01)
            assert (await client.numbers())['requests_total{code="499"}'] == 1

    runs(body)


def test_a_body_too_large_is_refused() -> None:
    async def body() -> None:
        async with pair(max_body_bytes=1000) as (behind, client):
            answer = await client.post("/v1/completions", data=b"x" * 1001)
            assert answer.status == 413
            assert (await answer.json())["error"]["code"] == "gate_body_too_large"
            assert (await client.post("/v1/completions", data=b"x" * 1000)).status == 200
            assert len(behind.asked) == 1

    runs(body)


def test_an_engine_that_is_not_there_breaks_off_or_is_silent_is_told_in_words() -> None:
    async def odd(request: web.Request) -> web.StreamResponse:
        if request.headers["X-Session-Id"] == "silent":
            await asyncio.sleep(30)
        if request.headers["X-Session-Id"] in ("streams", "half"):
            length = {"Content-Length": "9"} if request.headers["X-Session-Id"] == "half" else {}
            response = web.StreamResponse(headers=length)
            await response.prepare(request)
            await response.write(b"half")
        assert request.transport
        request.transport.abort()
        return web.Response()

    async def body() -> None:
        async with engine(odd) as url, gate(url, cap=9, upstream_timeout_s=0.2) as client:
            for name, status, code, times in (
                ("broken", 502, "gate_engine_broke_off", 1),
                ("half", 502, "gate_engine_broke_off", 2),
                ("silent", 504, "gate_engine_silent", 1),
            ):
                answer = await client.complete(name)
                assert (answer.status, (await answer.json())["error"]["code"]) == (status, code)
                assert (await client.numbers())[f'upstream_errors_total{{reason="{code}"}}'] == times
            with pytest.raises(aiohttp.ClientError):
                await client.complete("streams")
            await client.until("in_flight_requests", 0)
        async with gate("http://127.0.0.1:1") as client:
            answer = await client.complete("a")
            assert (answer.status, (await answer.json())["error"]["code"]) == (502, "gate_engine_unreachable")
            async with client.http.get(client.url + "/v1/models") as passed:
                assert passed.status == 502

    runs(body)


def test_running_streams_finish_and_waiting_requests_get_503_at_the_end() -> None:
    async def body() -> None:
        async with pair() as (behind, client):
            behind.open.clear()
            running = asyncio.ensure_future(client.complete("a"))
            await client.until("in_flight_requests", 1)
            waiting = asyncio.ensure_future(client.complete("b"))
            await client.until("waiting_sessions", 1)
            client.stop.tell()
            assert (await waiting).status == 503
            assert not running.done()
            behind.open.set()
            assert (await running).status == 200

    runs(body)


def test_what_does_not_finish_is_cut_off_in_the_end() -> None:
    async def body() -> None:
        async with pair(drain_s=0.0) as (behind, client):
            behind.open.clear()
            running = asyncio.ensure_future(client.complete("a"))
            await client.until("in_flight_requests", 1)
            client.stop.tell()
            with pytest.raises(aiohttp.ClientError):
                await running

    runs(body)


def test_an_authorization_appears_nowhere(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[str] = []

    async def body() -> None:
        async with pair(write=told.append, max_waiting=1) as (_, client):
            headers = {"Authorization": SECRET}
            await client.complete("a", headers=headers)
            waiting = asyncio.ensure_future(client.complete("b", headers=headers))
            await client.until("waiting_sessions", 1)
            shown = [await (await client.complete("c", headers=headers)).text()]
            for path in ("/gate/metrics", "/gate/sessions"):
                async with client.http.get(client.url + path, headers=headers) as answer:
                    shown.append(await answer.text())
            host, port = client.url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"POST /v1/completions HTTP/1.1\r\nAuthorization : Bearer sk-very-secret\r\n\x00: x\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.0 400")
            writer.close()
            await writer.wait_closed()
            waiting.cancel()
            assert not [text for text in (*shown, *told) if "very-secret" in text]
            keys = {session["session"] for session in json.loads(shown[2])["sessions"]}
            assert {json.loads(line)["session"] for line in told} <= {None, *keys} | {json.loads(told[-1])["session"]}

    runs(body)
    assert [json.loads(line)["event"] for line in told][:3] == ["engaged", "admitted", "refused"]
    out, err = capfd.readouterr()
    assert "very-secret" not in out + err + caplog.text


def test_an_address_that_is_taken_is_an_error_in_words() -> None:
    async def body() -> None:
        async with pair() as (_, client):
            port = int(client.url.rpartition(":")[2])
            with pytest.raises(TrapError, match="in use"):
                async with gate("http://127.0.0.1:1", port=port):
                    pass

    runs(body)


@pytest.mark.parametrize(
    "url", ["a:80", "ftp://a", "http://", "http://me:pass@a", "http://a?b", "http://a:0", "http://a:x", "http://a b"]
)
def test_what_is_no_engines_address_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(TrapError) as caught:
        checked_upstream(url)
    assert "pass" not in caught.value.diagnostics()


def test_an_engines_address_may_have_a_path() -> None:
    assert checked_upstream("http://[::1]:8000/base/") == "http://[::1]:8000/base"
