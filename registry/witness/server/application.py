"""The server's WSGI application: which path gets which answer.

```
/                                        what this is, for people
/<owner>/<name>.git/...                  git's smart HTTP
/api/v3/repos/<owner>/<name>[/activity]  GitHub's forms
/witness/key                             the public key
/witness/<owner>/<name>/log, checkpoint  the log, and the key's word on it
```
No answer holds a traceback, a path of this machine or the token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

from registry.errors import TrapError
from registry.plain_text import plain
from registry.ssh_signature import public_text
from registry.timestamps import timestamp
from registry.witness.checkpoint import sign_checkpoint
from registry.witness.rows import PushRow
from registry.witness.server.activity import activity_page
from registry.witness.server.answers import Answer, Refused, json_answer, text, whole
from registry.witness.server.authentication import Gate
from registry.witness.server.git_backend import serve_git
from registry.witness.server.reconciliation import Busy, push_lock, read_log, reconcile, rows_in, size_kilobytes
from registry.witness.server.repositories import Repository, WitnessFolder
from registry.witness.server.repository_form import repository_form

_HOST = re.compile(r"[A-Za-z0-9._:\[\]-]{1,255}")
_SERVICES = ("git-upload-pack", "git-receive-pack")
_ABOUT = """\
A witness server of trapkit: git repositories whose pushes are logged.

Branches only move forward, tags never move, nothing is deleted. Each push is
a row of a log; each row holds the digest of the row before. The key below
signs how long the log is and how it ends.

{key}

