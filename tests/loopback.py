"""A real HTTP server on this machine's loopback, answered by a function."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: bytes = b""
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None
    """A Content-Length that lies."""


@dataclass(frozen=True)
class Question:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class LoopbackServer:
    """Serves `answer(question)`; keeps every question asked."""

    def __init__(self, answer: Callable[[Question], Answer]) -> None:
        self.questions: list[Question] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def handle_one(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                question = Question(self.command, self.path, dict(self.headers), self.rfile.read(size))
                server.questions.append(question)
                said = answer(question)
                self.send_response(said.status)
                self.send_header("Content-Type", said.kind)
                self.send_header("Content-Length", str(len(said.body) if said.length is None else said.length))
                for name, value in said.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    self.wfile.write(said.body)
                except OSError:
                    self.close_connection = True

            do_GET = do_POST = handle_one

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
