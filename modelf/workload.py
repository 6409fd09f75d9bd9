"""What a session does: its turns, its prompts and its tool calls.

Source: the paper's workload, T = min(Geometric(1/15), 60), prompts of
2000 + 650 (k - 1) tokens, 100 output tokens, tool times of mean 5 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from modelf.turn_law import TruncatedGeometric, TurnLaw


@dataclass(frozen=True)
class Workload:
    """One agent workload: turn law, prompt growth, output length, tool times.

    Turn k sends `prompt_tokens(k)` tokens and receives exactly
    `output_tokens`; the tool then adds `tool_output_tokens`. Tool times are
    exponential with mean `mean_tool_s` seconds.
    """

    turns: TurnLaw
    first_prompt_tokens: int
    output_tokens: int
    tool_output_tokens: int
    mean_tool_s: float

    def prompt_tokens(self, turn: int) -> int:
        """Prompt length of turn `turn` (1 is the first), tokens."""
        growth = self.output_tokens + self.tool_output_tokens
        return self.first_prompt_tokens + growth * (turn - 1)

    def prompts(self) -> list[int]:
        """Prompt lengths of turns 1 .. max_turns, tokens."""
        return [self.prompt_tokens(k) for k in range(1, self.turns.max_turns + 1)]

    def reusable_tokens(self, turn: int) -> int:
        """Longest prefix whose KV an unbounded cache would hold, tokens.

        The KV of the last sampled token is never written, hence the - 1.
        """
        if turn == 1:
            return 0
        return self.prompt_tokens(turn - 1) + self.output_tokens - 1

    def longest_turn_tokens(self, step_cap: int | None = None) -> int:
        """Prompt and output of the longest turn that can be, tokens; with
        `step_cap`, no turn comes after that one.
        """
        last = min(self.turns.max_turns, step_cap or self.turns.max_turns)
        return self.prompt_tokens(last) + self.output_tokens

    def expected_session_prompt_tokens(self) -> float:
        """sum_k S_k p_k: prompt tokens of a whole session, expected.

        154,528.9 for the standard workload; lambda_ref is the all-miss
        prefill rate over this number.
        """
        return _expected_session_prompt_tokens(self)


@dataclass(frozen=True)
class TabledWorkload(Workload):
    """A workload whose prompts and their reusable parts are tables by turn:
    means over observed sessions, tokens. `first_prompt_tokens` is the first
    entry, `tool_output_tokens` has no meaning.
    """

    prompt_table: tuple[int, ...] = ()
    reusable_table: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        turns: TurnLaw,
        prompts: Sequence[int],
        reusable: Sequence[int],
        *,
        output_tokens: int,
        mean_tool_s: float,
    ) -> TabledWorkload:
        """From tables of `turns.max_turns` entries; ValueError for others."""
        if not len(prompts) == len(reusable) == turns.max_turns:
            raise ValueError("both tables need an entry a turn")
        return cls(turns, prompts[0], output_tokens, 0, mean_tool_s, tuple(prompts), tuple(reusable))

    def prompt_tokens(self, turn: int) -> int:
        """Mean prompt length of turn `turn`, tokens."""
        return self.prompt_table[turn - 1]

    def reusable_tokens(self, turn: int) -> int:
        """Mean part of it that the session's last prompt began with, tokens."""
        return self.reusable_table[turn - 1]

    def longest_turn_tokens(self, step_cap: int | None = None) -> int:
        """The largest entry up to `step_cap`, and output, tokens."""
        return max(self.prompt_table[:step_cap]) + self.output_tokens


@lru_cache(maxsize=1024)
def _expected_session_prompt_tokens(workload: Workload) -> float:
    return float(sum(workload.turns.survival(k) * p for k, p in enumerate(workload.prompts(), 1)))


STANDARD_WORKLOAD = Workload(
    turns=TruncatedGeometric(mean_turns=15, max_turns=60),
    first_prompt_tokens=2000,
    output_tokens=100,
    tool_output_tokens=550,
    mean_tool_s=5.0,
)
"""The paper's standard workload."""

MIRROR_WORKLOAD = Workload(
    turns=TruncatedGeometric(mean_turns=1000, max_turns=20),
    first_prompt_tokens=2000,
    output_tokens=100,
    tool_output_tokens=550,
    mean_tool_s=5.0,
)
"""The paper's MIRROR: T = min(Geometric(1/1000), 20), the rest unchanged."""

WORKLOADS = {"standard": STANDARD_WORKLOAD, "mirror": MIRROR_WORKLOAD}