/witness/OWNER/NAME/log and /witness/OWNER/NAME/checkpoint are for auditors,
/api/v3/repos/OWNER/NAME/activity shows the branches in GitHub's form.
"""


class Application:
    """WSGI over a folder. `say` receives one line for each push and trouble;
    `url` is how clients reach the server where a proxy stands before it.
    """

    def __init__(
        self, folder: WitnessFolder, gate: Gate, *, say: Callable[[str], None], url: str | None = None
    ) -> None:
        self._folder = folder
        self._gate = gate
        self._say = say
        self._url = url.rstrip("/") if url else None
        self._key = folder.key()
        self.public_key = public_text(self._key)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """One request, by PEP 3333."""
        answer = self._answer(environ)
        start_response(answer.status_line, list(answer.headers))
        if environ["REQUEST_METHOD"] == "HEAD":
            getattr(answer.body, "close", lambda: None)()
            return []
        return answer.body

    def _answer(self, environ: Mapping[str, Any]) -> Answer:
        path = str(environ.get("PATH_INFO", ""))
        try:
            return self._route(path.removeprefix("/").split("/"), environ)
        except Refused as refused:
            answer = refused
        except TrapError as error:
            self._say(f"trouble: {plain(error.where)}: {plain(error)}")
            answer = Refused(503, "the witness cannot answer for this repository: its operator knows why")
        except Exception as error:  # whatever it is, the client gets one sentence
            self._say(f"trouble: {plain(path, 200)}: {type(error).__name__}: {plain(error, 400)}")
            answer = Refused(500, "the witness failed")
        return answer.answer(as_json=path.startswith("/api/"), documentation_url=f"{self._base(environ)}/")

    def _route(self, parts: list[str], environ: Mapping[str, Any]) -> Answer:
        match parts:
            case [""]:
                return self._reading(environ, lambda: text(200, _ABOUT.format(key=self.public_key)), open_to_all=True)
            case ["witness", "key"]:
                return self._reading(environ, lambda: text(200, f"{self.public_key}\n"), open_to_all=True)
            case ["witness", owner, name, "log"]:
                return self._reading(environ, lambda: self._log(self._current(owner, name)))
            case ["witness", owner, name, "checkpoint"]:
                return self._reading(environ, lambda: self._checkpoint(self._current(owner, name)))
            case ["api", "v3", "repos", owner, name]:
                return self._reading(environ, lambda: self._repository(self._current(owner, name), environ))
            case ["api", "v3", "repos", owner, name, "activity"]:
                return self._reading(environ, lambda: self._activity(self._current(owner, name), environ))
            case [owner, bare, *rest] if bare.endswith(".git"):
                return self._git(owner, bare.removesuffix(".git"), "/".join(rest), environ)
        raise Refused(404, "Not Found")

    def _reading(
        self, environ: Mapping[str, Any], answer: Callable[[], Answer], *, open_to_all: bool = False
    ) -> Answer:
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            raise Refused(405, "Method Not Allowed", ("Allow", "GET, HEAD"))
        if not open_to_all:
            self._gate.check(str(environ.get("HTTP_AUTHORIZATION", "")), pushing=False)
        return answer()

    def _git(self, owner: str, name: str, rest: str, environ: Mapping[str, Any]) -> Answer:
        method, asked = environ["REQUEST_METHOD"], str(environ.get("QUERY_STRING", ""))
        service = asked.removeprefix("service=") if rest == "info/refs" else rest
        if service not in _SERVICES:
            raise Refused(404, "not found: this server speaks git's smart HTTP only")
        if method != ("GET" if rest == "info/refs" else "POST"):
            raise Refused(405, "Method Not Allowed", ("Allow", "GET" if rest == "info/refs" else "POST"))
        pushing = service == "git-receive-pack"
        self._gate.check(str(environ.get("HTTP_AUTHORIZATION", "")), pushing=pushing)
        repository = self._current(owner, name) if rest == "info/refs" else self._found(owner, name)
        before = len(self._rows(repository)) if pushing and rest != "info/refs" else 0
        answer = serve_git(repository, self._folder.repositories, rest, environ)
        if pushing and rest != "info/refs":
            after = len(self._rows(repository))
            if after > before:
                self._say(f"{timestamp(datetime.now(UTC))} {repository.full_name}: pushed, now {after} rows")
        return answer

    def _found(self, owner: str, name: str) -> Repository:
        repository = self._folder.find(owner, name)
        if repository is None:
            raise Refused(404, "Not Found")
        return repository

    def _current(self, owner: str, name: str) -> Repository:
        """The repository, with its log brought up to its refs, unless a push
        is doing so right now.
        """
        repository = self._found(owner, name)
        try:
            with push_lock(repository, 0.0):
                reconcile(repository)
        except Busy:
            pass
        except TrapError as error:
            self._say(f"trouble: {plain(error.where)}: {plain(error)}")
        return repository

    def _rows(self, repository: Repository) -> tuple[PushRow, ...]:
        return rows_in(read_log(repository), repository.full_name)

    def _log(self, repository: Repository) -> Answer:
        return whole(200, "application/jsonl", read_log(repository))

    def _checkpoint(self, repository: Repository) -> Answer:
        return whole(200, "application/json", sign_checkpoint(self._key, repository.full_name, read_log(repository)))

    def _repository(self, repository: Repository, environ: Mapping[str, Any]) -> Answer:
        size = size_kilobytes(repository)
        private = self._gate.private
        rows = self._rows(repository)
        return json_answer(repository_form(repository, rows, self._base(environ), private=private, size_kilobytes=size))

    def _activity(self, repository: Repository, environ: Mapping[str, Any]) -> Answer:
        try:
            asked = dict(parse_qsl(str(environ.get("QUERY_STRING", "")), max_num_fields=20))
        except ValueError:
            raise Refused(422, "Invalid query") from None
        page = activity_page(self._rows(repository), repository.id, asked, datetime.now(UTC))
        url = f"{self._base(environ)}/api/v3/repos/{repository.full_name}/activity"
        return json_answer(page.rows, *page.link_header(url))

    def _base(self, environ: Mapping[str, Any]) -> str:
        """The URL that the client used, without a path."""
        host = str(environ.get("HTTP_HOST", ""))
        if not _HOST.fullmatch(host):
            host = f"{environ.get('SERVER_NAME')}:{environ.get('SERVER_PORT')}"
        return self._url or f"{environ.get('wsgi.url_scheme', 'http')}://{host}"
