"""What the plan says of each recorded turn's tokens: the law's by turn, or a script's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from modelf.cells import Cell
from registry.plan import Plan
from registry.scripted_workload import ScriptedWorkload
from verifier.readings import RunFrames

Integers = npt.NDArray[np.int64]
CHANCE_TOKENS = 3
"""Where a cache finds single tokens, random prompts go on alike for more than these
once in 10^12 pairs, if the vocabulary has 1,000 tokens."""

_ORIGINS = ("base", "burst", "population")


@dataclass(frozen=True)
class TurnSizes:
    """By row of the turns, tokens; `most_cached`: what a first admission can
    have hit, prefixes of other sessions included where those are shared, and
    what prompts may have in common by chance.
    """

    prompt_tokens: Integers
    reusable_tokens: Integers
    output_tokens: Integers
    most_cached: Integers


def session_number(session: str) -> int:
    """The number in a session's name; -1 where there is none of sane length."""
    text = session.rpartition("-")[2]
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 10 else -1


def turn_sizes(frames: RunFrames, plan: Plan, cell: Cell) -> TurnSizes | None:
    """The planned sizes; None where a turn is in no session of the plan."""
    workload, numbers = plan.workload, frames.turns.turn.to_numpy()
    chance = CHANCE_TOKENS if cell.cache_block_tokens <= CHANCE_TOKENS else 0
    if isinstance(workload, ScriptedWorkload):
        return _scripted(frames, plan, workload, chance)
    if len(numbers) and (numbers.min() < 1 or numbers.max() > workload.turns.max_turns):
        return None
    laws = np.arange(1, workload.turns.max_turns + 1).tolist()
    prompts = np.array([workload.prompt_tokens(k) for k in laws])[numbers - 1]
    reusable = np.array([workload.reusable_tokens(k) for k in laws])[numbers - 1]
    outputs = np.full(len(numbers), workload.output_tokens)
    return TurnSizes(prompts, reusable, outputs, np.minimum(prompts - 1, reusable) + chance)


def _scripted(frames: RunFrames, plan: Plan, workload: ScriptedWorkload, chance: int) -> TurnSizes | None:
    turns, scripts = frames.turns, workload.scripts
    rows = np.full(len(turns), -1, dtype=np.int64)
    last = np.full(len(turns), -1, dtype=np.int64)
    sessions = pd.Index(frames.sessions.session).get_indexer(turns.session)
    index = np.array([session_number(name) for name in turns.session], dtype=np.int64)
    for origin in _ORIGINS:
        count = int((frames.sessions.origin == origin).sum())
        of_origin = (turns.origin == origin).to_numpy(dtype=bool) & (sessions >= 0) & (index >= 0) & (index < count)
        at = np.flatnonzero(of_origin)
        if len(at):
            draws = plan.draws(origin, count)
            assert draws.script is not None
            rows[at] = draws.script[index[at]] + turns.turn.to_numpy()[at] - 1
            last[at] = draws.script[index[at]] + draws.turns[index[at]] - 1
    if (rows < 0).any() or (rows > last).any() or (len(turns) and turns.turn.min() < 1):
        return None
    most = scripts.most_cached_tokens + chance
    columns = (scripts.prompt_tokens, scripts.reusable_tokens, scripts.output_tokens, most)
    return TurnSizes(*(column[rows] for column in columns))
