"""How many turns a session has, and how its prompts grow.

Source: the paper's workload, T = min(Geometric(1/15), 60), prompts of
2000 + 650 (k - 1) tokens. Probabilities are exact fractions, so that integer
tables made from them are the same on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class TruncatedGeometric:
    """T = min(Geometric(1/mean_turns), max_turns), support 1..max_turns.

    `mean_turns` is the mean of the untruncated law (an integer of at least 1).
    """

    mean_turns: int
    max_turns: int

    def __post_init__(self) -> None:
        if self.mean_turns < 1 or self.max_turns < 1:
            raise ValueError("mean_turns and max_turns must be at least 1")

    def survival(self, turn: int) -> Fraction:
        """S_k = P(T >= k), exact; 1 for k <= 1 and 0 beyond `max_turns`."""
        if turn <= 1:
            return Fraction(1)
        if turn > self.max_turns:
            return Fraction(0)
        return (1 - Fraction(1, self.mean_turns)) ** (turn - 1)

    def mean(self) -> float:
        """E[T], turns a session."""
        return float(sum(self.survival(k) for k in range(1, self.max_turns + 1)))


@dataclass(frozen=True)
class Workload:
    """One agent workload: turn law, prompt growth, output length, tool times.

    Turn k sends `prompt_tokens(k)` tokens and receives exactly
    `output_tokens`; the tool then adds `tool_output_tokens`. Tool times are
    exponential with mean `mean_tool_s` seconds.
    """

    turns: TruncatedGeometric
    first_prompt_tokens: int
    output_tokens: int
    tool_output_tokens: int
    mean_tool_s: float

    def prompt_tokens(self, turn: int) -> int:
        """Prompt length of turn `turn` (1 is the first), tokens."""
        growth = self.output_tokens + self.tool_output_tokens
        return self.first_prompt_tokens + growth * (turn - 1)

    def reusable_tokens(self, turn: int) -> int:
        """Longest prefix whose KV an unbounded cache would hold, tokens.

        The KV of the last sampled token is never written, hence the - 1.
        """
        if turn == 1:
            return 0
        return self.prompt_tokens(turn - 1) + self.output_tokens - 1

    def expected_session_prompt_tokens(self) -> float:
        """sum_k S_k p_k: prompt tokens of a whole session, expected.

        154,528.9 for the standard workload; lambda_ref is the all-miss
        prefill rate over this number.
        """
        ks = range(1, self.turns.max_turns + 1)
        return float(sum(self.turns.survival(k) * self.prompt_tokens(k) for k in ks))


STANDARD_WORKLOAD = Workload(
    turns=TruncatedGeometric(mean_turns=15, max_turns=60),
    first_prompt_tokens=2000,
    output_tokens=100,
    tool_output_tokens=550,
    mean_tool_s=5.0,
)
