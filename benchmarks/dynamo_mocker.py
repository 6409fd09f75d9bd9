"""NVIDIA Dynamo's mocker beside the simulated engine, on the same sessions.

`python benchmarks/dynamo_mocker.py --dynamo-python PATH [--json]`, where PATH is
the Python of an environment of its own (benchmarks/README.md says how it is
made). e2's plan at 1.65 lambda_ref, 8700 s, seed 0, with and without the burst,
goes to both: as an arm here, there as a trace of sessions whose turns follow
the one before by their tool time. The mocker gets this cell's pool, block size,
chunk and step costs, as far as its time model takes them (see the README).

turns_per_s   turns finished over wall time: `simulate` here, the mocker's own
              `wall_time_ms` there (its reading of the trace not counted)
cpu_us_per_turn  the process's CPU time over turns finished, the whole call
reuse         cached over prompt tokens at first admission, of turns finished
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from cli.render.table import table
from modelf.cells import CELLS, Cell
from modelf.costs import COSTS
from modelf.workload import STANDARD_WORKLOAD
from registry.design import Arm, Burst, Design, Seeds
from registry.plan import Plan, make_plan, plan_key
from runners.simulated.run import simulate

HORIZON_S, RATE, ROUNDS = 8700.0, 1.65, 3
ARMS = (Arm("BURST", Burst(200, 1200.0, 60.0)), Arm("NOBURST"))
CELL_NAMES = ("sglang-300k", "vllm-300k")
TRACE_BLOCK = 50
"""Tokens of one id in the trace; divides every prompt of the workload."""

MOST_RUNNING = 4096
"""The mocker's limit on running requests, out of reach as there is none here."""


def plan_of(arm: Arm, cell: Cell) -> Plan:
    """The plan of literal seed 0."""
    design = Design(HORIZON_S, STANDARD_WORKLOAD, (RATE,), (arm,), (), Seeds((0,), "literal"))
    lambda_per_s = RATE * COSTS[cell.name].lambda_ref()
    return make_plan(plan_key("", 0, "", 0), design, arm, lambda_per_s, RATE)


