"""A trace as a workload of model F: its turn law, mean prompts by turn, mean wait.

What is lost: prompts vary between sessions at the same turn, and sub-agents share
blocks with others; model F knows one prompt a turn and no sharing between sessions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from modelf.turn_law import empirical_turns
from modelf.workload import TabledWorkload
from registry.errors import RecordError
from registry.traces.session_table import Malformed, Reading, TraceTurn


@dataclass(frozen=True)
class EmpiricalWorkload:
    """The workload, and what it was made of. `excluded` sessions have a prompt
    and output of more than the pool; `measured_waits` of `waits` hold no
    answer's own time.
    """

    workload: TabledWorkload
    sessions: int
    turns: int
    excluded: int
    malformed: int
    waits: int
    measured_waits: int


def empirical_workload(read: Callable[[], Reading], pool_tokens: int) -> EmpiricalWorkload:
    """Go through a trace twice; `read` begins anew each time.

    RecordError where no session is left, or none has a second turn.
    """
    turns: Counter[str] = Counter()
    too_large: set[str] = set()
    malformed = 0
    for item in read():
        if isinstance(item, TraceTurn):
            turns[item.session] = max(turns[item.session], item.turn)
            if item.prompt_tokens + item.output_tokens > pool_tokens:
                too_large.add(item.session)
        else:
            malformed += isinstance(item, Malformed)
    kept = {session: count for session, count in turns.items() if session not in too_large}
    if not kept or max(kept.values()) < 2:
        raise RecordError(
            "the trace has no session of two turns that fits the pool",
            value=f"{len(turns)} sessions, {len(too_large)} too large for {pool_tokens:,} tokens",
        )
    sums = _sums(item for item in read() if isinstance(item, TraceTurn) and item.session in kept)
    return EmpiricalWorkload(
        sums.workload(Counter(kept.values())),
        len(kept),
        sums.turns,
        len(too_large),
        malformed,
        sums.waits,
        sums.measured,
    )


@dataclass
class _Sums:
    """Sums over the turns that count; by turn number: how many, their prompts
    and what of those was there before, tokens.
    """

    by_turn: defaultdict[int, list[int]]
    turns: int = 0
    output_tokens: int = 0
    waits: int = 0
    measured: int = 0
    wait_s: float = 0.0

    def workload(self, counts: Counter[int]) -> TabledWorkload:
        """Means of everything, and the law of these turn counts."""
        rows = [self.by_turn[turn] for turn in range(1, max(counts) + 1)]
        return TabledWorkload.of(
            empirical_turns(counts),
            [round(prompts / count) for count, prompts, _ in rows],
            [round(reusable / count) for count, _, reusable in rows],
            output_tokens=max(1, round(self.output_tokens / self.turns)),
            mean_tool_s=self.wait_s / self.waits,
        )


def _sums(turns: Iterable[TraceTurn]) -> _Sums:
    sums = _Sums(defaultdict(lambda: [0, 0, 0]))
    for turn in turns:
        sums.turns += 1
        sums.output_tokens += turn.output_tokens
        reusable = min(turn.prefix_blocks * turn.block_tokens, turn.prompt_tokens)
        row = sums.by_turn[turn.turn]
        row[:] = [row[0] + 1, row[1] + turn.prompt_tokens, row[2] + reusable]
        if turn.wait_s is not None:
            sums.waits += 1
            sums.wait_s += turn.wait_s
            sums.measured += turn.wait_measured
    return sums
