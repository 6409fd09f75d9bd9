"""The form of a frozen registration: every field of the kind it should be.

The author writes these bytes, so nothing about them is taken for granted: a
field of another kind, a cell outside its schema or a calibration
other than the draft's make the registration unreadable.
"""

from __future__ import annotations

from typing import Any

from modelf.cells import Cell, Constant, StepCosts
from registry.errors import DraftError
from registry.schema_check import check
from registry.strict_yaml import Document


def check_form(value: Any, name: str) -> None:
    """Raise DraftError or ManyErrors unless the value is a registration."""
    check(Document(name, value), "registration")
    cell = {key: entry for key, entry in value["cell"].items() if key != "step_costs" or entry is not None}
    check(Document(f"{name}, field cell", {"schema": "trap-cell-1", **cell}), "cell")
    check(Document(f"{name}, field draft", value["draft"]), "draft")


def frozen_cell(value: dict[str, Any]) -> Cell:
    """The cell of a registration whose form holds."""
    costs = StepCosts(**value["step_costs"]) if value["step_costs"] else None
    constants = tuple(Constant(**constant) for constant in value["constants"])
    return Cell(**{**value, "step_costs": costs, "constants": constants})


def check_quoted(value: dict[str, Any], name: str) -> None:
    """Raise DraftError unless calibration, engine and plans are those that the draft names."""
    calibration = value["calibration"]
    quoted = calibration["registration"] if calibration else None
    if quoted != value["draft"].get("calibration"):
        raise DraftError("another calibration is frozen than the draft names", where=name, value=quoted)
    if ("engine" in value) != (value["draft"].get("runs_on") == "engine"):
        raise DraftError("an engine is frozen just where the draft runs on one", where=name)
    if ("session_scripts" in value) != ("trace" in value["draft"]["design"]["workload"]):
        raise DraftError("session scripts are frozen just where the workload is a trace", where=name)
    source = value["plan_from"]["registration"] if "plan_from" in value else None
    if source != value["draft"].get("plan_from"):
        raise DraftError("plans of another registration are frozen than the draft names", where=name, value=source)
