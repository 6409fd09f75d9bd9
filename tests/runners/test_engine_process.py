"""An engine as a program: started by its adapter's command, and ended whole."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from registry.engine_setup import EngineSetup
from runners.engine_life import EngineFault, running
from runners.engines.adapter import EngineOrder
from runners.engines.process import EngineProcess, log_tail, wait_until_gone
from tests.runners.load_support import CELL

PROJECT = Path(__file__).parents[2]
VERSIONS = {"vllm": "0.32.0", "sglang": "0.5.22"}

SLEEPER = (sys.executable, "-c", "import time; time.sleep(600)")

# Leaves its parent, its group and its session, and ignores being asked.
DAEMON = """
import os, signal, sys, tempfile, time
scratch = tempfile.mkdtemp()
if os.fork():
    open(sys.argv[1] + "/up", "w").close()
    time.sleep(600)
os.setsid()
if os.fork():
    os._exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1] + "/daemon", "w").write(f"{os.getpid()} {scratch}")
time.sleep(600)
"""


def order_of(adapter: str, program: tuple[str, ...], ready_timeout_s: float = 30.0) -> EngineOrder:
    variables = (("PYTHONPATH", str(PROJECT)), ("VLLM_SERVER_DEV_MODE", "1"))
    cell = replace(CELL, engine=adapter, engine_version=VERSIONS[adapter])
    setup = EngineSetup(adapter, "m", 1000, 256, 64, program, (), variables, ready_timeout_s=ready_timeout_s)
    return EngineOrder(cell, setup, "models/m", True, 200, 7)


@pytest.mark.parametrize("adapter", VERSIONS)
def test_an_engine_is_started_found_as_registered_and_ended(
    adapter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_PYTHON", sys.executable)

    async def test() -> int:
        order = order_of(adapter, ("${STUB_PYTHON}", "-m", f"tests.engines.{adapter}_stub"))
        async with running(order, tmp_path, bytes(32)) as engine:
            assert engine.facts.version == VERSIONS[adapter]
            assert engine.facts.sample is not None and engine.facts.sample.pool_tokens == CELL.pool_tokens
            # What is published is what the registration says, not what this machine has.
            assert engine.command[:2] == ("${STUB_PYTHON}", "-m") and sys.executable not in engine.command
            assert not wait_until_gone(tmp_path, 0.0), "it holds its log"
            return int(engine.command[engine.command.index("--port") + 1])

    port = asyncio.run(test())
    assert wait_until_gone(tmp_path, 0.0)
    assert f"listening on http://127.0.0.1:{port}" in log_tail(tmp_path / "engine.log")


def test_a_program_that_is_not_there_never_gets_ready(tmp_path: Path) -> None:
    async def test() -> EngineFault:
        with pytest.raises(EngineFault) as caught:
            async with running(order_of("vllm", ("/nowhere/engine",)), tmp_path, bytes(32)):
                pass
        return caught.value

    fault = asyncio.run(test())
    assert fault.cause == "engine_never_ready" and "it exited with 1" in fault.what
    assert "/nowhere/engine" in str(fault.value)


def test_an_engine_that_loads_too_long_is_ended(tmp_path: Path) -> None:
    async def test() -> EngineFault:
        with pytest.raises(EngineFault) as caught:
            async with running(order_of("vllm", SLEEPER, 0.3), tmp_path, bytes(32)):
                pass
        return caught.value

    fault = asyncio.run(test())
    assert fault.cause == "engine_never_ready" and "not ready in 0.3 s" in fault.what
    assert wait_until_gone(tmp_path, 0.0)


def wait(happened: Callable[[], object]) -> None:
    until = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize("asked", [True, False])
def test_what_left_the_engine_s_group_ends_with_it(tmp_path: Path, asked: bool) -> None:
    process = EngineProcess([sys.executable, "-c", DAEMON, str(tmp_path)], dict(os.environ), tmp_path)
    daemon = tmp_path / "daemon"
    wait(lambda: (tmp_path / "up").exists() and daemon.exists() and daemon.read_text())
    pid, scratch = daemon.read_text().split()
    found = psutil.Process(int(pid))
    assert Path(scratch).is_dir()
    if asked:
        process.stop(0.2)
    else:
        # As where the one that drives the run dies: the pipe closes.
        assert process._keeper.stdin is not None
        process._keeper.stdin.close()
        process._keeper.wait(20)
    assert not found.is_running() or found.status() == psutil.STATUS_ZOMBIE
    assert wait_until_gone(tmp_path, 0.0)
    assert not Path(scratch).exists(), "what it left in its temporary folder is gone"
    assert process.exit_code() == 128 + (15 if asked else 9)
    process.stop()


def test_who_left_the_engine_s_group_is_asked_to_end_too(tmp_path: Path) -> None:
    stray = f"trap 'touch {tmp_path}/asked; exit' TERM; touch {tmp_path}/up; while :; do sleep 0.05; done"
    program = (
        f"import subprocess, time; subprocess.Popen(['sh', '-c', {stray!r}], start_new_session=True); time.sleep(60)"
    )
    process = EngineProcess([sys.executable, "-c", program], dict(os.environ), tmp_path)
    wait((tmp_path / "up").exists)
    process.stop(20)
    assert (tmp_path / "asked").exists()
