"""Model F for the command line: names checked, loads parsed, errors in words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modelf.cells import CELLS, Cell
from modelf.conformance import Comparison, compare_all, quantities, quantities_of
from modelf.costs import COSTS, Vector, session_cost
from modelf.first_principles import turn_costs
from modelf.workload import STANDARD_WORKLOAD, WORKLOADS, Workload
from registry.errors import StudyError, TrapError
from registry.study import find_root
from registry.study_cells import cells_of

MAX_LOADS = 100_000
OWN_ORIGIN = "the cell's own step costs; lambda_ref is taken for the standard workload's computed all-miss capacity"


@dataclass(frozen=True)
class Sweep:
    """Model F's quantities at each load (a multiple of lambda_ref)."""

    cell: str
    workload: str
    origin: str
    loads: tuple[float, ...]
    rows: tuple[dict[str, float], ...]

    def as_json(self) -> dict[str, Any]:
        """One object for a single load, a list of rows for a sweep."""
        head = {"schema": "trap-theory-1", "cell": self.cell, "workload": self.workload, "origin": self.origin}
        rows = [{"load": load, **row} for load, row in zip(self.loads, self.rows, strict=True)]
        return head | rows[0] if len(rows) == 1 else head | {"rows": rows}


def parse_loads(texts: list[str]) -> tuple[float, ...]:
    """Loads from `1.35` and `FROM:TO:COUNT`; TrapError says which is wrong."""
    loads: list[float] = []
    for text in texts:
        parts = text.split(":")
        try:
            if len(parts) == 1:
                loads.append(float(text))
                continue
            low, high, count = float(parts[0]), float(parts[1]), int(parts[2])
        except (ValueError, IndexError):
            raise TrapError("not a load", where="--load", value=text, remedy="a number, or FROM:TO:COUNT") from None
        if len(parts) != 3 or not 2 <= count <= MAX_LOADS:
            raise TrapError("not a sweep", where="--load", value=text, remedy=f"FROM:TO:COUNT, COUNT 2 to {MAX_LOADS}")
        loads += [low + (high - low) * i / (count - 1) for i in range(count)]
    return tuple(loads)


def sweep(cell: str, workload: str, loads: tuple[float, ...], folder: Path) -> Sweep:
    """Model F at every load; TrapError for unknown names and loads outside.

    Beside the paper's cells, those of the study around `folder` that have
    step costs.
    """
    if workload not in WORKLOADS:
        known = ", ".join(WORKLOADS)
        raise TrapError("unknown workload", where="--workload", value=workload, remedy=f"one of: {known}")
    own = {} if cell in COSTS else _own_cells(folder)
    if cell not in COSTS and cell not in own:
        remedy = f"one of: {', '.join([*COSTS, *own])}"
        raise TrapError("unknown cell", where="--cell", value=cell, remedy=remedy)
    try:
        if cell in own:
            rows = tuple(_own_quantities(own[cell], WORKLOADS[workload], load) for load in loads)
        else:
            rows = tuple(quantities(cell, workload, load) for load in loads)
    except ValueError as error:
        remedy = "take a larger multiple of lambda_ref"
        raise TrapError(f"outside model F: {error}", where="--load", remedy=remedy) from None
    origin = OWN_ORIGIN if cell in own else COSTS[cell].origin
    return Sweep(cell, workload, origin, loads, rows)


def _own_cells(folder: Path) -> dict[str, Cell]:
    """The cells without fitted costs: of the study around a folder, if there is one, and our own."""
    try:
        cells = cells_of(find_root(folder))
    except StudyError:
        cells = CELLS
    return {name: cell for name, cell in cells.items() if name not in COSTS and cell.step_costs}


def _own_quantities(cell: Cell, workload: Workload, load: float) -> dict[str, float]:
    costs, reference = own_costs(cell, workload)
    return quantities_of(costs, workload, load, reference)


def own_costs(cell: Cell, workload: Workload) -> tuple[Vector, float]:
    """Turn costs from a cell's own step costs, seconds, and lambda_ref (the standard
    workload's all-miss capacity) over the workload's lambda_miss.
    """
    assert cell.step_costs is not None
    costs = turn_costs(cell.step_costs, workload, cell.pool_tokens).all_miss_s
    standard = turn_costs(cell.step_costs, STANDARD_WORKLOAD, cell.pool_tokens).all_miss_s
    return costs, session_cost(workload, costs) / session_cost(STANDARD_WORKLOAD, standard)


def conform() -> list[Comparison]:
    """Every printed number beside ours."""
    return compare_all()
