"""Our side of generator.py: drives the load generator with the sessions that it is told.

`python benchmarks/generator_trapkit.py ASKED.json SENT.json`; the first file is
generator.py's, the second gets every turn that was due: [session, turn,
planned_s, submit_s], seconds from `zero_s` on `time.monotonic()`; and `cpu_ms`,
what a turn cost this process after the warm-up.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from modelf.cells import CELLS
from modelf.turn_law import TruncatedGeometric
from modelf.workload import Workload
from registry.design import Arm
from registry.plan import MICROSECONDS, Draws, Plan, plan_key
from runners.engines.vllm import VLLMAdapter
from runners.load.client_gate import ClientGate
from runners.load.clock import RunClock
from runners.load.generator import Drive, LoadGenerator
from runners.load.sender import Sender, Target

TOOL_OUTPUT_TOKENS = 190
"""How much a prompt grows besides the output, as it does in a real run."""

LEAD_S = 2.0
"""Time to make the first prompts."""


@dataclass(frozen=True)
class SteadyPlan(Plan):
    """A plan whose every tool call takes `gap_us`: the rate of turns stays the same."""

    gap_us: int = 0
    turns: int = 1

    def draws(self, origin: str, count: int) -> Draws:
        """The same for all sessions."""
        first = np.arange(count, dtype=np.int64) * (self.turns - 1)
        tool_us = np.full(count * (self.turns - 1), self.gap_us, dtype=np.int64)
        return Draws(np.full(count, self.turns, dtype=np.int64), first, tool_us)


def plan_of(asked: dict[str, Any]) -> SteadyPlan:
    """The sessions that were asked for."""
    turns = 2 + int(asked["horizon_s"] / asked["gap_s"])
    law = TruncatedGeometric(1000, turns)
    workload = Workload(law, asked["prompt_tokens"], asked["output_tokens"], TOOL_OUTPUT_TOKENS, asked["gap_s"])
    arrivals = tuple(round(phase_s * MICROSECONDS) for phase_s in asked["phases_s"])
    horizon_us, gap_us = round(asked["horizon_s"] * MICROSECONDS), round(asked["gap_s"] * MICROSECONDS)
    return SteadyPlan(plan_key("", 0, "", 0), workload, horizon_us, arrivals, (), 0, None, gap_us, turns)


class Warm:
    """The CPU time of this process when the warm-up ended."""

    cpu_s = 0.0

    async def note(self, clock: RunClock, warm_s: float) -> None:
        """Wait for that moment."""
        await clock.until(warm_s)
        self.cpu_s = time.process_time()


async def drive(asked: dict[str, Any]) -> dict[str, Any]:
    """One run against the null engine, without a gate."""
    cell = CELLS["vllm-300k"]
    whole = Drive(plan_of(asked), Arm("STEADY"), cell, asked["vocabulary_tokens"], "benchmark")
    clock = RunClock(time.monotonic() + LEAD_S)
    async with Sender(Target(asked["url"], VLLMAdapter(), "m", {}), clock) as sender:
        generator = LoadGenerator(whole, ClientGate(None, cell.pool_tokens, clock), sender, clock)
        gc.collect()
        gc.freeze()
        warm = Warm()
        await generator.run(warm.note(clock, asked["warm_s"]))
        cpu_s = time.process_time() - warm.cpu_s
    records = generator.records
    done = sum(row.done_s is not None and row.done_s >= asked["warm_s"] for row in records.turns)
    turns = [(row.session, row.turn, row.planned_s, row.submit_s) for row in records.turns]
    return {"zero_s": clock.zero_s, "turns": turns, "errors": sum(records.errors().values()),
            "cpu_ms": 1e3 * cpu_s / max(1, done)}  # fmt: skip


def main() -> None:
    """Run from the command line."""
    asked = json.loads(Path(sys.argv[1]).read_text())
    Path(sys.argv[2]).write_text(json.dumps(asyncio.run(drive(asked))))


if __name__ == "__main__":
    main()
