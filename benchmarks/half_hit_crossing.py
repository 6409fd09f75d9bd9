"""Where a closed population's hits fall through 0.5: theory against simulator.

`python benchmarks/half_hit_crossing.py --freeze` writes the predictions of
`modelf` to half_hit_predictions.json, once; it runs no simulation. Without the
flag: the simulated crossings, against that file as it stands. Both sides share
the step costs (first principles) and the workload; the simulator keeps its own
cache, scheduler and batch. Nothing is fitted to either side. SIMULATED only:
no engine was run. `--long` takes another, later window than the one fixed with
the predictions: exploratory, to see what the start from nothing does.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from cli.render.table import table
from modelf.cells import Cell
from modelf.closed_population import half_hit_sessions, onset_of
from modelf.first_principles import all_miss_capacity, step_costs
from modelf.hardware import GPUS, MODELS
from modelf.published import published
from modelf.workload import STANDARD_WORKLOAD, Workload
from registry.design import Arm
from registry.plan import MICROSECONDS, Plan, plan_key
from runners.simulated.run import simulate

PREDICTIONS = Path(__file__).with_name("half_hit_predictions.json")
WINDOW = (1500.0, 6000.0)
LONG_WINDOW = (10_000.0, 30_000.0)
HEAD = ["cell", "predicted", "fluid", "simulated", "by seed", "bracket", "hits there", "error", "fluid error"]
SEEDS = (0, 1)
WORKERS = 2
QWEN, LLAMA = "Qwen2.5-7B-Instruct", "Llama-3.1-8B-Instruct"
A100, H200 = "A100 80GB PCIe", "H200 NVL"


@dataclass(frozen=True)
class Setting:
    """One cell: model, GPU, KV pool (tokens), mean tool time (seconds)."""

    model: str
    gpu: str
    pool_tokens: int
    mean_tool_s: float

    @property
    def name(self) -> str:
        """Short words for a table."""
        model, gpu = self.model.split("-")[0], self.gpu.split()[0]
        return f"{model} {gpu} {self.pool_tokens:,} {self.mean_tool_s:g} s"

    @property
    def workload(self) -> Workload:
        """The standard workload with this tool time."""
        return replace(STANDARD_WORKLOAD, mean_tool_s=self.mean_tool_s)

    @property
    def cell(self) -> Cell:
        """The cell a simulator runs: first-principles step costs."""
        costs = step_costs(MODELS[self.model], GPUS[self.gpu])
        return Cell(self.name, "simulated", "-", self.model, self.gpu, self.pool_tokens, 1, costs, ())


SETTINGS = (
    Setting(QWEN, A100, 150_000, 5),
    Setting(QWEN, A100, 300_000, 5),
    Setting(QWEN, A100, 600_000, 5),
    Setting(QWEN, A100, 955_757, 5),
    Setting(QWEN, A100, 300_000, 15),
    Setting(QWEN, H200, 300_000, 5),
    Setting(QWEN, H200, 600_000, 5),
    Setting(QWEN, H200, 955_757, 15),
    Setting(LLAMA, A100, 150_000, 15),
    Setting(LLAMA, A100, 300_000, 5),
    Setting(LLAMA, H200, 600_000, 5),
    Setting(LLAMA, H200, 300_000, 15),
)


def freeze() -> None:
    """Write the predictions; FileExistsError if they are written already."""
    rows = []
    for setting in SETTINGS:
        costs = step_costs(MODELS[setting.model], GPUS[setting.gpu])
        arguments = (costs, setting.workload, setting.pool_tokens)
        rows.append(
            {
                **asdict(setting),
                "n_half": round(half_hit_sessions(*arguments), 2),
                "n_half_fluid": round(half_hit_sessions(*arguments, fluctuation=False), 2),
                "n_on": round(onset_of(*arguments), 2),
                "lambda_miss_per_s": round(all_miss_capacity(*arguments), 5),
                "step_costs": asdict(costs),
            }
        )
    document = {
        "what": "predicted 0.5-hit crossing of the closed population, sessions; n_half (with the demand-fluctuation "
        "layer) is the prediction that is scored",
        "frozen_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "to_be_run": {"horizon_s": WINDOW[1], "window_start_s": WINDOW[0], "literal_seeds": SEEDS},
        "predictions": rows,
    }
    with PREDICTIONS.open("x", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")


def hit_fractions(setting: Setting, sessions: int, window: tuple[float, float]) -> list[float]:
    """Follow-ups in the window with their whole prefix cached, by seed."""
    workload, hits = setting.workload, []
    start_s, end_s = window
    for seed in SEEDS:
        plan = Plan(plan_key("", 0, "", seed), workload, round(end_s * MICROSECONDS), (), (), sessions)
        turns = simulate(plan, Arm("CLOSED", population=sessions), setting.cell)["turns"]
        done_s, turn, cached, prompt, reusable = (
            np.asarray(turns[name].to_numpy(zero_copy_only=False), dtype=np.float64)
            for name in ("done_s", "turn", "cached_tokens", "prompt_tokens", "reusable_tokens")
        )
        counted = (turn >= 2) & (done_s >= start_s) & (done_s < end_s)
        hits.append(float((cached >= np.minimum(reusable, prompt - 1))[counted].mean()))
    return hits


@dataclass(frozen=True)
class Crossing:
    """A simulated crossing: from both seeds together, and from each."""

    sessions: float
    by_seed: tuple[float, ...]
    bracket: tuple[int, int]
    hits: tuple[float, float]


def simulated_crossing(setting: Setting, predicted: float, window: tuple[float, float]) -> Crossing:
    """Bracket the crossing, bisect to 1 session (2% of n where that is more),
    interpolate.
    """
    at: dict[int, list[float]] = {}

    def hit(sessions: int) -> float:
        if sessions not in at:
            at[sessions] = hit_fractions(setting, sessions, window)
        return float(np.mean(at[sessions]))

    low, high = max(1, math.floor(0.7 * predicted)), math.ceil(1.4 * predicted)
    while hit(low) < 0.5 and low > 1:
        low = max(1, int(0.7 * low))
    while hit(high) >= 0.5:
        high = math.ceil(1.4 * high)
    while high - low > max(1, round(0.02 * predicted)):
        middle = (low + high) // 2
        low, high = (middle, high) if hit(middle) >= 0.5 else (low, middle)
    lines = zip((hit(low), *at[low]), (hit(high), *at[high]), strict=True)
    both, *each = (low + (high - low) * (above - 0.5) / (above - under) for above, under in lines)
    return Crossing(both, tuple(each), (low, high), (hit(low), hit(high)))


def score(window: tuple[float, float]) -> None:
    """Run the simulator against the frozen file and print the errors."""
    raw = PREDICTIONS.read_bytes()
    document = json.loads(raw)
    rows = document["predictions"]
    print(f"predictions frozen {document['frozen_at']}, SHA-256 {hashlib.sha256(raw).hexdigest()}")
    names = ("model", "gpu", "pool_tokens", "mean_tool_s")
    settings = [Setting(*(row[name] for name in names)) for row in rows]
    start = time.perf_counter()
    with ProcessPoolExecutor(WORKERS) as pool:
        found = list(pool.map(simulated_crossing, settings, [row["n_half"] for row in rows], [window] * len(rows)))
    print(table([HEAD, *(_line(*parts) for parts in zip(settings, rows, found, strict=True))], ""))
    for key, words in (("n_half", "with demand fluctuation (scored)"), ("n_half_fluid", "fluid")):
        print(f"{words}: {_errors([row[key] for row in rows], [crossing.sessions for crossing in found])}")
    paper = published()["first_principles"]["half_hit_crossing_mean_error_sessions"]
    print(f"the paper, its own first-principles model against real engines: {paper} sessions on average")
    print(f"SIMULATED, window {window[0]:g}-{window[1]:g} s, {time.perf_counter() - start:.0f} s of work")
    if window != WINDOW:
        print("EXPLORATORY: not the window that was fixed with the predictions")


def _line(setting: Setting, row: dict[str, float], found: Crossing) -> list[str]:
    return [
        setting.name,
        f"{row['n_half']:.1f}",
        f"{row['n_half_fluid']:.1f}",
        f"{found.sessions:.1f}",
        " ".join(f"{sessions:.1f}" for sessions in found.by_seed),
        "{}-{}".format(*found.bracket),
        "{:.2f} {:.2f}".format(*found.hits),
        f"{row['n_half'] - found.sessions:+.1f}",
        f"{row['n_half_fluid'] - found.sessions:+.1f}",
    ]


def _errors(predicted: list[float], simulated: list[float]) -> str:
    error = np.subtract(predicted, simulated)
    share = 100 * float((np.abs(error) / simulated).mean())
    return (
        f"mean absolute error {np.abs(error).mean():.2f} sessions ({share:.1f}%), "
        f"mean {error.mean():+.2f}, worst {np.abs(error).max():.1f}"
    )


def main() -> None:
    """Freeze the predictions, or score them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--freeze", action="store_true", help="write the predictions; no simulation")
    parser.add_argument("--long", action="store_true", help="exploratory: a later and longer window")
    arguments = parser.parse_args()
    if arguments.freeze:
        freeze()
    else:
        score(LONG_WINDOW if arguments.long else WINDOW)


if __name__ == "__main__":
    main()
