"""GitHub as a witness: its log of pushes, commit statuses and attestations.

The token comes from the environment, goes to the API's own host only, and
stands in no answer, error, log or archive.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from registry.errors import WitnessError
from registry.witness.api_base import parse_api_base
from registry.witness.github_answers import (
    OBJECT_ID,
    REPOSITORY,
    Answer,
    Status,
    collect_rows,
    parse_activity,
    parse_attestations,
    parse_comparison,
    parse_repository,
    parse_status,
    parse_statuses,
)
from registry.witness.github_paths import next_link, question_of
from registry.witness.github_refusals import Limits
from registry.witness.github_transport import TOKEN, Transport
from registry.witness.rows import PushRow

_SUBJECT = re.compile(r"sha1:[0-9a-f]{40}|sha256:[0-9a-f]{64}")
_MAX_DESCRIPTION = 140
_BETWEEN_WRITES_S = 1.0
_T = TypeVar("_T")


def token_from_environment() -> str | None:
    """The token in TRAP_GITHUB_TOKEN, GITHUB_TOKEN or GH_TOKEN, the first that is set."""
    for name in ("TRAP_GITHUB_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"):
        if token := os.environ.get(name, "").strip():
            if not TOKEN.fullmatch(token):
                raise WitnessError("the token has characters that no token has", where=name)
            return token
    return None


class GitHubClient:
    """One repository on one GitHub API, `https://api.github.com` or an Enterprise base.

    `answers` holds every answer that was used, in order. Methods raise
    WitnessError where GitHub gives no answer within `limits`; of such a call
    nothing is kept. `sleep` and `clock` (Unix seconds) serve pauses only.
    """

    def __init__(
        self,
        api: str,
        repository: str,
        token: str | None,
        *,
        limits: Limits = Limits(),  # noqa: B008
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not REPOSITORY.fullmatch(repository):
            raise WitnessError("not a repository's name", value=repository, remedy="write it as owner/name")
        self._base = parse_api_base(api)
        self._transport = Transport(self._base, token, limits, sleep, clock)
        self._limits, self._sleep = limits, sleep
        self._writes = 0
        self.api = api
        self.repository = repository
        self.answers: list[Answer] = []

    def __repr__(self) -> str:
        return f"GitHubClient({self.api!r}, {self.repository!r})"

    def repository_id(self) -> int:
        """The repository's number, which stays when it is renamed."""
        answer = self._one("", (200,))
        return self._keep([answer], parse_repository(answer.body, self._where(answer))).id

    def activity(self) -> list[PushRow]:
        """Every row of the activity log, branches only, in the order served: newest first."""
        pages = self._pages("/activity", (200,))
        rows = collect_rows((parse_activity(page.body, self._where(page)) for page in pages), self._where(pages[0]))
        return self._keep(pages, rows)

    def contains(self, commit: str, head: str) -> bool | None:
        """Whether `commit` is `head` or an ancestor of it.

        None where GitHub does not know one of them, or they share no history.
        Asks for the second page: the first carries all changed files.
        """
        _check(OBJECT_ID, commit, head)
        if commit == head:
            return True
        answer = self._one(f"/compare/{commit}...{head}?page=2&per_page=1", (200, 404))
        if answer.status == 404:
            return self._keep([answer], None)
        comparison = parse_comparison(answer.body, self._where(answer))
        if comparison.base != commit:
            raise WitnessError("GitHub compared another commit", where=self._where(answer), value=comparison.base)
        return self._keep([answer], comparison.contained)

    def statuses(self, sha: str) -> list[Status]:
        """The statuses of a commit, newest first; none where GitHub does not know the commit."""
        _check(OBJECT_ID, sha)
        pages = self._pages(f"/commits/{sha}/statuses", (200, 404, 422))
        known = [page for page in pages if page.status == 200]
        found = [status for page in known for status in parse_statuses(page.body, self._where(page), sha)]
        return self._keep(pages, found)

    def post_status(self, sha: str, context: str, description: str) -> Status | None:
        """Post a `success` status on a commit; None where that is not allowed.

        Without a token nothing is sent. A description is cut to the 140
        characters that GitHub takes.
        """
        _check(OBJECT_ID, sha)
        if not self._transport.authenticated:
            return None
        if self._writes:
            self._sleep(_BETWEEN_WRITES_S)
        self._writes += 1
        content = {"state": "success", "context": context, "description": description[:_MAX_DESCRIPTION]}
        answer = self._one(f"/statuses/{sha}", (201, 403, 404), "POST", content)
        status = parse_status(answer.body, self._where(answer), sha) if answer.status == 201 else None
        return self._keep([answer], status)

    def attestations(self, subject_digest: str) -> list[dict[str, Any]]:
        """The sigstore bundles that GitHub holds for `sha1:...` or `sha256:...`, unverified."""
        _check(_SUBJECT, subject_digest)
        pages = self._pages(f"/attestations/{subject_digest}", (200, 404))
        known = [page for page in pages if page.status == 200]
        return self._keep(
            pages, [bundle for page in known for bundle in parse_attestations(page.body, self._where(page))]
        )

    def _one(
        self, rest: str, accept: tuple[int, ...], verb: str = "GET", content: dict[str, str] | None = None
    ) -> Answer:
        path = f"/repos/{self.repository}{rest}"
        reply = self._transport.ask(path, accept, verb, content)
        return Answer(path, reply.status, reply.body)

    def _pages(self, rest: str, accept: tuple[int, ...]) -> list[Answer]:
        """Every page of a list, by the cursors in Link."""
        path = f"/repos/{self.repository}{rest}?per_page=100"
        asked = question_of(path)
        pages: dict[str, Answer] = {}
        while path not in pages:
            reply = self._transport.ask(path, accept)
            pages[path] = Answer(path, reply.status, reply.body)
            link = next_link(reply.headers.get("link", ""))
            if link is None or reply.status != 200:
                return list(pages.values())
            target = self._base.relative(link)
            if target is None or asked is None or not asked.same(question_of(target)):
                raise WitnessError(
                    "GitHub's next page is not one of what was asked", where=self._base.url(path), value=link[:200]
                )
            if len(pages) == self._limits.pages:
                raise WitnessError(
                    f"GitHub's answer has more than {self._limits.pages} pages", where=self._base.url(path)
                )
            path = target
        raise WitnessError("GitHub's pages lead in circles", where=self._base.url(path))

    def _where(self, answer: Answer) -> str:
        return self._base.url(answer.path)

    def _keep(self, answers: Sequence[Answer], found: _T) -> _T:
        self.answers += answers
        return found


def _check(form: re.Pattern[str], *values: str) -> None:
    for value in values:
        if not form.fullmatch(value):
            raise WitnessError("not an object id or digest", value=value)
