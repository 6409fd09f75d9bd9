"""An engine that computes nothing: takes vLLM's completions, notes when, answers at once.

`python benchmarks/null_server.py [--port 0] [--service-s 0] [--core N] [--receipts FILE]`
prints `listening on URL`. It stands where an engine would, so that what a load
generator adds can be seen: for each turn, on `time.monotonic()`, which all
processes of a machine share, when its first byte was read and when its body was
whole. These times are the server's: a byte may have waited in a socket while the
server was at work elsewhere, so its own CPU time is told beside them.

The answer is vLLM's: an event a token, the first with the prompt's ids echoed
where `return_token_ids` is asked, the last with the usage, `[DONE]`; all of it
in two writes. Nothing is parsed as JSON: counts are read off the bytes.

GET /receipts   JSON lines, as in FILE at SIGTERM: [session, turn, first_byte_s, whole_s, answered_s, prompt_tokens]
DELETE /receipts  forgets them, and the sessions' counts of turns
GET /load       {"turns", "wall_s", "cpu_s"} since the last DELETE
GET /health     200; everything else 404
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import os
import re
import signal
import time
from pathlib import Path
from typing import NamedTuple

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
_SESSION = re.compile(rb"(?i)\r\nx-session-id: *([^\r\n]*)")
_MAX_TOKENS = re.compile(rb'"max_tokens" ?: ?(\d+)')
_PROMPT = re.compile(rb'"prompt" ?: ?[\["]')
_NOT_FOUND, _NO_LENGTH = b"404 Not Found", b"411 Length Required"
MOST_OUTPUT_TOKENS = 4096


class Receipt(NamedTuple):
    """One turn as the server saw it; seconds on the machine's monotonic clock."""

    session: str
    turn: int
    first_byte_s: float
    whole_s: float
    answered_s: float
    prompt_tokens: int


class Receipts:
    """All turns since the last time they were forgotten."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.rows: list[Receipt] = []
        self.turns: dict[str, int] = {}
        self.zero_s, self.zero_cpu_s = time.monotonic(), time.process_time()

    def lines(self) -> bytes:
        """Every receipt, a JSON line each."""
        return b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in self.rows)

    def load(self) -> bytes:
        """How busy the server was, as JSON."""
        wall_s, cpu_s = time.monotonic() - self.zero_s, time.process_time() - self.zero_cpu_s
        return json.dumps({"turns": len(self.rows), "wall_s": wall_s, "cpu_s": cpu_s}).encode()


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(fields: bytes) -> bytes:
    """One event of vLLM's stream."""
    return b'data: {"id":"cmpl-null","object":"text_completion","created":1,"model":"m","choices":[%b}\n\n' % fields


def token_event(prompt_ids: bytes, last: bool) -> bytes:
    """The event of one output token; `prompt_ids` is `null` or a list."""
    choice = b'{"index":0,"text":" x","logprobs":null,"finish_reason":%b,"stop_reason":null,'
    ids = b'"prompt_token_ids":%b,"token_ids":[7]}]'
    return event(choice % (b'"length"' if last else b"null") + ids % prompt_ids)


@functools.lru_cache(maxsize=256)
def later_events(output_tokens: int) -> bytes:
    """The events of all output tokens but the first."""
    return b"".join(token_event(b"null", index == output_tokens) for index in range(2, output_tokens + 1))


def end_events(prompt_tokens: int, output_tokens: int) -> bytes:
    """The usage, and the end. No prefix is ever cached here."""
    counts = (prompt_tokens, prompt_tokens + output_tokens, output_tokens)
    usage = b'],"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d' % counts
    return event(usage + b',"prompt_tokens_details":{"cached_tokens":0}}') + b"data: [DONE]\n\n"


def prompt_of(body: bytes) -> tuple[bytes, int]:
    """The bytes between the prompt's brackets (or quotes), and its tokens: one more than commas."""
    found = _PROMPT.search(body)
    if found is None:
        return b"", 0
    end = body.find(b"]" if body[found.end() - 1 : found.end()] == b"[" else b'"', found.end())
    ids = body[found.end() : end]
    return ids, ids.count(b",") + 1


