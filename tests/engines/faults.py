"""What the stubs of engines can do wrong, by name.

Most of them were seen in engines, or in proxies before them; each one is
something that a client must survive, refuse in words, or tell as unknown.
"""

from __future__ import annotations

from enum import StrEnum


class Fault(StrEnum):
    """One thing that goes wrong; a stub may have several at once."""

    NO_CACHED_TOKENS = "no-cached-tokens"
    """The answer's details are there, without cached_tokens."""

    NULL_DETAILS = "null-details"
    """prompt_tokens_details is null, as vLLM's without --enable-prompt-tokens-details. SGLang: as above."""

    NO_COUNTERS = "no-counters"
    """/metrics has gauges, but no counter: what it counted is unknown, not zero."""

    NEVER_FLUSHED = "never-flushed"
    """Emptying the cache answers as if busy, always: vLLM 200 with success false, SGLang 400."""

    CUT_LINE = "cut-line"
    """The body ends, properly, in the middle of its second event."""

    SPLIT_UTF8 = "split-utf8"
    """No error: every event comes in two writes, parted inside a character of several bytes."""

    STREAM_ERROR = "stream-error"
    """After the first token an event with an error, then [DONE], all with status 200."""

    HTTP_500 = "http-500"
    """Status 500 with the engine's own error body."""

    FEW_TOKENS = "few-tokens"
    """One output token fewer than asked for; the usage says so, too."""

    WRONG_PROMPT_COUNT = "wrong-prompt-count"
    """The usage counts one prompt token more than was sent."""

    HANG = "hang"
    """The request is read, and never answered."""

    HANG_MIDWAY = "hang-midway"
    """Nothing comes after the first token; the connection stays open."""

    DROP = "drop"
    """The connection is closed after the first token, without an end of the body."""

    REFUSE = "refuse"
    """After this turn's answer new connections are refused; open ones stay."""

    GARBAGE = "garbage"
    """An event that is neither JSON nor UTF-8."""

    HUGE_LINE = "huge-line"
    """One event of `huge_line_bytes` without a line end before."""

    EMPTY = "empty"
    """Status 200 and an empty body."""


CONTENT = frozenset(
    {
        Fault.NO_CACHED_TOKENS,
        Fault.NULL_DETAILS,
        Fault.NO_COUNTERS,
        Fault.NEVER_FLUSHED,
        Fault.FEW_TOKENS,
        Fault.WRONG_PROMPT_COUNT,
    }
)
"""Faults in what is said; the others are in how it is sent."""
