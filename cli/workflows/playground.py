"""All that the playground's pages show, computed before any is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cli.workflows.playground_evidence import CELL, LOAD, TRIALS, WORKLOAD, Trial, evidence_row
from cli.workflows.playground_grid import DEFAULT, LOADS, calculator_data, head, rounded
from cli.workflows.playground_loop import loop_data
from cli.workflows.playground_renewal import renewal_data
from cli.workflows.playground_replay import SCENARIOS, Scenario, replays
from cli.workflows.playground_runs import (
    CALM,
    JUDGED,
    LAST,
    SEED,
    TRAPPED,
    Row,
    RunOrder,
    many_readings,
    why_not_run,
)
from cli.workflows.reporter import Reporter
from modelf.cells import CELLS
from modelf.workload import WORKLOADS
from registry.design import Arm
from runners.local_queue import run_all

RUN_LOADS = (*(load for load in LOADS if load <= 2.5), *[load for load in LOADS if load > 2.5][2::3])
"""Of the loads, those that are simulated: each hundredth to 2.5, each sixth to 5."""

_CHUNK = 20


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
        "replay": replays([scenario for scenario in grid.scenarios if scenario.cell in grid.cells], reporter),
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
        for arm in (CALM, TRAPPED)
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
    for name, arm in (("calm", CALM), ("burst", TRAPPED)):
        rows = [row for chunk in _chunks(grid, cell, workload, arm) for row in runs[JUDGED, chunk]]
        for short, reading in (("gap_s", "idle_s"), ("turnover_s", "turnover_s"), ("hits", "followup_hit_fraction")):
            found[f"{name}_{short}"] = [row[reading] for row in rows]
        found[f"{name}_ratio"] = [_ratio(row["idle_s"], row["turnover_s"]) for row in rows]
    return found


def _ratio(gap_s: float | None, turnover_s: float | None) -> float | None:
    return rounded(gap_s / turnover_s, 3) if gap_s is not None and turnover_s else None
