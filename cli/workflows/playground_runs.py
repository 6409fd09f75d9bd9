"""The playground's simulated runs: one plan, one arm, one cell, read at once.

SIMULATED, literal seeds, no evidence. A load is a multiple of lambda_ref as model F
has it: the same share of the cell's all-miss capacity, here computed from the step
costs that the simulator takes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cli.workflows.playground_grid import rounded
from modelf.cells import CELLS
from modelf.costs import COSTS
from modelf.first_principles import all_miss_capacity
from modelf.workload import STANDARD_WORKLOAD, WORKLOADS
from registry.design import Arm, Burst, Design, Seeds, Window
from registry.plan import make_plan, plan_key
from runners.simulated.run import simulate
from verifier.readings import RunFrames, compute_readings
from verifier.run_report import frames_of

SEED = 1000
HORIZON_S = 8700.0
JUDGED = Window("judged", 5700.0, HORIZON_S)
LAST = Window("last", 8100.0, HORIZON_S)
BURST = Burst(sessions=200, start_s=1200.0, spread_s=60.0)
CALM, TRAPPED = Arm("NOBURST"), Arm("BURST", burst=BURST)
_RUN_DIGITS = 4
FREED_HIT = 0.9
"""A run counts as freed if this share of the follow-ups in `LAST` were full hits."""


Row = dict[str, float | int | None]
"""Readings of one run, by name; None where undefined."""


@dataclass(frozen=True)
class RunOrder:
    """One run: where, at which load, under which arm, with which literal seed; the
    cell's pool is taken `pool_factor` times.
    """

    cell: str
    workload: str
    load: float
    arm: Arm
    seed: int = SEED
    pool_factor: int = 1


def lambda_ref_per_s(cell: str) -> float:
    """The printed ratio (1 where there is none) times the standard workload's all-miss
    capacity from the cell's step costs, sessions/s.
    """
    costs, pool = CELLS[cell].step_costs, CELLS[cell].pool_tokens
    assert costs is not None
    reference = COSTS[cell].reference if cell in COSTS else 1.0
    return reference * all_miss_capacity(costs, STANDARD_WORKLOAD, pool)


def why_not_run(cell: str, workload: str) -> str | None:
    """Why the engine cannot serve this workload; None where it can."""
    longest, pool = WORKLOADS[workload].longest_turn_tokens(), CELLS[cell].pool_tokens
    if CELLS[cell].step_costs is None:
        return "The step costs of this cell are not known, so it cannot be simulated."
    if longest > pool:
        return (
            f"This engine cannot serve this workload: its longest turn takes {longest:,} tokens, the pool has {pool:,}."
        )
    return None


def frames(order: RunOrder) -> RunFrames:
    """The records of a run."""
    cell = CELLS[order.cell]
    design = Design(
        HORIZON_S, WORKLOADS[order.workload], (order.load,), (order.arm,), (), Seeds((order.seed,), "literal")
    )
    rate = order.load * lambda_ref_per_s(order.cell)
    plan = make_plan(plan_key("", 0, "", order.seed), design, order.arm, rate, order.load)
    return frames_of(simulate(plan, order.arm, replace(cell, pool_tokens=order.pool_factor * cell.pool_tokens)))


def readings_of(order: RunOrder, window: Window = JUDGED) -> Row:
    """The readings that the pages show, rounded."""
    cell = CELLS[order.cell]
    found = compute_readings(
        frames(order),
        window,
        pool_tokens=order.pool_factor * cell.pool_tokens,
        cache_block_tokens=cell.cache_block_tokens,
    )
    names = ("followup_hit_fraction", "idle_s", "turnover_s", "outstanding", "completions_per_s", "refused")
    return {name: rounded(found[name], _RUN_DIGITS) for name in names}


def many_readings(order: tuple[Window, tuple[RunOrder, ...]]) -> list[Row]:
    """`readings_of` several runs in one window; for a worker process."""
    window, runs = order
    return [readings_of(run, window) for run in runs]
