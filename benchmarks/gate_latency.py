"""What `trapkit gate serve` adds to a request's latency.

An open loop: requests start at a constant rate whatever the answers do, and a
latency counts from the time at which the request was due. Engine (a stub that
answers at once), gate and client are processes of their own. Phases take turns
in one run: direct, through the gate with named sessions, through the gate with
sessions told by their prefix. The gate's CPU time a request is also shown: of
all figures it is the one that a busy machine changes least.

    python benchmarks/gate_latency.py [--rate 500] [--seconds 10] [--rounds 3] [--prompt-kib 4] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import psutil
from aiohttp import web

ROOT = Path(__file__).parents[1]
SESSIONS = 250
TURNS = 8
PHASES = ("direct", "named", "by_prefix")
REPLY = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}


def serve_stub() -> None:
    """An engine that answers at once, on a free port that it prints."""

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.json_response(REPLY)

    async def run() -> None:
        application = web.Application(client_max_size=2**30)
        application.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        print(f"stub ready on http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
        await asyncio.Event().wait()

    asyncio.run(run())


def body_of(number: int, prompt_bytes: int) -> tuple[str, bytes]:
    """Session and body of the request of this number: turns that build on each other."""
    lap, place = divmod(number, SESSIONS)
    session = f"{place}-{lap // TURNS}"
    messages = [{"role": "user", "content": f"{session} " + "x" * prompt_bytes}]
    for turn in range(lap % TURNS):
        messages += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": f"turn {turn}"}]
    return session, json.dumps({"model": "stub", "messages": messages}).encode()


class Phase:
    """One phase: sends at a constant rate, and keeps latencies and how late it sent."""

    def __init__(self, url: str, named: bool, prompt_bytes: int) -> None:
        self.url = url + "/v1/chat/completions"
        self.named = named
        self.prompt_bytes = prompt_bytes
        self.latencies_s: list[float] = []
        self.late_s: list[float] = []
        self.failed = 0

    async def run(self, first: int, count: int, rate: float) -> None:
        """`count` requests from number `first` on, `rate` a second."""
        loop = asyncio.get_running_loop()
        bodies = [body_of(first + number, self.prompt_bytes) for number in range(count)]
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
            start_s = loop.time() + 0.5
            tasks = []
            for number, (session, body) in enumerate(bodies):
                due_s = start_s + number / rate
                if (wait_s := due_s - loop.time()) > 0:
                    await asyncio.sleep(wait_s)
                self.late_s.append(loop.time() - due_s)
                tasks.append(asyncio.ensure_future(self._ask(http, session, body, due_s, loop.time)))
            await asyncio.gather(*tasks)

    async def _ask(
        self, http: aiohttp.ClientSession, session: str, body: bytes, due_s: float, now: Callable[[], float]
    ) -> None:
        headers = {"Content-Type": "application/json"}
        if self.named:
            headers["X-Session-Id"] = session
        try:
            async with http.post(self.url, data=body, headers=headers, raise_for_status=True) as answer:
                await answer.read()
            self.latencies_s.append(now() - due_s)
        except aiohttp.ClientError:
            self.failed += 1


def started(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """A child and the address in its first line."""
    child = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout
    return child, child.stdout.readline().split()[3]


def percentiles_ms(values_s: list[float]) -> tuple[float, float]:
    """Median and 99th percentile."""
    cuts = statistics.quantiles(values_s, n=100)
    return cuts[49] * 1000, cuts[98] * 1000


def measure(stub_url: str, gate_url: str, gate: psutil.Process, options: argparse.Namespace) -> list[dict[str, Any]]:
    """One row a phase and round."""
    count, rows, first = int(options.rate * options.seconds), [], 0
    gc.disable()
    for turn in range(options.rounds):
        for name in PHASES:
            phase = Phase(stub_url if name == "direct" else gate_url, name == "named", options.prompt_kib * 1024)
            before_s = sum(gate.cpu_times()[:2])
            asyncio.run(phase.run(first, count, options.rate))
            cpu_us = (sum(gate.cpu_times()[:2]) - before_s) / count * 1e6
            # The next phase begins with sessions of its own.
            first += count + SESSIONS * TURNS - count % (SESSIONS * TURNS)
            p50, p99 = percentiles_ms(phase.latencies_s)
            late = percentiles_ms(phase.late_s)[1]
            load = os.getloadavg()[0]
            figures = {"p50_ms": p50, "p99_ms": p99, "late_p99_ms": late, "gate_cpu_us": cpu_us, "load": load}
            rows.append({"round": turn, "phase": name, **figures, "failed": phase.failed})
            gc.collect()
    return rows


def main() -> None:
    """Print latencies of each phase, and what the gate adds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prompt-kib", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--stub", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stub:
        serve_stub()
        return
    stub, stub_url = started(__file__, "--stub")
    serving = ("-m", "cli.app", "gate", "serve", "--upstream", stub_url, "--cap", "1000000", "--port", "0")
    gate, gate_url = started(*serving)
    try:
        rows = measure(stub_url, gate_url, psutil.Process(gate.pid), options)
    finally:
        gate.terminate()
        stub.terminate()
        gate.wait()
        stub.wait()
    print(json.dumps(rows, indent=1) if options.json else table(rows))


def table(rows: list[dict[str, Any]]) -> str:
    """Every phase, then what the gate adds: best and median over the rounds."""
    lines = [
        f"{row['phase']:10} p50 {row['p50_ms']:7.2f} ms   p99 {row['p99_ms']:7.2f} ms"
        f"   sent late, p99 {row['late_p99_ms']:6.2f} ms   gate {row['gate_cpu_us']:4.0f} us   load {row['load']:.1f}"
        f"{'   FAILED: ' + str(row['failed']) if row['failed'] else ''}"
        for row in rows
    ]
    for name in PHASES[1:]:
        for key in ("p50_ms", "p99_ms"):
            through, direct = ([row[key] for row in rows if row["phase"] == phase] for phase in (name, "direct"))
            best, usual = min(through) - min(direct), statistics.median(through) - statistics.median(direct)
            lines.append(f"added, {name}, {key[:3]}: best {best:.2f} ms, median {usual:.2f} ms")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
