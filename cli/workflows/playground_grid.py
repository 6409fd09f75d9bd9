"""Model F over the playground's grid: every cell, both workloads, every load.

Pure. The quantities are those of `trapkit theory`, under the same names. Numbers
are rounded here, once, to `DIGITS` significant digits: a page shows them as they
stand, and its script computes none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cli.workflows.theory import own_costs
from modelf.cells import CELLS, Cell
from modelf.conformance import columns_of, fitted
from modelf.costs import COSTS, Vector, session_cost
from modelf.renewal import busy_period, mean_stationary_prompt_tokens, solve, stationary_work
from modelf.turn_mix import stationary_weights
from modelf.workload import STANDARD_WORKLOAD, WORKLOADS, Workload

DIGITS = 5
PER = 100_000
"""Shares are whole numbers of so many, to keep pages small."""

LOADS = tuple(n / 100 for n in [*range(90, 250), *range(250, 501, 2)])
"""Multiples of lambda_ref: each hundredth to 2.5, each second one to 5."""

GROUPS = ((1, 5), (6, 10), (11, 20), (21, 60))
"""Turn numbers whose shares the calculator's table sums."""

_TOPS = np.array([10, 15, 20, 30, 40, 60, 80, 100])

DEFAULT = ("sglang-300k", "standard", 1.35)
DRAINED_SESSIONS = 200
_HOUR_S = 3600.0
UNITS = {"per_percent": PER // 100}

MEASURED = "measured step costs of this project's small CPU model; the paper has no such cell"


@dataclass(frozen=True)
class Inputs:
    """What model F needs of one cell under one workload.

    `turn_costs` in seconds where `lambda_ref_per_s` is known, else in mean all-miss
    turns; `reference` is lambda_ref over the workload's lambda_miss.
    """

    workload: Workload
    turn_costs: Vector
    reference: float
    lambda_ref_per_s: float | None
    origin: str


def inputs_of(cell: str, workload_name: str) -> Inputs:
    """The fitted costs where the paper has the cell, else the cell's own step costs."""
    if cell in COSTS:
        costs, workload, reference = fitted(cell, workload_name)
        lambda_ref = COSTS[cell].lambda_ref() if costs.cbar_s else None
        return Inputs(workload, costs.turn_costs(workload), reference, lambda_ref, costs.origin)
    workload = WORKLOADS[workload_name]
    own, reference = own_costs(CELLS[cell], workload)
    standard, _ = own_costs(CELLS[cell], STANDARD_WORKLOAD)
    return Inputs(workload, own, reference, 1 / session_cost(STANDARD_WORKLOAD, standard), MEASURED)


def rounded(value: float, digits: int = DIGITS) -> float | int | None:
    """To significant digits; None for what is no finite number; whole numbers whole."""
    if not np.isfinite(value):
        return None
    found = float(f"{float(value):.{digits}g}")
    return int(found) if found == int(found) else found


def columns(values: dict[str, Any], digits: int = DIGITS) -> dict[str, list[float | int | None]]:
    """Each array as a list of rounded numbers."""
    return {name: [rounded(value, digits) for value in np.asarray(column)] for name, column in values.items()}


def shares(rows: NDArray[np.float64]) -> list[list[int] | None]:
    """Shares in units of 1 / `PER`, None for a row that has none."""
    return [None if np.isnan(row).any() else np.rint(row * PER).astype(int).tolist() for row in rows]


def padded(values: Vector, missing: int) -> Vector:
    """`values` after so many rows of NaN: loads without a trapped state come first."""
    return np.concatenate([np.full((missing, *values.shape[1:]), np.nan), values])


def below(inputs: Inputs, loads: Sequence[float]) -> int:
    """How many of the ascending loads are at or below the all-miss capacity."""
    return int(np.count_nonzero(np.asarray(loads) * inputs.reference <= 1.0))


def theory_columns(inputs: Inputs, loads: Sequence[float]) -> dict[str, Vector]:
    """`trapkit theory` at every load, NaN where there is no trapped state; and
    per hour, where the cell's scale is known: sessions that arrive, complete, and stay.
    `backlog_over_lambda_ref` is what stays, in multiples of lambda_ref.
    `drain_s`: below capacity, until 200 sessions in the normal mix are through.
    """
    missing, all_loads = below(inputs, loads), np.asarray(loads, dtype=np.float64)
    trapped = columns_of(inputs.turn_costs, inputs.workload, all_loads[missing:], inputs.reference)
    found = {name: padded(column, missing) for name, column in trapped.items()}
    found["rho"] = all_loads * inputs.reference
    found["backlog_over_lambda_ref"] = all_loads - found["completions_over_lambda_ref"]
    if inputs.lambda_ref_per_s is not None:
        per_hour = _HOUR_S * inputs.lambda_ref_per_s
        found["arrivals_per_h"] = per_hour * all_loads
        found["completions_per_h"] = per_hour * found["completions_over_lambda_ref"]
        found["backlog_per_h"] = per_hour * found["backlog_over_lambda_ref"]
        work = stationary_work(inputs.turn_costs, inputs.workload, DRAINED_SESSIONS)
        found["drain_s"] = np.array([busy_period(work, rho) for rho in found["rho"]])
    return found


def mixes(inputs: Inputs, loads: ArrayLike) -> Vector:
    """The tilted mix at every load above capacity, shape (loads, max_turns)."""
    return solve(inputs.turn_costs, inputs.workload, np.asarray(loads) * inputs.reference).mix


def calculator_data(cells: Iterable[str], loads: Sequence[float]) -> dict[str, Any]:
    """The calculator's entries: quantities and tilted mix by cell, workload and load."""
    found = {}
    for cell in cells:
        found[cell] = head(CELLS[cell])
        for name in WORKLOADS:
            inputs = inputs_of(cell, name)
            missing = below(inputs, loads)
            mix = padded(mixes(inputs, loads[missing:]), missing)
            found[cell]["workloads"][name] = {
                "origin": inputs.origin,
                "scale": scale_words(cell, inputs),
                "capacity": rounded(1 / inputs.reference),
                "normal_prompt": rounded(mean_stationary_prompt_tokens(inputs.workload)),
                "columns": columns(theory_columns(inputs, loads)) | {"mix_top": tops(mix)},
                "mix": shares(mix),
                "groups": grouped(mix),
            }
    names = [f"{first} to {last}" for first, last in GROUPS]
    return {"loads": list(loads), "cells": found, "normal": normal_mixes(), "group_names": names, **UNITS}


def tops(rows: Vector) -> list[int]:
    """The least round percentage that no share of a row exceeds: the top of its picture."""
    most = 100 * np.nan_to_num(rows.max(axis=1))
    return [int(_TOPS[min(np.searchsorted(_TOPS, value), len(_TOPS) - 1)]) for value in most]


def grouped(rows: Vector) -> list[list[str] | None]:
    """Each row's shares summed over `GROUPS`, in percent as words; None where there are none."""
    return [
        None if np.isnan(row).any() else [f"{100 * row[first - 1 : last].sum():.1f}%" for first, last in GROUPS]
        for row in rows
    ]


def normal_mixes() -> dict[str, Any]:
    """By workload: the stationary mix S_k / E[T], and its mean turn number."""
    found = {}
    for name, workload in WORKLOADS.items():
        mix = stationary_weights(workload)
        mean_turn = rounded(float(mix[0] @ np.arange(1, mix.shape[1] + 1)))
        found[name] = {"mix": shares(mix)[0], "groups": grouped(mix)[0], "mean_turn": mean_turn}
    return found


def head(cell: Cell) -> dict[str, Any]:
    """What a page says of a cell, and room for its workloads."""
    words = f"{cell.engine} {cell.engine_version}, {cell.model}, {cell.gpu}, a pool of {cell.pool_tokens:,} tokens"
    return {"words": words, "workloads": {}}


def scale_words(cell: str, inputs: Inputs) -> str:
    """Why the cell's entries have seconds, or have none."""
    if inputs.lambda_ref_per_s is None:
        return (
            "Not known in seconds: the paper prints no arrival count or rate for this cell, so its costs are fitted "
            "as ratios only. Everything without a unit of time is computed; sessions an hour are not."
        )
    if cell not in COSTS:
        return "Seconds are measured: lambda_ref is the all-miss capacity computed from this cell's step costs."
    return "Seconds are reconstructed from the arrivals that the paper prints: lambda_ref is about 0.0720 sessions/s."
