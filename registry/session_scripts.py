"""Session scripts: what each of a sample of real sessions does, as a frozen file.

Canonical JSON, committed beside the registration that names its digest: everything
after the registration needs this file, never the trace. A session has `arrival_us`
(by the trace's clock) and turns `[prompt_tokens, output_tokens, wait_us,
kept_blocks, ids]`: the wait before the turn, how many blocks began the session's
last prompt, and the ids of those that follow, as runs `[first, count, ...]`. Equal
ids are equal prompts up to that block's end. Ids below `shared_blocks` are every
arrival's; the others stand in one session alone, and are its arrival's own.
Tokens beyond the blocks are nobody else's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from registry.canonical import canonical_bytes, sha256_hex
from registry.errors import CapExceeded, DraftError
from registry.plain_text import plain

SCHEMA = "trap-session-scripts-1"
MAX_BYTES = 2**22
MAX_SESSIONS = 100_000
MAX_TURNS = 1_000_000
MAX_BLOCKS = 2**24
"""Caps on a file and on the ids of all its turns, written out."""

Integers = NDArray[np.int64]
Tokens = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
WaitUs = Annotated[int, msgspec.Meta(ge=0, le=10**12)]
TimeUs = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
BlockCount = Annotated[int, msgspec.Meta(ge=0, le=MAX_BLOCKS)]
Turn = tuple[Tokens, Tokens, WaitUs, BlockCount, list[BlockCount]]


class Session(msgspec.Struct, forbid_unknown_fields=True):
    """One session as the file has it."""

    arrival_us: TimeUs
    turns: Annotated[list[Turn], msgspec.Meta(min_length=1)]


class File(msgspec.Struct, forbid_unknown_fields=True, rename={"schema_name": "schema"}):
    """The file."""

    schema_name: Literal["trap-session-scripts-1"]
    block_tokens: Annotated[int, msgspec.Meta(ge=1, le=65536)]
    shared_blocks: BlockCount
    sessions: Annotated[list[Session], msgspec.Meta(min_length=1, max_length=MAX_SESSIONS)]


@dataclass(frozen=True, eq=False)
class SessionScripts:
    """The scripts as columns; two are the same if their digests agree.

    Script i's turns are rows `first_turn[i]` to `first_turn[i + 1]`, a turn's ids
    `blocks[first_block[row] : first_block[row + 1]]`. `wait_us`: before the turn.
    """

    sha256: str
    block_tokens: int
    shared_blocks: int
    arrival_us: Integers
    first_turn: Integers
    prompt_tokens: Integers
    output_tokens: Integers
    wait_us: Integers
    kept_blocks: Integers
    first_block: Integers
    blocks: Integers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SessionScripts) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    @property
    def turns(self) -> Integers:
        """Turn count of every script."""
        return np.diff(self.first_turn)

    @property
    def arrival_order(self) -> Integers:
        """The scripts as they arrive; those that arrive together in the file's order."""
        return np.argsort(self.arrival_us, kind="stable")

    @property
    def arrival_span_us(self) -> int:
        """From the first arrival to the last."""
        return int(self.arrival_us.max() - self.arrival_us.min())

    @property
    def turn_numbers(self) -> Integers:
        """Which turn of its session each row is, from 1."""
        return np.arange(1, len(self.prompt_tokens) + 1) - np.repeat(self.first_turn[:-1], self.turns)

    @cached_property
    def reusable_tokens(self) -> Integers:
        """By row: tokens of whole blocks that began the session's last prompt;
        one token at least is left to compute.
        """
        return np.minimum(self.kept_blocks * self.block_tokens, self.most_cached_tokens)

    @cached_property
    def most_cached_tokens(self) -> Integers:
        """By row: tokens of whole blocks that another prompt, of whichever session, can
        have left; one token at least is left to compute.
        """
        return (self.prompt_tokens - 1) // self.block_tokens * self.block_tokens


