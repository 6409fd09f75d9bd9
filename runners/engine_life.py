"""An engine's life for one attempt: start, readiness, a trial, an empty cache."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from registry.errors import EngineError
from runners.engines.adapter import SERVED_MODEL, Adapter, EngineOrder
from runners.engines.adapters import ADAPTERS
from runners.engines.errands import Errands
from runners.engines.facts import EngineFacts, check_facts
from runners.engines.process import BROKEN_GRACE_S, EngineProcess, engine_environment, free_port, program
from runners.load.clock import RunClock
from runners.load.records import TurnRow
from runners.load.sender import Sender, Target, TurnFailed
from runners.load.token_ids import Prompt, TokenSource

API_KEY = "TRAP_ENGINE_API_KEY"
"""Variable with the key of an engine that asks for one; never recorded."""

NEVER_READY = "engine_never_ready"
_LOOK_S = 0.1
_TRIAL_OUTPUT_TOKENS = 2


class EngineFault(EngineError):
    """A fault of the engine that ends the attempt; `cause` is one of
    `registry.attempt_log.CAUSES` where the attempt's own records show it.
    """

    cause: str | None = None


@dataclass(frozen=True)
class RunningEngine:
    """An engine that is ready, its cache empty. `process` is None for one that
    runs for itself; `command` as it was started, the program as its setup
    names it: what its variables hold is this machine's.
    """

    target: Target
    errands: Errands
    process: EngineProcess | None
    command: tuple[str, ...]
    facts: EngineFacts


@asynccontextmanager
async def running(order: EngineOrder, folder: Path, key: bytes) -> AsyncIterator[RunningEngine]:
    """The engine of one attempt, from its start to its end.

    `folder` takes its log, `key` the plan's key for the trial's token ids.
    EngineFault where it never gets ready, EngineError where it is not the
    registered one.
    """
    adapter = ADAPTERS[order.setup.adapter]
    process, url, command = _start(order, adapter, folder)
    try:
        headers = _headers()
        async with Errands(url, headers) as errands:
            await _until_ready(order, process, errands)
            facts = await errands.facts(adapter)
            check_facts(facts, order.cell, order.caching)
            model = SERVED_MODEL if process else order.model
            target = Target(url, adapter, model, headers)
            await _trial(order, target, key, folder.name)
            await errands.flush(adapter)
            yield RunningEngine(target, errands, process, command, facts)
    except BaseException:
        if process:
            await asyncio.to_thread(process.stop, BROKEN_GRACE_S)
        raise
    if process:
        await asyncio.to_thread(process.stop)


def _start(order: EngineOrder, adapter: Adapter, folder: Path) -> tuple[EngineProcess | None, str, tuple[str, ...]]:
    if order.setup.url:
        return None, order.setup.url.rstrip("/"), ()
    port = free_port()
    arguments = [*adapter.command(order, port), *order.setup.arguments]
    command = [*program(order.setup, os.environ), *arguments]
    process = EngineProcess(command, engine_environment(order.setup), folder)
    return process, f"http://127.0.0.1:{port}", (*order.setup.command, *arguments)


def _headers() -> dict[str, str]:
    key = os.environ.get(API_KEY)
    return {"Authorization": f"Bearer {key}"} if key else {}


async def _until_ready(order: EngineOrder, process: EngineProcess | None, errands: Errands) -> None:
    until_s = time.monotonic() + order.setup.ready_timeout_s
    while not await errands.healthy():
        code = process.exit_code() if process else None
        late = time.monotonic() > until_s
        if code is not None or late or process is None:
            why = f"it exited with {code}" if code is not None else f"not ready in {order.setup.ready_timeout_s:g} s"
            fault = EngineFault(
                f"the engine never got ready: {why if process else 'nobody answers'}",
                where=order.setup.url,
                value=process.tail() if process else None,
                remedy="engine.log in the attempt's folder says why; trapkit doctor says what is missing",
            )
            fault.cause = NEVER_READY
            raise fault
        await asyncio.sleep(_LOOK_S)


async def _trial(order: EngineOrder, target: Target, key: bytes, name: str) -> None:
    """Two equal turns: the engine answers as its adapter reads it, and its
    cache is on, or off, as the arm says.
    """
    block = order.cell.cache_block_tokens
    size = min(max(4 * block, 64), order.longest_turn_tokens - _TRIAL_OUTPUT_TOKENS)
    prompt = Prompt(TokenSource(key, f"trial/{name}", order.setup.vocabulary_tokens), "trial")
    prompt.grow(size)
    clock = RunClock()
    cached = None
    async with Sender(target, clock) as sender:
        for turn in (1, 2):
            row = TurnRow("trial", turn, "base", 0.0, size, 0)
            try:
                answer = sender.send(row, prompt.text, _TRIAL_OUTPUT_TOKENS)
                cached = (await asyncio.wait_for(answer, order.setup.hang_timeout_s)).cached_tokens
            except (TurnFailed, TimeoutError) as failed:
                why = str(failed) or f"nothing in {order.setup.hang_timeout_s:g} s"
                raise EngineError(
                    f"the engine does not answer a trial turn as {order.setup.adapter} does: {why}",
                    remedy="compare its version and arguments with docs/real-engines.md",
                ) from None
    if size >= 2 * block and bool(cached) != order.caching:
        says = "on" if cached else "off"
        raise EngineError(
            f"the engine's prefix cache is {says}, the arm says otherwise",
            value=f"{cached} cached tokens of a repeated prompt",
            remedy="engines.<cell>.arguments must not switch it",
        )
