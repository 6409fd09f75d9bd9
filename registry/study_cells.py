"""A study's own cells: `cells/<name>.yaml`, beside the paper's.

A registration freezes the cell that it names, so a later change of the file
changes nothing that is registered.
"""

from __future__ import annotations

from pathlib import Path

from modelf.cells import CELLS, Cell, Constant, StepCosts
from registry.errors import DraftError
from registry.schema_check import check
from registry.strict_yaml import load

FOLDER = "cells"


def parse_cell(text: bytes, name: str) -> Cell:
    """A cell file; raises DraftError or ManyErrors."""
    document = load(text, name)
    if not isinstance(document.value, dict):
        raise DraftError("a cell file is a mapping", where=name, remedy="start with `schema: trap-cell-1`")
    check(document, "cell")
    fields = {key: value for key, value in document.value.items() if key != "schema"}
    if fields["name"] in CELLS:
        raise DraftError(
            "the name is one of the paper's cells",
            where=document.where(("name",)),
            value=fields["name"],
            remedy="choose another name",
        )
    costs = fields.pop("step_costs", None)
    numbers = {key: float(value) for key, value in (costs or {}).items() if key != "chunk_tokens"}
    fields["step_costs"] = StepCosts(**numbers, chunk_tokens=costs["chunk_tokens"]) if costs else None
    fields["constants"] = tuple(Constant(**constant) for constant in fields["constants"])
    return Cell(**fields)


def cells_of(root: Path) -> dict[str, Cell]:
    """The paper's cells and those of the study at `root`, by name."""
    cells = dict(CELLS)
    for path in sorted((root / FOLDER).glob("*.yaml")):
        cell = parse_cell(path.read_bytes(), f"{FOLDER}/{path.name}")
        if path.stem != cell.name:
            raise DraftError(
                "a cell file bears its cell's name",
                where=str(path),
                value=cell.name,
                remedy=f"call it {cell.name}.yaml",
            )
        cells[cell.name] = cell
    return cells
