"""One turn of a trace, whatever its format: what readers give.

A reader goes through a file once and gives turns in the file's order, and
`Malformed` for what it could not read: nothing is left out in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

MAX_TOKENS = 2**31
MAX_BLOCKS = 2**22
MAX_ID = 2**53
MAX_SECONDS = 1e10
MAX_LINE_BYTES = 2**26
"""Caps on what a trace may say: a line of four million blocks is no turn."""


@dataclass(frozen=True, slots=True)
class TraceTurn:
    """One request of a session.

    `session` is unique in its trace; `parent` is the session that started it,
    for a sub-agent's. `turn` counts from 1. `arrival_s` is when a session
    began, by the trace's clock from its start: first turns alone have it.
    `wait_s` is the tool or think time between the last answer and this
    request, None for first turns; where `wait_measured` is False it is the
    difference of two request times, which holds the answer's own time.

    `blocks` are ids of the prompt's blocks of `block_tokens` tokens, the last
    one of a part of a block where the trace gives that an id: equal ids in one
    `scope` are equal tokens at equal places. Tokens beyond them are nobody
    else's. The first `prefix_blocks` of them began the session's last prompt.
    """

    session: str
    parent: str | None
    turn: int
    arrival_s: float | None
    wait_s: float | None
    wait_measured: bool
    prompt_tokens: int
    output_tokens: int
    blocks: tuple[int, ...]
    prefix_blocks: int
    block_tokens: int
    scope: int


@dataclass(frozen=True, slots=True)
class Malformed:
    """Something in a trace that is no turn: where (file and line, or place) and why."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something that was read and has a stated meaning: `kind` is a key of `ODDITIES`."""

    kind: str


ODDITIES = {
    "context_shrinks": "a prompt that goes on from less than the last one: what both begin with is shared",
    "clock_resets": "a time before the one before it: it counts from there on as no time passed",
    "linked_turns": "a turn whose session was found by its blocks, since the trace names none",
    "overlapping_turns": "a turn that began before the last answer came: its wait is the difference of request times",
    "forgotten_sessions": "a turn of a session that was silent for too long: it begins a new one",
}

Read = TraceTurn | Malformed | Oddity
Reading = Iterator[Read]

SESSION_TABLE = pa.schema(
    [
        pa.field("session", pa.string(), nullable=False),
        pa.field("parent", pa.string()),
        pa.field("turn", pa.int32(), nullable=False),
        pa.field("arrival_s", pa.float64()),
        pa.field("wait_s", pa.float64()),
        pa.field("wait_measured", pa.bool_(), nullable=False),
        pa.field("prompt_tokens", pa.int64(), nullable=False),
        pa.field("output_tokens", pa.int64(), nullable=False),
        pa.field("blocks", pa.list_(pa.int64()), nullable=False),
        pa.field("prefix_blocks", pa.int32(), nullable=False),
        pa.field("block_tokens", pa.int32(), nullable=False),
        pa.field("scope", pa.int32(), nullable=False),
    ]
)
"""The session table: a row a turn, columns as in `TraceTurn`."""


def shared_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """How many ids both begin with."""
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def table_of(turns: Iterator[TraceTurn] | list[TraceTurn]) -> pa.Table:
    """The turns as a session table."""
    rows = [{name: getattr(turn, name) for name in SESSION_TABLE.names} for turn in turns]
    return pa.Table.from_pylist(rows, schema=SESSION_TABLE)
