"""A workload of real sessions: each arrival follows one of the frozen scripts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from modelf.cells import Cell
from modelf.turn_law import empirical_turns
from modelf.workload import TabledWorkload, Workload
from registry.session_scripts import Integers, SessionScripts

MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class ScriptedWorkload(TabledWorkload):
    """Session scripts; to model F, their turn law and means by turn.

    `prompt_tokens`, `reusable_tokens`, `output_tokens` and `mean_tool_s` are means.
    `replayed`: base arrivals are the scripts', one each; else each draws its script.
    """

    session_scripts: SessionScripts | None = None
    replayed: bool = False

    @classmethod
    def following(cls, scripts: SessionScripts, replayed: bool = False) -> ScriptedWorkload:
        """The workload whose arrivals each follow one script."""
        numbers, counts = scripts.turn_numbers, scripts.turns
        later = scripts.wait_us[numbers > 1]
        by_turn = np.bincount(numbers)[1:]
        prompts = np.bincount(numbers, scripts.prompt_tokens)[1:] / by_turn
        reusable = np.bincount(numbers, scripts.reusable_tokens)[1:] / by_turn
        return cls(
            turns=empirical_turns(Counter(counts.tolist())),
            first_prompt_tokens=round(float(prompts[0])),
            output_tokens=max(1, round(float(scripts.output_tokens.mean()))),
            tool_output_tokens=0,
            mean_tool_s=int(later.sum()) / len(later) / MICROSECONDS if len(later) else 0.0,
            prompt_table=tuple(round(value) for value in prompts.tolist()),
            reusable_table=tuple(round(value) for value in reusable.tolist()),
            session_scripts=scripts,
            replayed=replayed,
        )

    @property
    def scripts(self) -> SessionScripts:
        """The scripts."""
        assert self.session_scripts is not None
        return self.session_scripts

    @cached_property
    def _turn_tokens(self) -> Integers:
        return self.scripts.prompt_tokens + self.scripts.output_tokens

    def longest_turn_tokens(self, step_cap: int | None = None) -> int:
        """Prompt and output of the longest turn of a script, tokens; with
        `step_cap`, no turn comes after that one.
        """
        counted = self.scripts.turn_numbers <= (step_cap or self.turns.max_turns)
        return int(self._turn_tokens[counted].max())

    def expected_session_prompt_tokens(self) -> float:
        """Prompt tokens of a whole session, the scripts' mean."""
        return int(self.scripts.prompt_tokens.sum()) / len(self.scripts.turns)

    def in_order(self, count: int) -> Integers:
        """The scripts of sessions 0 to `count` - 1 where they are replayed. Nobody
        arrives after the last script: from there on they begin anew, to fill up.
        """
        return np.resize(self.scripts.arrival_order, count)

    def drawn(self, values: NDArray[np.int64]) -> Integers:
        """Which script each 53-bit word names: floor(value n / 2^53)."""
        return np.searchsorted(_table(len(self.scripts.turns)), values, side="right").astype(np.int64)


def unit_tokens_of(workload: Workload, cell: Cell) -> int:
    """Tokens of one unit of a simulated pool: a block of the scripts, or as the cell has it."""
    return workload.scripts.block_tokens if isinstance(workload, ScriptedWorkload) else cell.unit_tokens


@lru_cache
def _table(count: int) -> Integers:
    """Least words of scripts 1, 2, …: ceil(2^53 k / count), exact integers."""
    return np.array([-(-(2**53) * k // count) for k in range(1, count)], dtype=np.int64)
