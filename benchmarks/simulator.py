"""What the simulated engine costs: turns a second, memory, the first call.

`python benchmarks/simulator.py [--json] [--most 1000000]`, one process and one
core. The run is e2's BURST arm at 1.65 lambda_ref on sglang-300k, 8700 s, seed
0, warm: the plan is drawn and the machine code loaded. Turns are those that
became due by the horizon. Everything is printed at the end, minutes later where the
core is compiled anew.

turns_per_s        over the core's time (`runners.simulated.run.played`)
whole_turns_per_s  over `simulate`: the core and its four record tables
run_s, core_s      median wall time of `simulate` and of the core
run_cpu_s          the same of this process's CPU time, for a busy machine
peak_mb            resident memory at its highest, of a process that does this alone
first_call_s       a new process with no machine code kept, imports included
again_s            the same with machine code kept; `_cpu_s`, its CPU time
interpreted_turns_per_s  the same source with NUMBA_DISABLE_JIT=1, the core alone
ns_per_turn        of the core, over sessions: `steady`, open arrivals at 0.9
                   lambda_ref, no burst, a horizon that grows with the sessions;
                   `trapped`, the burst at 1.65, where the queue grows with it
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from modelf.cells import CELLS
from modelf.costs import COSTS
from modelf.workload import STANDARD_WORKLOAD
from registry.design import Arm, Burst, Design, Seeds
from registry.plan import Plan, make_plan, plan_key
from runners.simulated.run import played, simulate

CELL = CELLS["sglang-300k"]
LAMBDA_REF = COSTS["sglang-300k"].lambda_ref()
BURST, NOBURST = Arm("BURST", Burst(200, 1200.0, 60.0)), Arm("NOBURST")
HORIZON_S = 8700.0
ROUNDS = 20
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
WANTED = {"turns_per_s": 1e6, "run_s": 0.030, "peak_mb": 300.0, "first_call_s": 20.0}
ROOT = Path(__file__).resolve().parent.parent


def plan_of(arm: Arm, rate: float, horizon_s: float = HORIZON_S) -> Plan:
    """The plan of literal seed 0 at `rate` times lambda_ref."""
    design = Design(horizon_s, STANDARD_WORKLOAD, (rate,), (arm,), (), Seeds((0,), "literal"))
    return make_plan(plan_key("", 0, "", 0), design, arm, rate * LAMBDA_REF, rate)


def median_s(action: Callable[[], Any], rounds: int = ROUNDS) -> tuple[float, float]:
    """Median wall and CPU seconds of `action`, after one unmeasured call."""
    times = []
    action()
    for _ in range(rounds):
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        action()
        times.append((time.perf_counter() - wall_s, time.process_time() - cpu_s))
    walls, cpus = zip(*times, strict=True)
    return statistics.median(walls), statistics.median(cpus)


def peak_mb() -> float:
    """Highest resident memory of this process so far, MB (Linux counts KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def the_run() -> dict[str, float]:
    """Speed and memory of the one run, in this process."""
    plan = plan_of(BURST, 1.65)
    turns = simulate(plan, BURST, CELL)["turns"].num_rows
    core_s, core_cpu_s = median_s(lambda: played(plan, BURST, CELL))
    run_s, run_cpu_s = median_s(lambda: simulate(plan, BURST, CELL))
    return {
        "turns": turns,
        "turns_per_s": turns / core_s,
        "whole_turns_per_s": turns / run_s,
        "run_s": run_s,
        "core_s": core_s,
        "run_cpu_s": run_cpu_s,
        "core_cpu_s": core_cpu_s,
        "peak_mb": peak_mb(),
    }


def interpreted() -> dict[str, float]:
    """The core's speed in this process, which must not compile."""
    plan = plan_of(BURST, 1.65)
    turns = int(played(plan, BURST, CELL).loop[0].rows)
    core_s, core_cpu_s = median_s(lambda: played(plan, BURST, CELL), 3)
    return {"interpreted_turns_per_s": turns / core_s, "interpreted_turns_per_cpu_s": turns / core_cpu_s}


def of_size(kind: str, sessions: int) -> dict[str, float]:
    """The core's cost a turn over about `sessions` sessions, best of three."""
    arm, rate = (NOBURST, 0.9) if kind == "steady" else (BURST, 1.65)
    plan = plan_of(arm, rate, sessions / (rate * LAMBDA_REF))
    turns = int(played(plan, arm, CELL).loop[0].rows)
    walls, cpus = [], []
    for _ in range(3):
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        played(plan, arm, CELL)
        walls.append(time.perf_counter() - wall_s)
        cpus.append(time.process_time() - cpu_s)
    return {
        "sessions": len(plan.base_arrivals_us) + len(plan.burst_arrivals_us),
        "turns": turns,
        "ns_per_turn": min(walls) / turns * 1e9,
        "cpu_ns_per_turn": min(cpus) / turns * 1e9,
        "peak_mb": peak_mb(),
    }


def apart(*arguments: str, **environment: str) -> Any:
    """What this script prints in a process of its own, from JSON."""
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout)