class NullEngine(asyncio.Protocol):
    """One connection; requests one after the other, as HTTP/1.1 clients send them."""

    def __init__(self, receipts: Receipts, service_s: float) -> None:
        self._receipts = receipts
        self._service_s = service_s
        self._data = bytearray()
        self._first_byte_s = 0.0
        self._wanted = 0
        self._session = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio's."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """asyncio's: bytes of a request, however they were cut."""
        if not self._data:
            self._first_byte_s = time.monotonic()
        self._data += data
        if not self._wanted:
            self._read_head()
        if self._wanted and len(self._data) >= self._wanted:
            body = bytes(memoryview(self._data)[self._body_at : self._wanted])
            # A client that sends its next request before this answer is not served.
            self._data.clear()
            self._wanted = 0
            self._turn(body)

    def _read_head(self) -> None:
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(memoryview(self._data)[: end + 2])
        if not head.startswith(b"POST /v1/completions"):
            self._data.clear()
            self._control(head.split(b" ", 2))
            return
        length = _LENGTH.search(head)
        if length is None:
            self._plain(b"", _NO_LENGTH)
            return
        session = _SESSION.search(head)
        self._session = session[1].decode("latin-1") if session else ""
        self._body_at = end + 4
        self._wanted = self._body_at + int(length[1])

    def _control(self, words: list[bytes]) -> None:
        receipts = self._receipts
        if words[:2] == [b"GET", b"/receipts"]:
            self._plain(receipts.lines())
        elif words[:2] == [b"DELETE", b"/receipts"]:
            receipts.forget()
            self._plain(b"")
        elif words[:2] == [b"GET", b"/load"]:
            self._plain(receipts.load())
        else:
            self._plain(b"", b"200 OK" if words[:2] == [b"GET", b"/health"] else _NOT_FOUND)

    def _plain(self, body: bytes, status: bytes = b"200 OK") -> None:
        self._transport.write(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))

    def _turn(self, body: bytes) -> None:
        whole_s = time.monotonic()
        if self._service_s:
            loop = asyncio.get_running_loop()
            loop.call_later(self._service_s, self._answer, body, self._session, self._first_byte_s, whole_s)
        else:
            self._answer(body, self._session, self._first_byte_s, whole_s)

    def _answer(self, body: bytes, session: str, first_byte_s: float, whole_s: float) -> None:
        if self._transport.is_closing():
            return
        ids, prompt_tokens = prompt_of(body)
        asked = _MAX_TOKENS.search(body[-1000:]) or _MAX_TOKENS.search(body)
        output_tokens = min(int(asked[1]) if asked else 16, MOST_OUTPUT_TOKENS)
        echo = b"[" + ids + b"]" if b'"return_token_ids"' in body[-1000:] else b"null"
        self._transport.write(_HEAD + chunk(token_event(echo, output_tokens == 1)))
        rest = chunk(later_events(output_tokens) + end_events(prompt_tokens, output_tokens))
        self._transport.write(rest + b"0\r\n\r\n")
        turns = self._receipts.turns
        turn = turns[session] = turns.get(session, 0) + 1
        self._receipts.rows.append(Receipt(session, turn, first_byte_s, whole_s, time.monotonic(), prompt_tokens))


async def serve(port: int, service_s: float, receipts_file: Path | None) -> None:
    """Serve until SIGTERM or SIGINT; then write the receipts."""
    loop, ended, receipts = asyncio.get_running_loop(), asyncio.Event(), Receipts()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    server = await loop.create_server(lambda: NullEngine(receipts, service_s), "127.0.0.1", port, backlog=4096)
    print(f"listening on http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await ended.wait()
    server.close()
    if receipts_file:
        receipts_file.write_bytes(receipts.lines())


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--service-s", type=float, default=0.0, help="how long each answer takes")
    parser.add_argument("--core", type=int, help="run on this core alone")
    parser.add_argument("--receipts", type=Path, help="written at SIGTERM")
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    asyncio.run(serve(options.port, options.service_s, options.receipts))


if __name__ == "__main__":
    main()
