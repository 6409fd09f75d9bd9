"""One run on a real engine, from its start to its horizon."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from artifacts.attempt import PROGRESS_FILE
from modelf.cells import Cell
from registry.design import Arm
from registry.engine_setup import EngineSetup
from registry.errors import EngineError
from registry.plan import Plan
from runners.asked_to_end import SIGNALS, AskedToEnd
from runners.engine_life import RunningEngine, running
from runners.engines.adapter import EngineOrder
from runners.engines.errands import ERRAND_TIMEOUT_S, sample_of
from runners.engines.process import BROKEN_GRACE_S
from runners.load.client_gate import ClientGate, load_rules
from runners.load.clock import RunClock
from runners.load.generator import Drive, LoadGenerator
from runners.load.guard import check_serves, watch_over
from runners.load.records import tables
from runners.load.sampler import Sampler
from runners.load.sender import Sender
from runners.machine import machine

_LAST_LOOK_S = 1.0
"""How long an engine whose run was given up may take for its last metrics."""

START_S = 0.5
"""How long before its zero the clock starts: first prompts are made then."""

STATEMENT = "a real engine as its client saw it: consistent records, not proof that it ran"
POLICY = (
    "a turn that fails is an error and ends its session; nothing is sent twice; "
    "an engine that exits, hangs, or fails every turn ends the attempt"
)


@dataclass(frozen=True)
class EngineRun:
    """What is to run: the plan under an arm on a cell's engine. `model` is a
    folder or a name, `stream` the run and attempt that name the token ids,
    `folder` the attempt's.
    """

    plan: Plan
    arm: Arm
    cell: Cell
    setup: EngineSetup
    model: str
    stream: str
    folder: Path

    def order(self) -> EngineOrder:
        """The engine that it needs."""
        longest = self.plan.workload.longest_turn_tokens(self.plan.step_cap)
        seed = int.from_bytes(self.plan.key[:4], "big")
        return EngineOrder(self.cell, self.setup, self.model, self.arm.caching, longest, seed)


@dataclass(frozen=True)
class EngineOutcome:
    """The four tables, what run.json says of the engine, and when the run's
    clock stood at zero (Unix seconds). `failure` is why it was given up, None
    where it reached its horizon.
    """

    tables: dict[str, pa.Table]
    engine: dict[str, Any]
    zero_unix_s: float
    failure: EngineError | None


def run_on_engine(run: EngineRun) -> EngineOutcome:
    """Start the engine, drive the run, end the engine.

    EngineError where it never began; what broke it later is the outcome's
    `failure`, beside the records so far.
    """
    return asyncio.run(_whole(run))


async def _whole(run: EngineRun) -> EngineOutcome:
    load_rules()
    stopped, begun = asyncio.Event(), asyncio.Event()
    _on_terminate(stopped, begun)
    try:
        async with running(run.order(), run.folder, run.plan.key) as engine:
            begun.set()
            outcome = await _drive(run, engine, stopped)
            if outcome.failure and engine.process:
                await asyncio.to_thread(engine.process.stop, BROKEN_GRACE_S)
            return outcome
    except asyncio.CancelledError:
        raise AskedToEnd("the run was interrupted before it began") from None


def _on_terminate(stopped: asyncio.Event, begun: asyncio.Event) -> None:
    """A process that is asked to end ends its engine first, and then says so."""
    task = asyncio.current_task()

    def terminate() -> None:
        if task and not stopped.is_set() and not begun.is_set():
            task.cancel()
        stopped.set()

    for number in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, terminate)


async def _drive(run: EngineRun, engine: RunningEngine, stopped: asyncio.Event) -> EngineOutcome:
    drive = Drive(run.plan, run.arm, run.cell, run.setup.vocabulary_tokens, run.stream)
    before = sample_of(await engine.errands.metrics())
    clock = RunClock(time.monotonic() + START_S)
    gate = ClientGate(run.arm.gate, run.cell.pool_tokens, clock)
    sampler = Sampler(engine.errands, clock)
    failure = None
    async with Sender(engine.target, clock) as sender:
        generator = LoadGenerator(drive, gate, sender, clock)
        guards: list[Coroutine[Any, Any, None]] = [
            watch_over(sender, engine.process, clock, run.setup.hang_timeout_s),
            _until_stopped(stopped),
            sampler.sample(),
            _progress(run.folder / PROGRESS_FILE, clock, generator, gate, sender),
        ]
        _calm_collector()
        try:
            await generator.run(*guards)
            await check_serves(sender, engine.process)
        except (EngineError, OSError) as error:
            failure = error if isinstance(error, EngineError) else EngineError(f"the run broke: {error.strerror}")
        finally:
            gc.unfreeze()
    after = sample_of(await engine.errands.metrics(_LAST_LOOK_S if failure else ERRAND_TIMEOUT_S))
    horizon_s = min(drive.horizon_s, clock.now_s())
    return EngineOutcome(
        tables(generator.records, gate.log, sampler.rows(horizon_s), horizon_s),
        {
            "name": run.cell.engine,
            "simulated": False,
            "statement": STATEMENT,
            "version": engine.facts.version,
            "adapter": run.setup.adapter,
            "command": list(engine.command),
            "resolved": engine.facts.resolved,
            "before": vars(before) if before else None,
            "after": vars(after) if after else None,
            "machine": machine(),
            "client": {"version": version("trapkit"), "policy": POLICY, "errors": generator.records.errors()},
        },
        clock.zero_unix_s,
        failure,
    )


def _calm_collector() -> None:
    """What is there now stays: collections during the run need not look at it."""
    gc.collect()
    gc.freeze()


async def _until_stopped(stopped: asyncio.Event) -> None:
    await stopped.wait()
    raise AskedToEnd("the run was interrupted")


async def _progress(path: Path, clock: RunClock, generator: LoadGenerator, gate: ClientGate, sender: Sender) -> None:
    """A line a second: how far the run is, for whoever looks on."""
    with path.open("w", encoding="utf-8") as file:
        second = 0
        while True:
            time_s = await clock.until(float(second))
            line = {
                "time_s": round(time_s, 3),
                "sessions": generator.live,
                "open_turns": sender.open_turns,
                "gate_waiting": gate.waiting,
                "turns": len(generator.records.turns),
            }
            file.write(json.dumps(line) + "\n")
            file.flush()
            second += 1