def write_trace(plan: Plan, path: Path) -> None:
    """The plan's sessions as rows of a Mooncake trace, ids unique to a session.

    Milliseconds; a later turn's `delay` counts from the end of the one before.
    """
    workload, first = plan.workload, 0
    with path.open("w") as file:
        for time_us, origin, index in plan.arrivals():
            draw = plan.session(origin, index)
            for turn in range(1, draw.turns + 1):
                prompt = workload.prompt_tokens(turn)
                assert prompt % TRACE_BLOCK == 0
                due = {"timestamp": time_us / 1e3} if turn == 1 else {"delay": draw.tool_us[turn - 2] / 1e3}
                ids = list(range(first, first + prompt // TRACE_BLOCK))
                size = {"input_length": prompt, "output_length": workload.output_tokens}
                file.write(json.dumps({"session_id": f"{origin}-{index}", **due, **size, "hash_ids": ids}) + "\n")
            first += len(ids)


def write_profile(cell: Cell, path: Path) -> None:
    """The cell's step costs (ms) as the mocker's interpolation tables.

    Prefill by new tokens of a step, decode by KV tokens of the batch.
    """
    costs = cell.step_costs
    assert costs is not None
    tokens = np.arange(0.0, costs.chunk_tokens + 1, 64)
    kv_tokens, contexts = np.array([0.0, 2.0 * cell.pool_tokens]), np.array([0.0, 2.0 * cell.pool_tokens])
    prefill_s = costs.prefill_request_s + costs.prefill_token_s * tokens + costs.prefill_pair_s * tokens**2 / 2
    decode_s = costs.decode_step_s + costs.decode_kv_token_s * kv_tokens
    np.savez(
        path,
        prefill_isl=tokens,
        prefill_ttft_ms=1e3 * prefill_s,
        decode_active_kv_tokens=kv_tokens,
        decode_context_length=contexts,
        decode_itl=np.repeat(1e3 * decode_s[:, None], 2, axis=1),
    )


def options(cell: Cell, profile: Path) -> dict[str, Any]:
    """What `dynamo.replay` is asked for."""
    costs = cell.step_costs
    assert costs is not None
    engine = {
        "backend": cell.engine,
        "num_gpu_blocks": cell.pool_units,
        "block_size": cell.unit_tokens,
        "max_num_seqs": MOST_RUNNING,
        "max_num_batched_tokens": costs.chunk_tokens,
        "timing_model": {"type": "external", "provider": "dynamo_profile", "config": {"path": str(profile)}},
    }
    if cell.engine == "sglang":
        engine["sglang"] = {"chunked_prefill_size": costs.chunk_tokens}
    shared = {"trace_format": "mooncake", "trace_block_size": TRACE_BLOCK, "max_sim_time_ms": HORIZON_S * 1e3}
    return {"extra_engine_args": {"engine": engine}, **shared}


def ours(plan: Plan, arm: Arm, cell: Cell) -> dict[str, float]:
    """The simulated engine's figures, best of a few after one unmeasured run."""
    turns = simulate(plan, arm, cell)["turns"].to_pandas()
    done = turns[turns.outcome == "ok"]
    walls, cpus = [], []
    for _ in range(5 * ROUNDS):
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        simulate(plan, arm, cell)
        walls.append(time.perf_counter() - wall_s)
        cpus.append(time.process_time() - cpu_s)
    reuse = float(done.cached_tokens.sum() / done.prompt_tokens.sum())
    return figures(len(turns), len(done), reuse, min(walls), min(cpus))


def theirs(plan: Plan, cell: Cell, python: Path, folder: Path) -> tuple[dict[str, float], str]:
    """The mocker's figures, best of a few replays in one process, and its version."""
    write_trace(plan, folder / "trace.jsonl")
    write_profile(cell, folder / "profile.npz")
    asked = {"trace": str(folder / "trace.jsonl"), "options": options(cell, folder / "profile.npz"), "rounds": ROUNDS}
    (folder / "replay.json").write_text(json.dumps(asked))
    command = [python, Path(__file__).with_name("dynamo_replay.py"), folder]
    done = subprocess.run(command, env=os.environ | {"DYN_LOG": "error"}, check=True, stdout=subprocess.PIPE, text=True)
    report = json.loads(done.stdout.splitlines()[-1])
    last = report["rounds"][-1]
    wall_s = min(each["wall_time_ms"] for each in report["rounds"]) / 1e3
    cpu_s = min(each["cpu_s"] for each in report["rounds"])
    reuse = last["first_admission_prefix_cache_reused_ratio"]
    return figures(last["num_requests"], last["completed_requests"], reuse, wall_s, cpu_s), report["version"]


def figures(turns: int, done: int, reuse: float, wall_s: float, cpu_s: float) -> dict[str, float]:
    """One side's row."""
    return {
        "turns": turns,
        "turns_done": done,
        "turns_per_s": done / wall_s,
        "cpu_us_per_turn": cpu_s / done * 1e6,
        "reuse": reuse,
    }


def main() -> None:
    """Print both sides' figures for every cell and arm."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dynamo-python", type=Path, required=True)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    results: list[dict[str, Any]] = []
    for cell in (CELLS[name] for name in CELL_NAMES):
        for arm in ARMS:
            plan = plan_of(arm, cell)
            with tempfile.TemporaryDirectory() as folder:
                peer, version = theirs(plan, cell, asked.dynamo_python, Path(folder))
            name = f"dynamo mocker {version}"
            for side, row in (("trapkit", ours(plan, arm, cell)), (name, peer)):
                results.append({"cell": cell.name, "arm": arm.name, "simulator": side, **row})
    if asked.json:
        print(json.dumps({"load_1m": os.getloadavg()[0], "rows": results}, indent=2))
        return
    head = ("cell", "arm", "simulator", "turns done", "reuse", "turns/s", "CPU us a turn")
    rows = [
        (r["cell"], r["arm"], r["simulator"], f"{r['turns_done']:,}", f"{r['reuse']:.4f}",
         f"{r['turns_per_s']:,.0f}", f"{r['cpu_us_per_turn']:.2f}")
        for r in results
    ]  # fmt: skip
    print(table([head, *rows]))


if __name__ == "__main__":
    main()
