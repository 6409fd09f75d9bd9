"""What generator.py needs to measure any load generator: the load, the null engine, a core, figures."""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Load:
    """`sessions` sessions, `rate_per_s` turns a second in all, `seconds` of them after the warm-up."""

    rate_per_s: float
    sessions: int
    seconds: float
    arrivals_per_s: float = math.inf

    @property
    def gap_s(self) -> float:
        """Between two turns of a session."""
        return self.sessions / self.rate_per_s

    @property
    def warm_s(self) -> float:
        """How long sessions arrive: whole gaps, after which turns come at their full rate."""
        return self.gap_s * max(1, math.ceil(self.rate_per_s / self.arrivals_per_s))

    @property
    def horizon_s(self) -> float:
        """When the last turn may be due, seconds from the start."""
        return self.warm_s + self.seconds

    @cached_property
    def phases_s(self) -> list[float]:
        """When each session's first turn is due, ascending."""
        return sorted(np.random.default_rng(0).uniform(0, self.warm_s, self.sessions).tolist())


@dataclass(frozen=True)
class Receipt:
    """A turn that reached the engine; seconds on the monotonic clock."""

    session: str
    turn: int
    first_byte_s: float


class NullServer:
    """The null engine that runs at `url`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.cpu_s = 0.0

    def _ask(self, method: str, path: str) -> bytes:
        with urllib.request.urlopen(urllib.request.Request(self.url + path, method=method), timeout=60) as answer:
            return bytes(answer.read())

    def receipts(self) -> list[Receipt]:
        """Every turn that came; `cpu_s` is what they cost the engine."""
        self.cpu_s = json.loads(self._ask("GET", "/load"))["cpu_s"]
        rows = [json.loads(line) for line in self._ask("GET", "/receipts").splitlines()]
        return [Receipt(session, turn, first_byte_s) for session, turn, first_byte_s, *_ in rows]


@contextlib.contextmanager
def null_server(core: int) -> Iterator[NullServer]:
    """A null engine on a core of its own."""
    command = [sys.executable, str(HERE / "null_server.py"), "--core", str(core)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout
        yield NullServer(process.stdout.readline().split()[-1])
        process.terminate()


def figures(load: Load, due_s: dict[tuple[str, int], float], receipts: list[Receipt], zero_s: float) -> dict[str, Any]:
    """One row of the table; `due_s` by session and turn, from `zero_s` on."""
    since_s = zero_s + load.warm_s
    counted = {key for key, time_s in due_s.items() if load.warm_s <= time_s < load.horizon_s}
    lags_s = [r.first_byte_s - zero_s - due_s[r.session, r.turn] for r in receipts if (r.session, r.turn) in counted]
    sustained = sum(since_s <= r.first_byte_s < since_s + load.seconds for r in receipts) / load.seconds
    return {
        "offered_per_s": load.rate_per_s,
        "due_per_s": len(counted) / load.seconds,
        "sustained_per_s": sustained,
        "missing": len(counted) - len(lags_s),
        **percentiles_ms("lag", lags_s),
    }


def percentiles_ms(name: str, values_s: list[float]) -> dict[str, float]:
    """p50, p99 and largest, milliseconds; NaN of nothing."""
    values = np.asarray(values_s or [np.nan]) * 1e3
    return {f"{name}_p50_ms": float(np.median(values)), f"{name}_p99_ms": float(np.quantile(values, 0.99)),
            f"{name}_most_ms": float(values.max())}  # fmt: skip


def busy_s(core: int) -> float:
    """CPU time that anyone had of a core since the machine started, theft by its host included."""
    lines = Path("/proc/stat").read_text().splitlines()
    (fields,) = [line.split()[1:9] for line in lines if line.startswith(f"cpu{core} ")]
    user, nice, system, _, _, irq, softirq, steal = (int(field) for field in fields)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def run_on(core: int, command: Sequence[str | Path], environment: dict[str, str]) -> float:
    """Run a program on one core; returns the share of it that others took meanwhile."""
    since_s, before_s, own = time.monotonic(), busy_s(core), resource.getrusage(resource.RUSAGE_CHILDREN)
    pinned = ["taskset", "-c", str(core), *command]
    # Linux shares a core between sessions first: in one session with the null engine, what is
    # busy here would take that one's share there, and it would stand still for seconds.
    done = subprocess.run(
        pinned, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    if done.returncode:
        raise SystemExit(f"{command[0]} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own_s = after.ru_utime + after.ru_stime - own.ru_utime - own.ru_stime
    return max(0.0, busy_s(core) - before_s - own_s) / (time.monotonic() - since_s)
