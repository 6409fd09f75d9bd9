"""Asks GitHub one question at a time, and waits within bounds.

PyGithub builds and signs the requests; its own waits and retries are off, the
connection underneath is ours (`capped_http`), and all waiting is done here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from registry.errors import WitnessError
from registry.witness.api_base import ApiBase
from registry.witness.capped_http import CappedConnection, Reply, Unanswered, within
from registry.witness.github_refusals import Limits, Pause, backoff_s, gave_up, pause_for, refusal

TOKEN = re.compile(r"[!-~]{1,512}")
_HEADERS = {"Accept": "application/vnd.github+json"}
_API_VERSION = "2022-11-28"


class Transport:
    """Questions to one API base, with one budget of waits and bytes for all of them.

    `sleep` waits seconds, `clock` gives Unix seconds; both only for pauses.
    """

    def __init__(
        self,
        base: ApiBase,
        token: str | None,
        limits: Limits,
        sleep: Callable[[float], None],
        clock: Callable[[], float],
    ) -> None:
        if token is not None and not TOKEN.fullmatch(token):
            raise WitnessError("the token has characters that no token has")
        self.authenticated = token is not None
        self._base = base
        self._limits, self._sleep, self._clock = limits, sleep, clock
        self._waited_s = 0.0
        self._bytes = 0
        self._connection = CappedConnection(
            base,
            timeouts_s=(limits.connect_s, limits.read_s),
            body_bytes=limits.body_bytes,
            answer_s=limits.answer_s,
            secret=token,
        )
        self._requester = _requester(base, token)

    def ask(
        self, path: str, accept: tuple[int, ...], verb: str = "GET", content: dict[str, str] | None = None
    ) -> Reply:
        """The reply to a path below the base, its status one of `accept`.

        Raises WitnessError for every other end.
        """
        where = self._base.url(path)
        for attempt in range(self._limits.tries):
            found = self._once(path, attempt, where, verb, content)
            if isinstance(found, Reply):
                return self._kept(found, accept, where)
            last = attempt == self._limits.tries - 1
            if last or self._waited_s + found.wait_s > self._limits.wait_s:
                raise gave_up(found, where)
            self._waited_s += found.wait_s
            self._sleep(found.wait_s)
        raise AssertionError("no try was allowed")

    def _once(self, path: str, attempt: int, where: str, verb: str, content: dict[str, str] | None) -> Reply | Pause:
        def exchange() -> None:
            self._requester.requestJson(
                verb,
                path,
                headers=dict(_HEADERS),
                input=content,
                cnx=self._connection,
            )

        self._connection.last = None
        try:
            within(self._limits.answer_s, exchange)
        except Unanswered as unanswered:
            if not unanswered.again:
                raise WitnessError(f"GitHub gives no usable answer: {unanswered.words}", where=where) from None
            return Pause(backoff_s(attempt), unanswered.words)
        reply = self._connection.last
        assert reply is not None
        return pause_for(reply, attempt, self._clock()) or reply

    def _kept(self, reply: Reply, accept: tuple[int, ...], where: str) -> Reply:
        if reply.status not in accept:
            raise refusal(reply, where)
        self._bytes += len(reply.body.encode())
        if self._bytes > self._limits.total_bytes:
            raise WitnessError(
                "GitHub's answers are too large to archive",
                where=where,
                value=f"more than {self._limits.total_bytes} bytes",
            )
        return reply


def _requester(base: ApiBase, token: str | None) -> Any:
    import github

    return github.Github(
        auth=github.Auth.Token(token) if token else None,
        base_url=base.origin + base.prefix,
        user_agent="trapkit",
        retry=0,
        seconds_between_requests=None,
        seconds_between_writes=None,
        api_version=_API_VERSION,
    ).requester