def write_scripts(block_tokens: int, shared_blocks: int, sessions: list[dict[str, Any]]) -> bytes:
    """The file's bytes; `sessions` as it has them. CapExceeded where it is too large."""
    data = canonical_bytes(
        {"schema": SCHEMA, "block_tokens": block_tokens, "shared_blocks": shared_blocks, "sessions": sessions}
    )
    if len(data) > MAX_BYTES:
        raise CapExceeded(
            "the session scripts are too large to freeze",
            value=f"{len(data):,} bytes",
            remedy=f"at most {MAX_BYTES:,}: a smaller sample, or a larger token_scale",
        )
    return data


@lru_cache(maxsize=4)
def read_scripts(data: bytes, name: str) -> SessionScripts:
    """Read and check a file; `name` is its name for messages.

    DraftError for bytes that are not canonical or contradict themselves,
    CapExceeded for too many. Kept, so nobody changes the columns.
    """
    if len(data) > MAX_BYTES:
        raise CapExceeded("the session scripts are too large", where=name, value=len(data))
    try:
        file = msgspec.json.decode(data, type=File)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise DraftError(f"not a file of session scripts: {plain(error, 200)}", where=name) from None
    if canonical_bytes(msgspec.to_builtins(file)) != data:
        raise DraftError("the session scripts are not in canonical form (RFC 8785)", where=name)
    return _columns(file, sha256_hex(data), name)


def _columns(file: File, digest: str, name: str) -> SessionScripts:
    rows = [turn for session in file.sessions for turn in session.turns]
    if len(rows) > MAX_TURNS:
        raise CapExceeded("too many turns in the session scripts", where=name, value=len(rows))
    counts = np.array([kept + sum(runs[1::2]) for *_, kept, runs in rows], dtype=np.int64)
    if counts.sum() > MAX_BLOCKS:
        raise CapExceeded(
            "too many block ids in the session scripts",
            where=name,
            value=int(counts.sum()),
            remedy=f"at most {MAX_BLOCKS:,} over all turns: a smaller sample, or a larger token_scale",
        )
    first_turn = np.cumsum([0, *(len(session.turns) for session in file.sessions)])
    first_block = np.concatenate([[0], np.cumsum(counts)])
    prompts, outputs, waits, kept = (np.array([row[i] for row in rows], dtype=np.int64) for i in range(4))
    blocks = np.zeros(int(counts.sum()), dtype=np.int64)
    starts = set(first_turn.tolist())
    for row, turn in enumerate(rows):
        begin, end, before = int(first_block[row]), int(first_block[row + 1]), int(first_block[row - 1]) if row else 0
        has = 0 if row in starts else begin - before
        if turn[3] > has or end - begin > turn[0] // file.block_tokens or len(turn[4]) % 2:
            raise DraftError("a turn's blocks do not fit its prompt, or the one before", where=name, value=row)
        blocks[begin : begin + turn[3]] = blocks[before : before + turn[3]]
        place = begin + turn[3]
        for first, count in zip(turn[4][::2], turn[4][1::2], strict=True):
            blocks[place : place + count] = np.arange(first, first + count)
            place += count
    scripts = SessionScripts(
        digest,
        file.block_tokens,
        file.shared_blocks,
        np.array([session.arrival_us for session in file.sessions], dtype=np.int64),
        first_turn,
        prompts,
        outputs,
        waits,
        kept,
        first_block,
        blocks,
    )
    if problem := _contradiction(scripts):
        raise DraftError(f"the session scripts contradict themselves: {problem}", where=name)
    return scripts


def _contradiction(scripts: SessionScripts) -> str | None:
    """Whether an id follows two different ones, or is two sessions' own."""
    blocks, counts = scripts.blocks, np.diff(scripts.first_block)
    before = np.concatenate([[-1], blocks[:-1]])
    before[scripts.first_block[:-1][counts > 0]] = -1
    parents = np.zeros(int(blocks.max(initial=0)) + 1, dtype=np.int64)
    parents[blocks] = before
    if (parents[blocks] != before).any():
        return "a block id follows two different ones"
    session = np.repeat(np.arange(len(scripts.turns)), scripts.turns)
    owner = np.repeat(session, counts)
    owners = np.zeros(len(parents), dtype=np.int64)
    owners[blocks] = owner
    own = blocks >= scripts.shared_blocks
    if (owners[blocks[own]] != owner[own]).any():
        return "a block id that is not shared stands in two sessions"
    return None
