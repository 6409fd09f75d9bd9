"""A stub of GitHub's API: a real HTTP server on loopback, in GitHub's form.

`tests/registry/test_github_stub.py` holds what it answers against GitHub's
published description.
"""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.registry import github_forms as forms

Ancestry = Callable[[str, str], bool | None]


class GitHubStub:
    """One repository on a stubbed GitHub; a context manager.

    `prefix` is that of an Enterprise base, `/api/v3`. `rows` are activity
    rows, newest first. `ancestor(a, b)` says whether `a` is in the history of
    `b`, None for an unknown commit. Each entry of `faults` answers one request
    in the stub's place. `asked` lists what was asked, as
    (verb, path, Authorization).
    """

    def __init__(
        self, repository: str = "octo/study", number: int = 1296269, token: str | None = None, prefix: str = ""
    ) -> None:
        self.repository = repository
        self.number = number
        self.token = token
        self.read_only = False
        self.rows: list[dict[str, Any]] = []
        self.statuses: dict[str, list[dict[str, Any]]] = {}
        self.bundles: dict[str, list[dict[str, Any]]] = {}
        self.status_time = "2026-01-01T00:00:00Z"
        self.ancestor: Ancestry = lambda commit, head: None
        self.faults: deque[Callable[[BaseHTTPRequestHandler], None]] = deque()
        self.asked: list[tuple[str, str, str | None]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.api = f"http://127.0.0.1:{self._server.server_address[1]}{prefix}"
        self._prefix = prefix

    def __enter__(self) -> GitHubStub:
        threading.Thread(target=self._server.serve_forever, args=(0.002,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def push(self, after: str, time: str, *, before: str = "0" * 40, ref: str = "main", kind: str = "push") -> None:
        """Log one push to a branch."""
        self.rows.insert(0, forms.activity(len(self.rows) + 1, before, after, f"refs/heads/{ref}", time, kind))

    def follow(self, bare: Path) -> None:
        """Show the pushes and the history of a real bare repository with the local witness's hook."""
        log = (bare / "trap-witness/push-log.jsonl").read_text().splitlines()
        logged = [json.loads(line) for line in log]
        keys = ("id", "before", "after", "ref", "timestamp", "activity_type")
        branches = [row for row in logged if row["ref"].startswith("refs/heads/")]
        self.rows = [forms.activity(*(row[key] for key in keys)) for row in reversed(branches)]

        def ancestor(commit: str, head: str) -> bool | None:
            asked = ["git", "-C", str(bare), "merge-base", "--is-ancestor", commit, head]
            found = subprocess.run(asked, check=False, capture_output=True)
            return {0: True, 1: False}.get(found.returncode)

        self.ancestor = ancestor

    def answer(self, verb: str, url: str, content: Any) -> tuple[int, Any, dict[str, str]]:
        """Status, JSON and headers for one request."""
        parts = urlsplit(url)
        below = (f"/repos/{self.repository}", f"/repositories/{self.number}")
        roots = [self._prefix + each for each in below]
        root = next((each for each in roots if parts.path == each or parts.path.startswith(f"{each}/")), None)
        if root is None:
            return 404, forms.error("Not Found"), {}
        rest = parts.path[len(root) :]
        if verb == "POST":
            return self._post(rest, content)
        if rest == "":
            return 200, forms.repository(self.repository, self.number), {}
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if rest == "/activity":
            return self._page(self.rows, rest, query)
        if match := re.fullmatch(r"/compare/(\w+)\.\.\.(\w+)", rest):
            return self._compare(match[1], match[2])
        if match := re.fullmatch(r"/commits/(\w+)/statuses", rest):
            return self._page(self.statuses.get(match[1], []), rest, query)
        if match := re.fullmatch(r"/attestations/([\w:]+)", rest):
            found = [{"bundle": bundle, "repository_id": self.number} for bundle in self.bundles.get(match[1], [])]
            return 200, {"attestations": found}, {}
        return 404, forms.error("Not Found"), {}

    def _page(self, items: list[Any], rest: str, query: dict[str, str]) -> tuple[int, Any, dict[str, str]]:
        size, start = int(query.get("per_page", "30")), int(query.get("after", "0"))
        headers = {}
        if start + size < len(items):
            target = f"{self.api}/repositories/{self.number}{rest}?per_page={size}&after={start + size}"
            headers["Link"] = f'<{target}>; rel="next", <{self.api}>; rel="first"'
        return 200, items[start : start + size], headers

    def _compare(self, base: str, head: str) -> tuple[int, Any, dict[str, str]]:
        forward, backward = self.ancestor(base, head), self.ancestor(head, base)
        if forward is None or backward is None:
            return 404, forms.error("Not Found"), {}
        status = "ahead" if forward else "behind" if backward else "diverged"
        merge_base = base if forward else head if backward else "f" * 40
        return 200, forms.comparison(base, head, merge_base, status), {}

    def _post(self, rest: str, content: Any) -> tuple[int, Any, dict[str, str]]:
        match = re.fullmatch(r"/statuses/(\w+)", rest)
        if not match:
            return 404, forms.error("Not Found"), {}
        if self.read_only:
            return 403, forms.error("Resource not accessible by personal access token"), {}
        number = sum(map(len, self.statuses.values())) + 1
        made = forms.status(number, match[1], content["context"], content["description"], self.status_time)
        self.statuses.setdefault(match[1], []).insert(0, made)
        return 201, made, {}


def _handler(stub: GitHubStub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            authorization = self.headers.get("Authorization")
            stub.asked.append((self.command, self.path, authorization))
            length = int(self.headers.get("Content-Length") or 0)
            content = json.loads(self.rfile.read(length)) if length else None
            if stub.faults:
                stub.faults.popleft()(self)
            elif stub.token and authorization != f"token {stub.token}":
                reply(401, forms.error("Bad credentials"))(self)
            else:
                status, body, headers = stub.answer(self.command, self.path, content)
                reply(status, body, **headers)(self)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    return Handler


def reply(status: int, body: Any, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """A fault, or any answer: JSON of a value, or text or bytes as they are. `_` in a header's name is `-`."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        data = (
            body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        )
        handler.send_response(status)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in ({"Content-Type": "application/json", "Content-Length": str(len(data))} | named).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    return send


def raw(data: bytes) -> Callable[[BaseHTTPRequestHandler], None]:
    """A fault: these very bytes on the wire, then the end of the connection."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(data)
        handler.close_connection = True

    return send
