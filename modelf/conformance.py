"""Every model-F number that the paper prints, beside ours.

Table 2 and MIRROR must agree within one unit of the last printed digit, theta
must lie in its printed range, Table 3 (the fluid) within 1%.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from modelf.costs import COSTS, MissCosts, Vector, mirror_costs
from modelf.published import published
from modelf.renewal import solve, threshold_slope
from modelf.table3 import empty_after_cut, fewest_after_cut, present_at_cut, present_at_end, rate_that_empties
from modelf.workload import MIRROR_WORKLOAD, STANDARD_WORKLOAD, Workload


@dataclass(frozen=True)
class Comparison:
    """One printed number: ours beside it, and the difference allowed."""

    place: str
    quantity: str
    printed: float
    ours: float
    allowed: float

    @property
    def agrees(self) -> bool:
        """Whether ours lies within the allowed difference."""
        return abs(self.ours - self.printed) <= self.allowed * (1 + 1e-9)


_TABLE2 = (
    ("rho", "rho", 0.01),
    ("mean_prompt_tokens", "mean_prompt_pred", 1.0),
    ("gap_slope", "gap_slope_pred", 0.001),
    ("completions_over_lambda_ref", "completions_over_lambda_ref_pred", 0.01),
    ("quasi_static_ratio", "quasi_static_over_pred", 0.01),
)


def compare_table2() -> Iterator[Comparison]:
    """Table 2: ten rates over five cells, five predictions each."""
    columns = published()["table2_columns"]
    for values in published()["table2"]:
        row = dict(zip(columns, values, strict=True))
        ours = quantities(row["cell"], "standard", row["rate_over_lambda_ref"])
        for quantity, column, unit in _TABLE2:
            place = f"Table 2, {row['cell']} at {row['rate_over_lambda_ref']:g}"
            yield Comparison(place, quantity, row[column], ours[quantity], unit)


def compare_mirror() -> Iterator[Comparison]:
    """MIRROR at 1.65 lambda_ref: D, H, Gamma, and its stated capacity."""
    row = published()["mirror"]
    ours = quantities("sglang-300k", "mirror", row["rate_over_lambda_ref"])
    for quantity, column, unit in (
        ("completions_over_lambda_miss", "D_over_lambda_miss", 0.001),
        ("completions_over_lambda_miss", "D_over_lambda_miss_4dp", 0.0001),
        ("turn_count_factor", "H", 0.001),
        ("cost_growth_factor", "Gamma", 0.001),
        ("completions_over_lambda_ref", "D_over_lambda_ref", 0.01),
    ):
        yield Comparison("MIRROR at 1.65", quantity, row[column], ours[quantity], unit)


def compare_theta() -> Iterator[Comparison]:
    """Theta lies in the printed range, for every cell's costs."""
    low, high = published()["near_threshold_theta"]
    for cell, costs in COSTS.items():
        theta = threshold_slope(costs.turn_costs(STANDARD_WORKLOAD), STANDARD_WORKLOAD)
        yield Comparison(f"near threshold, {cell}", "theta", (low + high) / 2, theta, (high - low) / 2)


def compare_table3() -> Iterator[Comparison]:
    """Table 3, within 1%; the lost rate of its last row must be near 0.9."""
    printed = published()["table3_cut_at_5000s"]
    sessions = printed["sessions_at_5000s"]
    yield Comparison("Table 3", "present_at_5000_s", sessions, present_at_cut(), 0.01 * sessions)
    for row in printed["rows"]:
        cut = row["to_over_lambda_miss"]
        if "empty_at_s" in row:
            found = rate_that_empties(row["empty_at_s"])
            yield Comparison("Table 3, the lost rate", "to_over_lambda_miss", 0.9, found, 0.009)
            empty = empty_after_cut(0.9, 1.1 * row["empty_at_s"])
            yield Comparison("Table 3, cut to 0.9", "empty_at_s", row["empty_at_s"], empty, 0.01 * row["empty_at_s"])
            continue
        place = f"Table 3, cut to {cut:g}"
        end = row.get("at_30000s", row.get("settles"))
        yield Comparison(place, "fewest_present", row["min"], fewest_after_cut(cut), 0.01 * row["min"])
        yield Comparison(place, "present_at_30000_s", end, present_at_end(cut), 0.01 * end)


def quantities(cell: str, workload_name: str, rate: float) -> dict[str, float]:
    """Everything that model F says of one cell, workload and rate (a multiple
    of lambda_ref). KeyError for an unknown cell; ValueError where rho <= 1.
    """
    costs, workload, reference = fitted(cell, workload_name)
    return quantities_of(costs.turn_costs(workload), workload, rate, reference)


def fitted(cell: str, workload_name: str) -> tuple[MissCosts, Workload, float]:
    """The fitted costs of a cell under a workload, that workload, and lambda_ref
    over its lambda_miss. KeyError for an unknown cell.
    """
    mirror = workload_name == "mirror"
    workload = MIRROR_WORKLOAD if mirror else STANDARD_WORKLOAD
    costs = mirror_costs() if mirror and cell == "sglang-300k" else COSTS[cell]
    return costs, workload, COSTS[cell].lambda_ref() / costs.lambda_miss(workload)


def quantities_of(turn_costs: Vector, workload: Workload, rate: float, reference: float) -> dict[str, float]:
    """The same from turn costs; `reference` is lambda_ref over the workload's
    lambda_miss.
    """
    return {name: float(column[0]) for name, column in columns_of(turn_costs, workload, [rate], reference).items()}


def columns_of(turn_costs: Vector, workload: Workload, rates: ArrayLike, reference: float) -> dict[str, Vector]:
    """The same at many rates: each quantity with the shape of `rates`."""
    state = solve(turn_costs, workload, np.asarray(rates, dtype=np.float64) * reference)
    return {
        "rho": state.rho,
        "growth": state.growth,
        "mean_prompt_tokens": state.mean_prompt_tokens,
        "gap_slope": state.gap_slope,
        "completions_over_lambda_ref": state.completions_over_lambda_miss / reference,
        "completions_over_lambda_miss": state.completions_over_lambda_miss,
        "backlog_slope_over_excess": state.backlog_slope_over_excess,
        "quasi_static_ratio": state.quasi_static_ratio,
        "turn_count_factor": state.turn_count_factor,
        "cost_growth_factor": state.cost_growth_factor,
    }


def compare_all() -> list[Comparison]:
    """Every comparison, renewal law and fluid."""
    return [*compare_table2(), *compare_mirror(), *compare_theta(), *compare_table3()]
