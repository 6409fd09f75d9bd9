"""Mooncake traces: one JSON request a line, without session ids.

`timestamp` (ms), `input_length`, `output_length` (tokens) and `hash_ids`: ids of
blocks of 512 tokens, global, each standing for its whole prefix; the last one is
of a part of a block unless the prompt fills it.

A turn's parent is the latest request without a child so far whose whole blocks
begin this one's, beyond those that all requests begin with. Gaps between turns
are differences of request times: the answer's own time is in them.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated

import msgspec

from registry.plain_text import plain
from registry.traces.lines import lines_of
from registry.traces.session_table import (
    MAX_BLOCKS,
    MAX_ID,
    MAX_SECONDS,
    MAX_TOKENS,
    Malformed,
    Oddity,
    Reading,
    TraceTurn,
    shared_prefix,
)

BLOCK_TOKENS = 512
COMMON_OF = 1000
"""The common beginning is that of so many first requests."""

MOST_OPEN = 1_000_000
"""So many requests without a child are remembered; the oldest are forgotten."""

Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_TOKENS)]
BlockId = Annotated[int, msgspec.Meta(ge=0, le=MAX_ID)]
BlockIds = Annotated[list[BlockId], msgspec.Meta(max_length=MAX_BLOCKS)]


class Request(msgspec.Struct):
    """One line."""

    timestamp: Annotated[float, msgspec.Meta(ge=0, le=MAX_SECONDS * 1000)]
    input_length: Count
    output_length: Count
    hash_ids: BlockIds


@dataclass(slots=True)
class _Open:
    """A request without a child: its session, turn and time."""

    session: str
    turn: int
    at_s: float
    whole_blocks: int
    number: int


class _Sessions:
    """Which session a request belongs to."""

    def __init__(self, common: int) -> None:
        self._common = common
        self._open: OrderedDict[int, _Open] = OrderedDict()
        self._count = 0

    def parent(self, blocks: tuple[int, ...]) -> _Open | None:
        """The latest open request whose last whole block is among `blocks`."""
        tips = self._open.keys() & set(blocks[self._common :])
        if not tips:
            return None
        found = max(tips, key=lambda tip: self._open[tip].number)
        return self._open.pop(found)

    def first(self) -> str:
        """The name of a new session."""
        self._count += 1
        return f"s{self._count}"

    def remember(self, blocks: tuple[int, ...], request: _Open) -> None:
        """A request that may have a child: one with blocks beyond the common ones."""
        if len(blocks) > self._common:
            self._open[blocks[-1]] = request
            self._open.move_to_end(blocks[-1])
            if len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)


def read(file: Path) -> Reading:
    """The turns of a trace."""
    sessions, decoder = _Sessions(common_blocks(file)), msgspec.json.Decoder(Request)
    clock_s = offset_s = last_s = 0.0
    for number, line in lines_of(file):
        request = _request(decoder, line)
        if isinstance(request, str):
            yield Malformed(f"{file.name}:{number}", request)
            continue
        at_s = request.timestamp / 1000
        if at_s < last_s:
            offset_s += last_s - at_s
            yield Oddity("clock_resets")
        last_s, clock_s = at_s, at_s + offset_s
        whole = tuple(request.hash_ids[: request.input_length // BLOCK_TOKENS])
        parent = sessions.parent(whole)
        session, turn = (parent.session, parent.turn + 1) if parent else (sessions.first(), 1)
        sessions.remember(whole, _Open(session, turn, clock_s, len(whole), number))
        if parent:
            yield Oddity("linked_turns")
        yield TraceTurn(
            session,
            None,
            turn,
            None if parent else clock_s,
            clock_s - parent.at_s if parent else None,
            False,
            request.input_length,
            request.output_length,
            tuple(request.hash_ids[: -(-request.input_length // BLOCK_TOKENS)]),
            parent.whole_blocks if parent else 0,
            BLOCK_TOKENS,
            0,
        )


def common_blocks(file: Path) -> int:
    """How many blocks all of the first requests begin with."""
    decoder, common = msgspec.json.Decoder(Request), None
    for _, line in islice(lines_of(file), COMMON_OF):
        request = _request(decoder, line)
        if isinstance(request, str) or not request.hash_ids:
            continue
        ids = request.hash_ids
        common = ids if common is None else common[: shared_prefix(common, ids)]
    return len(common or ())


def _request(decoder: msgspec.json.Decoder[Request], line: bytes | None) -> Request | str:
    """The request of a line, or why there is none."""
    if line is None:
        return "the line is too long"
    try:
        request = decoder.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return plain(error, 200)
    if len(request.hash_ids) < request.input_length // BLOCK_TOKENS:
        return f"{len(request.hash_ids)} block ids for {request.input_length} tokens"
    return request
