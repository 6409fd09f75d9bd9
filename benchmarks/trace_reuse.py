"""How much of a trace's prompts a pool of blocks reuses, by the simulator.

`python benchmarks/trace_reuse.py [TRACE] [--pool TOKENS]... [--dynamo-python PATH] [--json]`.
TRACE is a Mooncake trace; without it, `mooncake_conversation.jsonl` in the folder
that TRAP_TRACES names. All its sessions, none scaled, in blocks of 16 tokens.

in order    the block cache alone: each turn, in the trace's order, is computed and
            released before the next
under load  the trace's own arrivals, each session going on by itself, on vllm-300k's
            scheduler with h200-600k's costs and each pool; turns find what is left
infinite    a cache that keeps every block
mocker      NVIDIA Dynamo's, given PATH, the Python of an environment of its own (the
            README says how it is made): the same sessions, pool, block, chunk, costs

All are cached over prompt tokens, at first admission.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from dynamo_mocker import options, write_profile

from cli.render.table import table
from modelf.cells import CELLS, Cell
from registry.design import Arm
from registry.plan import Plan
from registry.scripted_workload import ScriptedWorkload
from registry.session_scripts import SessionScripts, read_scripts
from registry.traces.description import describe
from registry.traces.formats import read_trace
from registry.traces.scripting import Scaling, script_trace
from registry.traces.session_table import TraceTurn
from runners.simulated import blocks, pool
from runners.simulated.run import simulate
from runners.simulated.setup import prepare

BLOCK_TOKENS = 16
POOLS = (131_072, 524_288, 2_097_152)
HORIZON_US = 40_000_000_000
ARM = Arm("TRACE")


def cell_of(pool_tokens: int) -> Cell:
    """VLLM's scheduler in blocks of 16, with the H200's costs."""
    return replace(CELLS["vllm-300k"], pool_tokens=pool_tokens, step_costs=CELLS["h200-600k"].step_costs)


def plan_of(trace: list[TraceTurn], pool_tokens: int) -> Plan:
    """All sessions that fit the pool, when they arrived."""
    fits = script_trace(
        lambda: iter(trace), Scaling(), BLOCK_TOKENS, pool_tokens, sessions_of(trace, pool_tokens), None
    )
    scripts = read_scripts(fits.data, "the trace")
    arrivals = tuple(scripts.arrival_us.tolist())
    return Plan(bytes(32), ScriptedWorkload.following(scripts, replayed=True), HORIZON_US, arrivals, (), 0)


def sessions_of(trace: list[TraceTurn], pool_tokens: int) -> int:
    """How many sessions fit the pool."""
    longest: dict[str, int] = {}
    for turn in trace:
        longest[turn.session] = max(longest.get(turn.session, 0), turn.prompt_tokens + max(1, turn.output_tokens))
    return sum(tokens <= pool_tokens // BLOCK_TOKENS * BLOCK_TOKENS for tokens in longest.values())


def in_order(plan: Plan, trace: list[TraceTurn], cell: Cell) -> float:
    """Reuse of the block cache alone, turns in the trace's order."""
    assert cell.step_costs is not None and isinstance(plan.workload, ScriptedWorkload)
    scripts = plan.workload.scripts
    run, rows = prepare(plan, ARM, cell, cell.step_costs, 0), order_of(scripts, trace)
    hits = 0
    for place, (session, number) in enumerate(rows):
        turn = run.turns[place]
        row = int(scripts.first_turn[session]) + number - 1
        turn.session, turn.turn, turn.prompt_tokens = session, number, scripts.prompt_tokens[row]
        units = -(-int(turn.prompt_tokens) // BLOCK_TOKENS)
        present = blocks.take(run, place)
        pool.reserve(run, units - present)
        blocks.release(run, place, units, int(turn.prompt_tokens) // BLOCK_TOKENS)
        hits += present * BLOCK_TOKENS
    return hits / int(scripts.prompt_tokens.sum())


def order_of(scripts: SessionScripts, trace: list[TraceTurn]) -> list[tuple[int, int]]:
    """(session, turn) of the scripts' turns in the trace's order; sessions that
    were left out are not there.
    """
    lengths: dict[str, list[int]] = {}
    for turn in trace:
        lengths.setdefault(turn.session, []).append(turn.prompt_tokens)
    names = iter(lengths)
    places = {}
    for index in range(len(scripts.turns)):
        prompts = scripts.prompt_tokens[scripts.first_turn[index] : scripts.first_turn[index + 1]].tolist()
        places[next(name for name in names if lengths[name] == prompts)] = index
    return [(places[turn.session], turn.turn) for turn in trace if turn.session in places]


def under_load(plan: Plan, cell: Cell) -> tuple[float, int, int]:
    """Reuse of all turns that were admitted, how many, and preemptions."""
    turns = simulate(plan, ARM, cell)["turns"].to_pandas().dropna(subset="cached_tokens")
    return float(turns.cached_tokens.sum() / turns.prompt_tokens.sum()), len(turns), int(turns.retractions.sum())


def theirs(trace: list[TraceTurn], cell: Cell, python: Path) -> float:
    """The mocker's reuse of the same sessions."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "trace.jsonl").open("w") as file:
            for turn in trace:
                due = {"timestamp": 1e3 * turn.arrival_s} if turn.arrival_s is not None else {}
                due |= {"delay": 1e3 * turn.wait_s} if turn.wait_s is not None else {}
                size = {"input_length": turn.prompt_tokens, "output_length": max(1, turn.output_tokens)}
                row = {"session_id": turn.session, **due, **size, "hash_ids": list(turn.blocks)}
                file.write(json.dumps(row) + "\n")
        write_profile(cell, folder / "profile.npz")
        asked = options(cell, folder / "profile.npz") | {"trace_block_size": trace[0].block_tokens}
        asked["max_sim_time_ms"] = HORIZON_US / 1e3
        request = {"trace": str(folder / "trace.jsonl"), "options": asked, "rounds": 1}
        (folder / "replay.json").write_text(json.dumps(request))
        command = [python, Path(__file__).with_name("dynamo_replay.py"), folder]
        done = subprocess.run(
            command, env=os.environ | {"DYN_LOG": "error"}, check=True, stdout=subprocess.PIPE, text=True
        )
        (last,) = json.loads(done.stdout.splitlines()[-1])["rounds"]
        return float(last["first_admission_prefix_cache_reused_ratio"])


def main() -> None:
    """Print the table or JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("trace", nargs="?", type=Path)
    parser.add_argument("--pool", type=int, action="append")
    parser.add_argument("--dynamo-python", type=Path)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    file = asked.trace or Path(os.environ.get("TRAP_TRACES", "")) / "mooncake_conversation.jsonl"
    trace = [item for item in read_trace(file, "mooncake") if isinstance(item, TraceTurn)]
    infinite = describe(iter(trace)).infinite_cache_hit_fraction
    rows: list[dict[str, Any]] = []
    for pool_tokens in asked.pool or POOLS:
        plan, cell = plan_of(trace, pool_tokens), cell_of(pool_tokens)
        load, admitted, preempted = under_load(plan, cell)
        row = {"pool_tokens": pool_tokens, "sessions": len(plan.base_arrivals_us), "turns_admitted": admitted}
        row |= {"in_order": in_order(plan, trace, cell), "under_load": load, "preemptions": preempted}
        if asked.dynamo_python:
            row["mocker"] = theirs(trace, cell, asked.dynamo_python)
        rows.append(row | {"infinite": infinite})
    if asked.json:
        print(json.dumps(rows, indent=1))
        return
    cells = [[f"{value:,}" if isinstance(value, int) else f"{value:.4f}" for value in row.values()] for row in rows]
    print(table([list(rows[0]), *cells]))


if __name__ == "__main__":
    main()
