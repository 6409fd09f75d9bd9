"""What to make of GitHub's refusals: wait, give up, and in which words.

Pure: the client does the waiting. Sources: GitHub's pages on rate limits and
on troubleshooting the REST API.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from registry.errors import WitnessError
from registry.timestamps import timestamp
from registry.witness.capped_http import Reply
from registry.witness.github_answers import message_of

_SECONDARY_WAIT_S = 60.0
_BROKEN = (500, 502, 503, 504)
_SECONDS = re.compile(r"[0-9]{1,10}")


@dataclass(frozen=True)
class Limits:
    """Bounds of everything that one client asks, over its whole life.

    Seconds and bytes; `wait_s` is all its waiting between tries together,
    `read_s` one read, `answer_s` one exchange. GitHub takes no file over 100 MB, so what is to
    be archived must stay well below that: `total_bytes`.
    """

    tries: int = 4
    wait_s: float = 60.0
    connect_s: float = 10.0
    read_s: float = 30.0
    answer_s: float = 120.0
    body_bytes: int = 8_388_608
    total_bytes: int = 67_108_864
    pages: int = 1_000


@dataclass(frozen=True)
class Pause:
    """That asking again may help: after how long, and why GitHub refused.

    `until` is the end of a rate limit in UTC, where GitHub names it.
    """

    wait_s: float
    words: str
    until: str | None = None


def pause_for(reply: Reply, attempt: int, now_s: float) -> Pause | None:
    """How long to wait before asking again; None for a reply that is final.

    `attempt` counts from 0; `now_s` is Unix time. A 403 is a rate limit only
    if its headers or its message say so.
    """
    if reply.status in _BROKEN:
        return Pause(backoff_s(attempt), f"it answers {reply.status}, a fault of its own")
    if not rate_limited(reply):
        return None
    words = "its rate limit is used up"
    after, reset = (_seconds(reply.headers.get(name)) for name in ("retry-after", "x-ratelimit-reset"))
    if after is not None:
        return Pause(float(after), words, timestamp(datetime.fromtimestamp(now_s + after, UTC)))
    if reset is not None and reply.headers.get("x-ratelimit-remaining") == "0":
        return Pause(max(0.0, reset - now_s) + 1, words, timestamp(datetime.fromtimestamp(reset, UTC)))
    return Pause(_SECONDARY_WAIT_S * 2**attempt, words)


def backoff_s(attempt: int) -> float:
    """Seconds to wait after try number `attempt`, from 0: 1, 2, 4, ..."""
    return float(2**attempt)


def rate_limited(reply: Reply) -> bool:
    """Whether a refusal is about the number of requests, not about what was asked."""
    if reply.status == 429:
        return True
    said = "retry-after" in reply.headers or reply.headers.get("x-ratelimit-remaining") == "0"
    return reply.status == 403 and (said or "rate limit" in message_of(reply.body).lower())


def gave_up(pause: Pause, where: str) -> WitnessError:
    """The error where waiting on is no use."""
    if pause.until:
        remedy = f"ask again after {pause.until}; with a token GitHub allows more requests"
    elif "rate limit" in pause.words:
        remedy = "ask again in some minutes; with a token GitHub allows more requests"
    else:
        remedy = "ask again later"
    return WitnessError(f"GitHub gives no answer: {pause.words}", where=where, remedy=remedy)


def refusal(reply: Reply, where: str) -> WitnessError:
    """The error for a final reply that is not the answer asked for."""
    what, remedy = {
        401: ("GitHub does not accept the token", "set TRAP_GITHUB_TOKEN to a token that is valid, or unset it"),
        403: ("GitHub does not allow this", "set TRAP_GITHUB_TOKEN to a token with the permissions in docs/github.md"),
        404: (
            "GitHub has no such thing, or does not show it",
            "check the repository's name; a private one needs TRAP_GITHUB_TOKEN",
        ),
        410: ("GitHub says that this is gone", None),
        422: ("GitHub cannot process what was asked", None),
    }.get(reply.status, (f"GitHub answers {reply.status}", None))
    said = message_of(reply.body)
    return WitnessError(f"{what}: {said}" if said else what, where=where, value=reply.status, remedy=remedy)


def _seconds(text: str | None) -> int | None:
    return int(text) if text is not None and _SECONDS.fullmatch(text) else None
