"""Stuck runs beside model F, against the load: what the theory's picture shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from cli.workflows.rehearse import Rehearsal
from cli.workflows.reproduce_values import reference_scales
from modelf.costs import COSTS, Vector
from modelf.renewal import mean_stationary_prompt_tokens, solve
from modelf.workload import STANDARD_WORKLOAD, Workload
from verifier.exact_statistics import FloatArray

WINDOW = "judged"
STUCK_BELOW = 0.5


@dataclass(frozen=True)
class TheoryPoints:
    """Runs of one cell, or model F's curve for it; arrays of one shape.

    `from_empty`: runs without a burst or a slowdown, trapped by their load.
    `rho`: load over model F's all-miss capacity; `prompt`: mean prompt served
    over the stationary mean; `completions` and `backlog_slope` over
    lambda_miss; `gap_slope`: growth of the sojourn a second.
    """

    cell: str
    from_empty: bool
    rho: FloatArray
    prompt: FloatArray
    completions: FloatArray
    backlog_slope: FloatArray
    gap_slope: FloatArray


def stuck_points(rehearsals: Iterable[Rehearsal]) -> list[TheoryPoints]:
    """Every stuck run (no 300 s of the judged window with hits of 0.5) of open
    arrivals of the standard workload without a cap, cut or shed, by cell and
    by whether it trapped by itself.
    """
    rows: dict[tuple[str, bool], list[tuple[float, ...]]] = {}
    for rehearsal in rehearsals:
        design = rehearsal.registration.draft.design
        if design.workload != STANDARD_WORKLOAD or not rehearsal.registration.calibration:
            continue
        for run, readings in rehearsal.readings.items():
            arm = design.arm(run.arm)
            plain = run.rate is not None and arm.caching and not (arm.gate or arm.cut or arm.shed)
            if not plain or WINDOW not in readings or not readings[WINDOW]["max_hit_300s"] < STUCK_BELOW:
                continue
            cell = rehearsal.registration.cell_of(run).name
            by_itself = not (arm.burst or arm.tool_slowdown)
            rows.setdefault((cell, by_itself), []).append(_point(rehearsal, run.rate or 0.0, readings[WINDOW]))
    return [TheoryPoints(*kind, *np.array(points).T) for kind, points in rows.items()]


def _point(rehearsal: Rehearsal, rate: float, readings: Mapping[str, float]) -> tuple[float, ...]:
    scales = reference_scales(rehearsal.registration, rate)
    capacity = scales["lambda_miss_per_s"]
    return (
        scales["rho"],
        readings["mean_prompt_tokens"] / mean_stationary_prompt_tokens(STANDARD_WORKLOAD),
        readings["completions_per_s"] / capacity,
        readings["backlog_slope_per_s"] / capacity,
        readings["sojourn_slope"],
    )


def theory_curves(cells: Iterable[str], rho: FloatArray) -> list[TheoryPoints]:
    """Model F's asymptotic values for cells at the loads `rho`, all above 1."""
    return [curve_of(cell, COSTS[cell].turn_costs(STANDARD_WORKLOAD), STANDARD_WORKLOAD, rho) for cell in cells]


def curve_of(name: str, turn_costs: Vector, workload: Workload, rho: FloatArray) -> TheoryPoints:
    """Model F's asymptotic values for one cell's costs and one workload."""
    state = solve(turn_costs, workload, rho)
    prompt = state.mean_prompt_tokens / mean_stationary_prompt_tokens(workload)
    over_miss = state.completions_over_lambda_miss
    return TheoryPoints(name, False, rho, prompt, over_miss, rho - over_miss, state.gap_slope)
