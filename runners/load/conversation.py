"""What one session says: its turns' sizes and the bytes of their prompts.

By a turn law a prompt is the last one, the engine's answer and fresh tokens. By a
script it is made of the script's blocks, each of tokens that its id names, and a tail
of fresh ones: what the engine generated is in no later prompt.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from registry.philox import WORDS_A_BLOCK, many_words
from registry.plan import Plan, SessionDraw
from registry.scripted_workload import ScriptedWorkload
from registry.session_scripts import SessionScripts
from runners.load.token_ids import Prompt, TokenSource, as_text


class TurnSize(NamedTuple):
    """One turn in tokens. `most_cached_tokens` is what its first admission can hit,
    prefixes of other sessions included where those are shared.
    """

    prompt_tokens: int
    reusable_tokens: int
    output_tokens: int
    most_cached_tokens: int


class Conversation(Protocol):
    """One session's turns, asked for in their order, from 1."""

    def size(self, turn: int) -> TurnSize:
        """What the plan says of a turn."""

    def prompt(self, turn: int, output_ids: tuple[int, ...]) -> bytes:
        """The next turn's token ids, as ASCII with commas; `output_ids` answered the one before."""


def conversation_of(plan: Plan, source: TokenSource, session: str, draw: SessionDraw) -> Conversation:
    """The session called `session`, of the workload that the plan follows."""
    if draw.script_row is None:
        return _Growing(plan, Prompt(source, session))
    assert isinstance(plan.workload, ScriptedWorkload)
    return _Scripted(plan.workload.scripts, draw.script_row, source, session)


class _Growing:
    """A session by a turn law."""

    def __init__(self, plan: Plan, prompt: Prompt) -> None:
        self._workload = plan.workload
        self._prompt = prompt

    def size(self, turn: int) -> TurnSize:
        workload = self._workload
        prompt_tokens, reusable_tokens = workload.prompt_tokens(turn), workload.reusable_tokens(turn)
        return TurnSize(prompt_tokens, reusable_tokens, workload.output_tokens, min(prompt_tokens - 1, reusable_tokens))

    def prompt(self, turn: int, output_ids: tuple[int, ...]) -> bytes:
        workload = self._workload
        self._prompt.grow(workload.first_prompt_tokens if turn == 1 else workload.tool_output_tokens, output_ids)
        return self._prompt.text


class _Scripted:
    """A session by a script whose first turn is row `first` of the scripts."""

    def __init__(self, scripts: SessionScripts, first: int, source: TokenSource, session: str) -> None:
        self._scripts = scripts
        self._first = first
        self._source = source
        self._session = session
        self._blocks: list[bytes] = []

    def size(self, turn: int) -> TurnSize:
        scripts, row = self._scripts, self._first + turn - 1
        columns = (scripts.prompt_tokens, scripts.reusable_tokens, scripts.output_tokens, scripts.most_cached_tokens)
        return TurnSize(*(int(column[row]) for column in columns))

    def prompt(self, turn: int, output_ids: tuple[int, ...]) -> bytes:
        scripts, row = self._scripts, self._first + turn - 1
        ids = scripts.blocks[scripts.first_block[row] : scripts.first_block[row + 1]].tolist()
        kept = int(scripts.kept_blocks[row])
        self._blocks = self._blocks[:kept] + self._made(ids[kept:])
        rest = int(scripts.prompt_tokens[row]) - len(ids) * scripts.block_tokens
        tail = [self._source.fresh(f"{self._session}/tail/{turn}", rest)] if rest else []
        return b",".join(self._blocks + tail)

    def _made(self, ids: list[int]) -> list[bytes]:
        """The blocks' tokens: a shared id's are the run's, another's are the session's own."""
        scripts, source = self._scripts, self._source
        if not ids:
            return []
        shared = scripts.shared_blocks
        names = [source.name(f"block/{i}" if i < shared else f"{self._session}/block/{i}") for i in ids]
        each = -(-scripts.block_tokens // WORDS_A_BLOCK)
        raw = many_words(source.key, names, np.full(len(ids), each, dtype=np.int64))
        return [as_text(row, source.vocabulary_tokens) for row in raw.reshape(len(ids), -1)[:, : scripts.block_tokens]]
