"""One run of the load generator against a stub of an engine, in this process."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from modelf.cells import Cell
from modelf.turn_law import TruncatedGeometric
from modelf.workload import Workload
from registry.design import Arm, Design, RunId, Seeds, Window, cell_under
from registry.plan import Plan, make_plan, plan_key
from runners.engines.adapter import Adapter
from runners.engines.adapters import ADAPTERS
from runners.engines.errands import Errands
from runners.load.client_gate import ClientGate
from runners.load.clock import RunClock
from runners.load.generator import Drive, LoadGenerator
from runners.load.records import tables
from runners.load.sampler import Sampler
from runners.load.sender import Sender, Target
from tests.engines.openai_stub import OpenAIStub
from tests.engines.sglang_stub import SGLangStub
from tests.engines.stub import EngineStub, StubSettings
from tests.engines.vllm_stub import VLLMStub
from verifier.arm_checks import ARM_CHECKS
from verifier.check import Check, Outcome
from verifier.gate_checks import GATE_CHECKS
from verifier.readings import RunFrames, compute_readings
from verifier.run_checks import PLAN_CHECKS, RunContext
from verifier.run_report import frames_of

CELL = Cell("tiny", "vllm", "0.32.0", "a stub", "none", 4096, 4, None, ())
WORKLOAD = Workload(TruncatedGeometric(mean_turns=5, max_turns=9), 21, 3, 9, 0.02)
HORIZON_S = 1.2
RATE_PER_S = 8.0
Guards = tuple[Coroutine[Any, Any, None], ...]


@dataclass(frozen=True)
class Driven:
    """What a run came to."""

    context: RunContext
    frames: RunFrames
    stub: EngineStub

    @property
    def turns(self) -> Any:
        return self.frames.turns

    @property
    def sessions(self) -> Any:
        return self.frames.sessions

    def checks(self) -> dict[str, Check]:
        """The verifier's word on the records, by the name of the check."""
        found = [check(self.frames, self.context) for check in (*PLAN_CHECKS, *ARM_CHECKS, *GATE_CHECKS)]
        return {check.name: check for check in found}

    def readings(self, start_s: float, end_s: float) -> dict[str, float]:
        cell = self.context.cell
        sizes = {"pool_tokens": cell.pool_tokens, "cache_block_tokens": cell.cache_block_tokens}
        return compute_readings(self.frames, Window("w", start_s, end_s), **sizes)


def design_of(arm: Arm, horizon_s: float = HORIZON_S, workload: Workload = WORKLOAD) -> Design:
    return Design(horizon_s, workload, (RATE_PER_S,), (arm,), (), Seeds((0,), "literal"))


def plan_of(arm: Arm, design: Design) -> Plan:
    """`RATE_PER_S` sessions a second, unless the arm keeps a population."""
    key = plan_key("", 0, "", 0)
    return make_plan(key, design, arm, RATE_PER_S if arm.population is None else None, RATE_PER_S)


def adapter_of(stub: EngineStub) -> Adapter:
    """The adapter that speaks a stub's words."""
    kinds = {VLLMStub: "vllm", SGLangStub: "sglang", OpenAIStub: "openai"}
    return ADAPTERS[next(name for kind, name in kinds.items() if isinstance(stub, kind))]


@contextmanager
def in_thread(stub: EngineStub) -> Iterator[EngineStub]:
    """A stub that serves beside what blocks this thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(stub.start(), loop).result(10)
        yield stub
        asyncio.run_coroutine_threadsafe(stub.stop(), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def stub_settings(arm: Arm, cell: Cell, **more: Any) -> StubSettings:
    """A stub that is what the arm wants, an answer within some milliseconds."""
    own = {"block_tokens": cell.cache_block_tokens, "pool_tokens": cell.pool_tokens, "caching": arm.caching}
    return StubSettings(**{**own, "output_token_s": 0.003, **more})


async def drive(
    arm: Arm,
    design: Design | None = None,
    stream: str = "run/attempt-1",
    guards: Guards = (),
    kind: type[EngineStub] = VLLMStub,
    **stub: Any,
) -> Driven:
    """Run the arm's plan against a stub, to its horizon."""
    design = design or design_of(arm)
    cell = cell_under(arm, CELL)
    plan = plan_of(arm, design)
    async with kind(stub_settings(arm, cell, **stub)) as engine, Errands(engine.url, {}) as errands:
        clock = RunClock(time.monotonic() + 0.05)
        gate = ClientGate(arm.gate, cell.pool_tokens, clock)
        sampler = Sampler(errands, clock)
        async with Sender(Target(engine.url, adapter_of(engine), "m", {}), clock) as sender:
            generator = LoadGenerator(Drive(plan, arm, cell, 1000, stream), gate, sender, clock)
            await generator.run(sampler.sample(), *guards)
        horizon_s = plan.horizon_us / 1e6
        made = tables(generator.records, gate.log, sampler.rows(horizon_s), horizon_s)
    context = RunContext(RunId(arm.name, None, 0), arm, replace(design, arms=(arm,)), cell, plan)
    return Driven(context, frames_of(made), engine)


def refuted(driven: Driven) -> list[Check]:
    return [check for check in driven.checks().values() if check.outcome is Outcome.REFUTED]