def first_calls() -> dict[str, float]:
    """Seconds of a new process that simulates once, without and with machine code kept."""
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("first_call", "again"):
            start, before = time.perf_counter(), children_cpu_s()
            apart("--part", "once", NUMBA_CACHE_DIR=folder)
            figures[f"{name}_s"] = time.perf_counter() - start
            figures[f"{name}_cpu_s"] = children_cpu_s() - before
    return figures


def children_cpu_s() -> float:
    """CPU seconds of this process's ended children so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def processor() -> str:
    """The CPU's model and how many of them this process may use."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.machine()}, {os.cpu_count()} cores"


def measured(most: int) -> dict[str, Any]:
    """Every figure, each part in a process of its own."""
    sizes = [size for size in SIZES if size <= most]
    return {
        "machine": processor(),
        "load_1m": os.getloadavg()[0],
        "python": platform.python_version(),
        "numba": numba.__version__,
        **apart("--part", "run"),
        **first_calls(),
        **apart("--part", "interpreted", NUMBA_DISABLE_JIT="1"),
        **{kind: [apart("--part", kind, "--most", str(n)) for n in sizes] for kind in ("steady", "trapped")},
    }


def size_line(row: dict[str, float]) -> str:
    """The cost of one size in words."""
    cost = f"{row['ns_per_turn']:.0f} ns a turn ({row['cpu_ns_per_turn']:.0f} ns of CPU)"
    return f"{row['sessions']} sessions, {row['turns']} turns, {cost}, {row['peak_mb']:.0f} MB"


def shown(figures: dict[str, Any]) -> str:
    """The figures as lines, with what is wanted beside them."""
    lines = []
    for name, value in figures.items():
        if isinstance(value, list):
            lines += [f"{name}: {size_line(row)}" for row in value]
        else:
            text = f"{value:.4g}" if isinstance(value, float) and value < 1e4 else value
            text = f"{value:,.0f}" if isinstance(value, float) and value >= 1e4 else text
            side = "at least" if name == "turns_per_s" else "at most"
            lines.append(f"{name}: {text}" + (f"; {side} {WANTED[name]:,g} is wanted" if name in WANTED else ""))
    return "\n".join(lines)


def main() -> None:
    """Print the figures, or one part of them for the process that asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="largest number of sessions")
    parser.add_argument("--part", choices=["run", "once", "interpreted", "steady", "trapped"])
    asked = parser.parse_args()
    if asked.part is None:
        figures = measured(asked.most)
        print(json.dumps(figures, indent=2) if asked.json else shown(figures))
    elif asked.part == "once":
        print(json.dumps(simulate(plan_of(BURST, 1.65), BURST, CELL)["turns"].num_rows))
    elif asked.part in ("steady", "trapped"):
        print(json.dumps(of_size(asked.part, asked.most)))
    else:
        print(json.dumps(the_run() if asked.part == "run" else interpreted()))


if __name__ == "__main__":
    main()
