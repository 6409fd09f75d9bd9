"""All that the playground's pages show, computed before any is written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cli.workflows.playground_evidence import CELL, LOAD, TRIALS, WORKLOAD, Trial, evidence_row
from cli.workflows.playground_grid import DEFAULT, LOADS, calculator_data, head, rounded
from cli.workflows.playground_loop import loop_data
from cli.workflows.playground_renewal import renewal_data
from cli.workflows.playground_runs import (
    BIN_S,
    BURST,
    HORIZON_S,
    JUDGED,
    LAST,
    SEED,
    Row,
    RunOrder,
    many_readings,
    replay_of,
    why_not_run,
)
from cli.workflows.reporter import Reporter
from modelf.cells import CELLS
from modelf.workload import WORKLOADS
from registry.design import Arm, GateSetting
from runners.local_queue import run_all

RUN_LOADS = (*(load for load in LOADS if load <= 2.5), *[load for load in LOADS if load > 2.5][2::3])
"""Of the loads, those that are simulated: each hundredth to 2.5, each sixth to 5."""

CALM, HIT = Arm("NOBURST"), Arm("BURST", burst=BURST)
_CHUNK = 20


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
        arms = HIT, Arm("RESCUE", burst=BURST, gate=gate)
        return RunOrder(self.cell, self.workload, self.load, arms[0]), RunOrder(
            self.cell, self.workload, self.load, arms[1]
        )


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


@dataclass(frozen=True)
class Grid:
    """What is computed; less of it for a test."""

    cells: tuple[str, ...] = tuple(CELLS)
    loads: tuple[float, ...] = LOADS
    run_loads: tuple[float, ...] = RUN_LOADS
    trials: tuple[Trial, ...] = TRIALS
    scenarios: tuple[Scenario, ...] = SCENARIOS


def playground_data(grid: Grid, reporter: Reporter) -> dict[str, Any]:
    """By page: its data, JSON values only. Runs are simulated on all cores."""
    loop = loop_data(grid.cells, grid.loads)
    reporter.say("computed model F")
    runs = _all_readings(grid, reporter)
    evidence = [evidence_row(trial, runs[LAST, trial.orders()]) for trial in grid.trials]
    loop |= {"evidence": evidence, "evidence_on": {"cell": CELL, "workload": WORKLOAD, "load": LOAD}}
    found = {
        "loop": loop,
        "timescales": _timescales(grid, loop, runs),
        "renewal": renewal_data(grid.cells, grid.loads),
        "calculator": calculator_data(grid.cells, grid.loads),
        "replay": _replays(grid, reporter),
    }
    cell, workload, load = DEFAULT
    start = {"cell": cell, "workload": workload}
    return {name: data | {"start": start | _start(data, load)} for name, data in found.items()}


def _start(data: dict[str, Any], load: float) -> dict[str, int]:
    loads = data.get("loads", [load])
    return {"index": min(range(len(loads)), key=lambda i: abs(loads[i] - load))}


def _combinations(grid: Grid) -> list[tuple[str, str]]:
    """Cells and workloads that can be simulated."""
    pairs = [(cell, workload) for cell in grid.cells for workload in WORKLOADS]
    return [pair for pair in pairs if why_not_run(*pair) is None]


def _chunks(grid: Grid, cell: str, workload: str, arm: Arm) -> list[tuple[RunOrder, ...]]:
    orders = [RunOrder(cell, workload, load, arm) for load in grid.run_loads]
    return [tuple(orders[i : i + _CHUNK]) for i in range(0, len(orders), _CHUNK)]


def _all_readings(grid: Grid, reporter: Reporter) -> dict[Any, list[Row]]:
    """By order: the readings of the runs of all loads, and of the exits."""
    orders = [
        (JUDGED, chunk)
        for pair in _combinations(grid)
        for arm in (CALM, HIT)
        for chunk in _chunks(grid, *pair, arm)
    ] + [(LAST, trial.orders()) for trial in grid.trials]  # fmt: skip
    found: dict[Any, list[Row]] = {}
    total, done = sum(len(runs) for _, runs in orders), 0
    for order, result in run_all(many_readings, orders):
        if isinstance(result, Exception):
            raise result
        found[order] = result
        done += len(result)
        reporter.step("simulated runs", done, total)
    return found


def _timescales(grid: Grid, loop: dict[str, Any], runs: dict[Any, list[Row]]) -> dict[str, Any]:
    """Gap and turnover by cell, workload, load: simulated with and without the burst, and
    what model F has of them.
    """
    places = [loop["loads"].index(load) for load in grid.run_loads]
    found = {}
    for cell in grid.cells:
        found[cell] = head(CELLS[cell])
        for workload in WORKLOADS:
            entry = loop["cells"][cell]["workloads"][workload]
            model = {
                name: [entry["columns"][name][i] for i in places]
                for name in ("rho", "turnover_s", "gap_growth_s")
                if name in entry["columns"]
            }
            about = {"capacity": entry["capacity"], "problem": entry["problem"]}
            found[cell]["workloads"][workload] = about | {"columns": model | _simulated(grid, cell, workload, runs)}
    return {"loads": list(grid.run_loads), "cells": found, "seed": SEED}


def _simulated(grid: Grid, cell: str, workload: str, runs: dict[Any, list[Row]]) -> dict[str, Sequence[Any]]:
    if why_not_run(cell, workload):
        return {}
    found: dict[str, Sequence[Any]] = {}
    for name, arm in (("calm", CALM), ("burst", HIT)):
        rows = [row for chunk in _chunks(grid, cell, workload, arm) for row in runs[JUDGED, chunk]]
        for short, reading in (("gap_s", "idle_s"), ("turnover_s", "turnover_s"), ("hits", "followup_hit_fraction")):
            found[f"{name}_{short}"] = [row[reading] for row in rows]
        found[f"{name}_ratio"] = [_ratio(row["idle_s"], row["turnover_s"]) for row in rows]
    return found


def _ratio(gap_s: float | None, turnover_s: float | None) -> float | None:
    return rounded(gap_s / turnover_s, 3) if gap_s is not None and turnover_s else None


def _most(*runs: dict[str, Any]) -> int:
    """The top of the pictures of a scenario: the most sessions in one place, rounded up."""
    most = max(max(run[name]) for run in runs for name in ("engine", "tools", "gate"))
    return int(10 * math.ceil(most / 10))


def _replays(grid: Grid, reporter: Reporter) -> dict[str, Any]:
    """Two engines over time, by scenario."""
    wanted = [scenario for scenario in grid.scenarios if scenario.cell in grid.cells]
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
