"""Imported for its effect: the core's machine code is loaded, or compiled.

A fork server that imports this hands it on to every worker, so that none
compiles or loads for itself.
"""

from __future__ import annotations

from modelf.cells import Cell, StepCosts
from modelf.turn_law import TruncatedGeometric
from modelf.workload import Workload
from registry.design import Arm
from registry.plan import Plan
from runners.simulated.run import simulate

_COSTS = StepCosts(0.0, 1e-3, 0.0, 1e-3, 0.0, 1)
_WORKLOAD = Workload(TruncatedGeometric(1, 1), 1, 1, 1, 0.0)
_CELL = Cell("warm", "", "", "", "", 2, 1, _COSTS, ())

simulate(Plan(bytes(32), _WORKLOAD, 1_000_000, (0,), (), 0), Arm("WARM"), _CELL)
