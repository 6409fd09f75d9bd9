"""A stub as a program of its own, for tests that start and end engines.

--host, --port          as the engine's own; port 0: a free one, told on stdout
--stub-fault NAME       a fault (faults.py), several times for several
--stub-good-turns N     turns that are answered rightly before the faults begin
--stub-output-token-s S, --stub-prefill-token-s S
--stub-start-s S        loads for so long before it listens
--stub-exit CODE        dies instead of listening, with words on stderr
--stub-children N       processes of its own that outlive it unless they are ended
--stub-strays N         and such in sessions of their own, whose parent is gone
--stub-ignore-sigterm   ends by SIGKILL alone
--stub-options-file F   more of these, a word each, from a file: what a registered command line cannot change
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.engines.faults import Fault
from tests.engines.stub import EngineStub, StubSettings


def program_options(arguments: list[str]) -> argparse.Namespace:
    """The options above; the engine's own are left to its stub."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--stub-fault", type=Fault, action="append", default=[])
    parser.add_argument("--stub-good-turns", type=int, default=0)
    parser.add_argument("--stub-output-token-s", type=float, default=0.0)
    parser.add_argument("--stub-prefill-token-s", type=float, default=0.0)
    parser.add_argument("--stub-start-s", type=float, default=0.0)
    parser.add_argument("--stub-exit", type=int)
    parser.add_argument("--stub-children", type=int, default=0)
    parser.add_argument("--stub-strays", type=int, default=0)
    parser.add_argument("--stub-ignore-sigterm", action="store_true")
    return parser.parse_known_args(arguments)[0]


def with_options_of_file(arguments: list[str]) -> list[str]:
    """The arguments, and after them those of the file that they name."""
    if "--stub-options-file" not in arguments:
        return arguments
    return [*arguments, *Path(arguments[arguments.index("--stub-options-file") + 1]).read_text().split()]


async def serve(kind: type[EngineStub], settings: StubSettings, options: argparse.Namespace) -> None:
    """Serve until SIGTERM or SIGINT."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, ended.set)
    loop.add_signal_handler(signal.SIGTERM, (lambda: None) if options.stub_ignore_sigterm else ended.set)
    stub = kind(settings)
    await stub.start(options.port)
    print(f"listening on {stub.url}", flush=True)
    await ended.wait()
    await stub.stop()


def main(kind: type[EngineStub], settings_of: Callable[[list[str]], StubSettings] = lambda _: StubSettings()) -> None:
    """Run the stub that this command line describes."""
    arguments = with_options_of_file(sys.argv[1:])
    options = program_options(arguments)
    settings = settings_of(arguments)
    settings.faults = set(options.stub_fault)
    settings.good_turns = options.stub_good_turns
    settings.output_token_s, settings.prefill_token_s = options.stub_output_token_s, options.stub_prefill_token_s
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    children = [subprocess.Popen(sleeper) for _ in range(options.stub_children)]
    for _ in range(options.stub_strays):
        subprocess.run(["setsid", "--fork", *sleeper], check=True)
    print(f"loading, {len(children)} processes beside this one", flush=True)
    time.sleep(options.stub_start_s)
    if options.stub_exit is not None:
        print("stub: the engine cannot start", file=sys.stderr, flush=True)
        sys.exit(options.stub_exit)
    asyncio.run(serve(kind, settings, options))
