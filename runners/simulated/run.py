"""One simulated run: a plan under an arm on a cell, to the horizon."""

from __future__ import annotations

import pyarrow as pa

from modelf.cells import Cell
from registry.design import Arm
from registry.errors import CapExceeded, TrapError
from registry.plan import MAX_ARRIVALS, Plan
from registry.scripted_workload import unit_tokens_of
from runners.simulated.loop import play
from runners.simulated.scripted import check_arm
from runners.simulated.setup import prepare
from runners.simulated.state import Run
from runners.simulated.tables import engine_table, gate_table, sessions_table, turns_table

_SPARE_SESSIONS = 2048


def simulate(plan: Plan, arm: Arm, cell: Cell) -> dict[str, pa.Table]:
    """Run `plan` under `arm` on `cell`: tables turns, sessions, gate, engine.

    The result depends on the arguments alone, to the last bit. Turns and
    sessions not over before the horizon are `open at horizon`, with nulls for
    what had not come yet. TrapError where the cell's step costs are unknown or
    its pool is too small for the longest turn that the workload may ask for.
    """
    run = played(plan, arm, cell)
    return {
        "turns": turns_table(run, plan),
        "sessions": sessions_table(run, plan),
        "gate": gate_table(run, plan),
        "engine": engine_table(run),
    }


def played(plan: Plan, arm: Arm, cell: Cell) -> Run:
    """The core's records after the last event before the horizon."""
    if cell.step_costs is None:
        raise TrapError(
            f"cell {cell.name} cannot be simulated",
            value=cell.name,
            remedy="name a cell with step costs, or run it on its real engine",
        )
    check_arm(plan, arm, cell)
    longest, unit = plan.workload.longest_turn_tokens(plan.step_cap), unit_tokens_of(plan.workload, cell)
    if longest > cell.pool_tokens // unit * unit:
        raise TrapError(
            f"the pool of cell {cell.name} is too small for one turn of this workload",
            value=f"a pool of {cell.pool_tokens} tokens, a turn of {longest}",
            remedy="a larger pool, fewer turns or shorter prompts",
        )
    room = plan.population + max(_SPARE_SESSIONS, plan.population)
    run = prepare(plan, arm, cell, cell.step_costs, room)
    play(run)
    while run.loop[0].hungry:
        room *= 2
        if room > MAX_ARRIVALS:
            raise CapExceeded(
                "a closed population takes more sessions than a run may have",
                value=plan.population,
                remedy=f"at most {MAX_ARRIVALS} a run: a shorter horizon, or costs above zero",
            )
        run = _carried(run, prepare(plan, arm, cell, cell.step_costs, room))
        run.loop[0].hungry = 0
        play(run)
    return run


def _carried(old: Run, new: Run) -> Run:
    """The larger records with the state of the smaller ones.

    What a population's later sessions draw does not depend on the room, so the
    new tool times and the rows beyond the old ones stay as they are.
    """
    for before, after in zip(old, new, strict=True):
        if before is not old.tool_us:
            after[: len(before)] = before
    return new
