"""Two engines over time, in bins: left alone, and rescued by a session cap.

SIMULATED, one plan for both.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cli.workflows.playground_grid import rounded
from cli.workflows.playground_runs import BURST, HORIZON_S, SEED, TRAPPED, RunOrder, frames
from cli.workflows.reporter import Reporter
from modelf.cells import CELLS
from registry.design import Arm, GateSetting
from runners.local_queue import run_all
from verifier.exact_statistics import FloatArray
from verifier.readings import RunFrames
from verifier.series import series_of
from verifier.turn_columns import Spans, float_column

BIN_S = 20.0


@dataclass(frozen=True)
class Scenario:
    """A replay: the same arrivals left alone, and with `cap` from `engage_s` on."""

    cell: str
    workload: str
    load: float
    cap: int
    engage_s: float = 1800.0

    def orders(self) -> tuple[RunOrder, RunOrder]:
        """Left alone, rescued."""
        gate = GateSetting(self.cap, self.engage_s, 300.0)
        rescue = Arm("RESCUE", burst=BURST, gate=gate)
        alone, rescued = (RunOrder(self.cell, self.workload, self.load, arm) for arm in (TRAPPED, rescue))
        return alone, rescued


SCENARIOS = (
    Scenario("sglang-300k", "standard", 1.35, 20),
    Scenario("sglang-300k", "standard", 1.65, 20),
    Scenario("sglang-300k", "mirror", 1.65, 20),
    Scenario("sglang-native", "standard", 4.0, 54, 2100.0),
    Scenario("sglang-native", "mirror", 4.0, 64, 2100.0),
    Scenario("vllm-300k", "standard", 1.65, 20),
    Scenario("vllm-300k", "mirror", 1.65, 20),
    Scenario("h200-600k", "standard", 2.0, 48),
    Scenario("h200-600k", "mirror", 2.0, 48),
    Scenario("llama-300k", "standard", 1.65, 20),
    Scenario("llama-300k", "mirror", 1.65, 20),
    Scenario("vllm-cpu-mini", "mirror", 1.5, 3),
)
"""The paper's caps, 20, 48 and 64; but 54, our rescue cap, where 64 comes off after the end,
and on the small engine 3, of 2 to 4 the one that brings most hits back.
"""


def _most(*runs: dict[str, Any]) -> int:
    """The top of the pictures of a scenario: the most sessions in one place, rounded up."""
    most = max(max(run[name]) for run in runs for name in ("engine", "tools", "gate"))
    return int(10 * math.ceil(most / 10))


def replays(wanted: Sequence[Scenario], reporter: Reporter) -> dict[str, Any]:
    """Two engines over time, by scenario."""
    orders = [order for scenario in wanted for order in scenario.orders()]
    made: dict[RunOrder, dict[str, Any]] = {}
    for order, result in run_all(replay_of, orders):
        if isinstance(result, Exception):
            raise result
        made[order] = result
        reporter.step("replays", len(made), len(orders))
    rows = []
    for scenario in wanted:
        alone, rescued = (made[order] for order in scenario.orders())
        words = f"{scenario.cell}, {scenario.workload} workload, load {scenario.load:g}, cap {scenario.cap}"
        row = {"words": words, "load": scenario.load, "cap": scenario.cap, "most": _most(alone, rescued)}
        rows.append(row | {"alone": alone, "rescued": rescued})
    burst = {"sessions": BURST.sessions, "start_s": BURST.start_s, "end_s": BURST.start_s + BURST.spread_s}
    return {"bin_s": BIN_S, "horizon_s": HORIZON_S, "burst": burst, "seed": SEED, "scenarios": rows}


def replay_of(order: RunOrder) -> dict[str, Any]:
    """One engine over time, in bins of `BIN_S`: hit fraction (None where no follow-up
    finished), sessions at the engine, at the gate and idle in tools, all time averages.
    """
    made = frames(order)
    series = series_of(made, HORIZON_S, BIN_S, CELLS[order.cell].cache_block_tokens)
    present = _present(made, series.middle_s.size)
    tools = np.maximum(present - series.outstanding - series.at_gate, 0.0)
    counts = {"engine": series.outstanding, "gate": series.at_gate, "tools": tools}
    return {
        "hits": [rounded(hit, 3) for hit in series.hits],
        **{name: [rounded(value, 3) if value >= 0.05 else 0 for value in values] for name, values in counts.items()},
        "engaged_s": rounded(series.engaged_s, 4),
        "release_s": rounded(series.release_s, 4),
    }


def _present(made: RunFrames, bins: int) -> FloatArray:
    """Sessions arrived and not over, averaged over each bin."""
    begin_s, end_s = (float_column(made.sessions, name) for name in ("arrival_s", "end_s"))
    spans = Spans(begin_s, np.where(np.isnan(end_s), np.inf, end_s), True)
    edges = np.minimum(BIN_S * np.arange(bins + 1), HORIZON_S)
    return np.array([
        spans.overlaps(start_s, stop_s).sum() / (stop_s - start_s)
        for start_s, stop_s in itertools.pairwise(edges)
    ])  # fmt: skip
