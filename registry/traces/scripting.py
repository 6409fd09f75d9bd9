"""From a trace to session scripts: scaled, the oversized left out, some sampled.

A prompt of t tokens becomes t / `token_scale` (down, at least 1), an output likewise,
to the nearest; a turn generates at least one token. A wait becomes wait / `time_scale`,
at most `max_think_s`. A session is left out whole where one of its scaled prompts has
more than `max_prompt_tokens`, or a turn does not fit the pool.

A block of the scripts stands for `token_scale` times its tokens of the trace: whole ids
of it make one block, or one id makes several. Blocks of a scope of one file, and those
that stand in one sampled session alone, are that session's own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from registry.canonical import canonical_bytes
from registry.errors import CapExceeded, RecordError
from registry.session_scripts import MAX_SESSIONS, MAX_TURNS, write_scripts
from registry.traces.block_tree import BlockTree, runs_of
from registry.traces.session_table import Malformed, Reading, TraceTurn, shared_prefix

MICROSECONDS = 1_000_000
LONGEST_WAIT_S = 1e6
LEAST_BLOCK_TOKENS = 16
SAMPLE_VERSION = "trap-trace-sample-1"


@dataclass(frozen=True)
class Scaling:
    """How a trace is made to fit a cell; None: no limit."""

    token_scale: int = 1
    time_scale: float = 1.0
    max_think_s: float | None = None
    max_prompt_tokens: int | None = None

    def prompt(self, tokens: int) -> int:
        """A prompt of so many tokens, scaled."""
        return max(1, tokens // self.token_scale)

    def output(self, tokens: int) -> int:
        """An answer of so many tokens, scaled."""
        return max(1, (2 * tokens + self.token_scale) // (2 * self.token_scale))

    def wait_us(self, wait_s: float) -> int:
        """A wait, scaled and limited."""
        limit_s = LONGEST_WAIT_S if self.max_think_s is None else self.max_think_s
        return round(min(wait_s / self.time_scale, limit_s) * MICROSECONDS)


@dataclass(frozen=True)
class Scripted:
    """A script file and what it was made of, in counts."""

    data: bytes
    sessions_read: int
    excluded: int
    malformed: int
    sessions: int
    turns: int


@dataclass
class _Seen:
    """A session of the trace: where it stands, its first arrival, whether it is too large."""

    place: int
    arrival_s: float
    oversized: bool = False


def block_tokens_of(cache_block_tokens: int) -> int:
    """Tokens of a script's block on a cell: its cache's own block, or as many of
    them as 16 tokens need; a trace tells no finer.
    """
    return cache_block_tokens * -(-LEAST_BLOCK_TOKENS // cache_block_tokens)


def script_trace(
    read: Callable[[], Reading],
    scaling: Scaling,
    block_tokens: int,
    pool_tokens: int,
    sessions: int,
    seed: int | None,
) -> Scripted:
    """Scripts of `sessions` sessions: drawn by `seed`, or the first where that is None.

    Goes through the trace twice; `read` begins anew each time. RecordError where
    too few sessions are left, or block sizes do not divide each other.
    """
    seen, malformed = _survey(read(), scaling, pool_tokens // block_tokens * block_tokens)
    kept = [name for name, session in seen.items() if not session.oversized]
    if len(kept) < sessions or not 1 <= sessions <= MAX_SESSIONS:
        raise RecordError(
            f"{sessions} sessions cannot be taken from this trace",
            value=f"{len(seen)} sessions, {len(seen) - len(kept)} of them too large",
            remedy=f"1 to {min(len(kept), MAX_SESSIONS)}, or a larger token_scale, pool or max_prompt_tokens",
        )
    chosen = kept[:sessions] if seed is None else sorted(kept, key=lambda name: _rank(seed, name))[:sessions]
    chosen.sort(key=lambda name: seen[name].place)
    start_s = min(session.arrival_s for session in seen.values())
    tree = BlockTree(scaling.token_scale * block_tokens)
    scripts = {name: _Script(index) for index, name in enumerate(chosen)}
    turns = 0
    for item in read():
        if isinstance(item, TraceTurn) and item.session in scripts:
            turns += 1
            if turns > MAX_TURNS:
                raise CapExceeded("too many turns in the sample", value=turns, remedy=f"at most {MAX_TURNS}")
            scripts[item.session].add(item, scaling, tree, block_tokens)
    numbers, shared = tree.numbered()
    rows: list[dict[str, Any]] = []
    for name, script in scripts.items():
        arrival_us = round((seen[name].arrival_s - start_s) / scaling.time_scale * MICROSECONDS)
        rows.append({"arrival_us": min(arrival_us, 2**53 - 1), "turns": script.written(numbers, tree.per_node)})
    data = write_scripts(block_tokens, shared, rows)
    return Scripted(data, len(seen), len(seen) - len(kept), malformed, len(chosen), turns)


def _survey(reading: Reading, scaling: Scaling, pool_tokens: int) -> tuple[dict[str, _Seen], int]:
    """The sessions in the trace's order, and how many things could not be read."""
    seen: dict[str, _Seen] = {}
    malformed = 0
    for item in reading:
        if isinstance(item, TraceTurn):
            session = seen.setdefault(item.session, _Seen(len(seen), item.arrival_s or 0.0))
            prompt, output = scaling.prompt(item.prompt_tokens), scaling.output(item.output_tokens)
            most = pool_tokens if scaling.max_prompt_tokens is None else scaling.max_prompt_tokens
            session.oversized |= prompt > most or prompt + output > pool_tokens
        else:
            malformed += isinstance(item, Malformed)
    return seen, malformed


def _rank(seed: int, name: str) -> bytes:
    return hashlib.sha256(canonical_bytes([SAMPLE_VERSION, seed, name])).digest()


class _Script:
    """One sampled session: its turns so far, as nodes of the tree."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._nodes: list[int] = []
        self._blocks = 0
        self._turns: list[tuple[int, int, int, int, int, int, list[int]]] = []

    def add(self, turn: TraceTurn, scaling: Scaling, tree: BlockTree, block_tokens: int) -> None:
        """The session's next turn."""
        prompt, output = scaling.prompt(turn.prompt_tokens), scaling.output(turn.output_tokens)
        nodes, blocks = tree.path(turn, self._index, prompt // block_tokens)
        kept_nodes = shared_prefix(nodes, self._nodes)
        kept = min(kept_nodes * tree.per_node, self._blocks, blocks)
        wait_us = scaling.wait_us(turn.wait_s or 0.0)
        first_node = kept // tree.per_node
        self._turns.append((prompt, output, wait_us, kept, blocks, first_node, nodes[first_node:]))
        self._nodes, self._blocks = nodes, blocks

    def written(self, numbers: list[int], per_node: int) -> list[list[Any]]:
        """The turns as the file has them."""
        return [
            [prompt, output, wait_us, kept, runs_of([numbers[n] for n in nodes], per_node, first, kept, blocks)]
            for prompt, output, wait_us, kept, blocks, first, nodes in self._turns
        ]
