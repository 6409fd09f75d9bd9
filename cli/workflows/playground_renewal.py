"""The renewal cycle over the playground's grid: births, survival, maternity, ages.

Pure. The names are demography's; what each is of a trapped queue, the page says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cli.workflows.playground_grid import (
    UNITS,
    Inputs,
    below,
    columns,
    head,
    inputs_of,
    normal_mixes,
    padded,
    rounded,
    shares,
    tops,
)
from modelf.cells import CELLS
from modelf.costs import Vector, session_cost
from modelf.renewal import solve
from modelf.turn_law import survivals
from modelf.workload import WORKLOADS

_CYCLES = range(0, 51, 5)


def renewal_data(cells: Iterable[str], loads: Sequence[float]) -> dict[str, Any]:
    """The renewal cycle's entries: net maternity a_k, the same discounted by R^-k (its
    sum is 1), and the stable age distribution, which is the tilted mix.
    """
    found = {}
    for cell in cells:
        found[cell] = head(CELLS[cell])
        for name in WORKLOADS:
            inputs = inputs_of(cell, name)
            found[cell]["workloads"][name] = {"capacity": rounded(1 / inputs.reference), **_cycle(inputs, loads)}
    survival = {name: shares(np.asarray([survivals(w.turns)]))[0] for name, w in WORKLOADS.items()}
    return {"loads": list(loads), "cells": found, "normal": normal_mixes(), "survival": survival, **UNITS}


def _cycle(inputs: Inputs, loads: Sequence[float]) -> dict[str, Any]:
    missing = below(inputs, loads)
    maternity = maternities(inputs, loads)
    state = solve(inputs.turn_costs, inputs.workload, np.asarray(loads[missing:]) * inputs.reference)
    turns = np.arange(1, maternity.shape[1] + 1)
    discounted = padded(maternity[missing:] * state.growth[:, None] ** -turns, missing)
    mix = padded(state.mix, missing)
    values = {
        "rho": np.asarray(loads) * inputs.reference,
        "growth": padded(state.growth, missing),
        "growth_10": padded(state.growth**10, missing),
        "growth_50": padded(state.growth**50, missing),
        "gap_slope": padded(state.gap_slope, missing),
        "mean_turn": padded(state.mix @ turns, missing),
    }
    return {
        "columns": columns(values) | {"mix_top": tops(mix), "maternity_top": tops(maternity)},
        "maternity": shares(maternity),
        "cycles": _cycles(padded(state.growth, missing)),
        "discounted": shares(discounted),
        "mix": shares(mix),
    }


def _cycles(growth: Vector) -> list[list[float | int | None] | None]:
    """Lengths of every fifth cycle, the first as 1; None where nothing grows."""
    return [None if np.isnan(factor) else [rounded(factor**n, 4) for n in _CYCLES] for factor in growth]


def maternities(inputs: Inputs, loads: Sequence[float]) -> Vector:
    """a_k = lambda S_k c_k: work that a unit of cycle k turns ago brings now; its sum over
    k is rho. Shape (loads, max_turns).
    """
    survival = np.asarray(survivals(inputs.workload.turns))
    parts = survival * inputs.turn_costs / session_cost(inputs.workload, inputs.turn_costs)
    return np.asarray(np.asarray(loads)[:, None] * inputs.reference * parts)
