"""Model F for the command line: names checked, loads parsed, errors in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modelf.conformance import Comparison, compare_all, quantities
from modelf.costs import COSTS
from modelf.workload import WORKLOADS
from registry.errors import TrapError

MAX_LOADS = 100_000


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


def sweep(cell: str, workload: str, loads: tuple[float, ...]) -> Sweep:
    """Model F at every load; TrapError for unknown names and loads outside."""
    for name, value, known in (("cell", cell, COSTS), ("workload", workload, WORKLOADS)):
        if value not in known:
            raise TrapError(f"unknown {name}", where=f"--{name}", value=value, remedy=f"one of: {', '.join(known)}")
    try:
        rows = tuple(quantities(cell, workload, load) for load in loads)
    except ValueError as error:
        raise TrapError(
            f"outside model F: {error}", where="--load", remedy="take a larger multiple of lambda_ref"
        ) from None
    return Sweep(cell, workload, COSTS[cell].origin, loads, rows)


def conform() -> list[Comparison]:
    """Every printed number beside ours."""
    return compare_all()
