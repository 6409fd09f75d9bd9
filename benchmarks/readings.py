"""How many turns a second the verifier's readings are recomputed from, on one core.

`python benchmarks/readings.py [--json]`. The runs are e2's BURST arm at 1.65
lambda_ref on sglang-300k, 8700 s, literal seeds 0 to 2, simulated and written
as a run is. Every window of e2 is read. Best of five each, in CPU seconds.

turns_per_s         all windows of a run: turns of the run over the time
window_turns_per_s  one window: the same, over the mean time of a window
whole_turns_per_s   all windows, and Parquet decoded and turned into columns
"""

from __future__ import annotations

import argparse
import io
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from modelf.cells import CELLS
from modelf.costs import COSTS
from registry.design import Window
from registry.draft import load_draft
from registry.plan import make_plan, plan_key
from runners.simulated.run import simulate
from verifier.readings import RunFrames, compute_readings
from verifier.run_report import frames_of

ROUNDS = 5
RATE = 1.65
WANTED_PER_S = 1e6
ROOT = Path(__file__).resolve().parent.parent


def best_s(work: Callable[[], object]) -> float:
    """CPU seconds of the best round."""
    took = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        took.append(time.process_time() - start)
    return min(took)


def written(tables: dict[str, pa.Table]) -> dict[str, bytes]:
    """The tables as Parquet bytes."""
    files = {}
    for name, table in tables.items():
        sink = io.BytesIO()
        pq.write_table(table, sink)
        files[name] = sink.getvalue()
    return files


def main() -> None:
    """Print the figures beside what is wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    pa.set_cpu_count(1)
    cell, lambda_ref = CELLS["sglang-300k"], COSTS["sglang-300k"].lambda_ref()
    design = load_draft((ROOT / "rules" / "e2.yaml").read_bytes(), "e2.yaml").design
    arm, windows = design.arm("BURST"), [window for window in design.windows if isinstance(window, Window)]
    keys = [plan_key("", 0, "", seed) for seed in (0, 1, 2)]
    runs = [simulate(make_plan(key, design, arm, RATE * lambda_ref, RATE), arm, cell) for key in keys]
    turns = sum(run["turns"].num_rows for run in runs)
    frames, files = [frames_of(run) for run in runs], [written(run) for run in runs]

    def read(found: RunFrames) -> None:
        for window in windows:
            compute_readings(found, window, pool_tokens=cell.pool_tokens, cache_block_tokens=cell.cache_block_tokens)

    def decode(data: dict[str, bytes]) -> RunFrames:
        tables = {name: pq.read_table(io.BytesIO(file), use_threads=False) for name, file in data.items()}
        return frames_of(tables)

    # Columns are kept beside the frames they come from: a copy has none yet.
    readings_s = best_s(lambda: [read(replace(found)) for found in frames])
    whole_s = best_s(lambda: [read(decode(data)) for data in files])
    figures = {
        "turns": turns,
        "windows": len(windows),
        "turns_per_s": turns / readings_s,
        "window_turns_per_s": turns * len(windows) / readings_s,
        "whole_turns_per_s": turns / whole_s,
        "load_1m": os.getloadavg()[0],
    }
    if asked.json:
        print(json.dumps(figures, indent=2))
        return
    print(f"readings of {turns} turns in {len(windows)} windows, one core:")
    print(f"{figures['turns_per_s']:,.0f} turns/s for all windows, at least {WANTED_PER_S:,.0f} is wanted")
    print(
        f"{figures['window_turns_per_s']:,.0f} for one window; {figures['whole_turns_per_s']:,.0f} with Parquet decoded"
    )


if __name__ == "__main__":
    main()
