"""Figures of model F: against stuck runs, and its turn mix at the registered loads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cli.render.picture_mix import draw_mix
from cli.render.picture_theory import draw_theory
from cli.render.pictures import LAMBDA_REF
from cli.render.range_words import count_words, list_words, percent_words, rate_words
from cli.workflows.figure_parts import MOST_RATES, csv_text, finished, made
from cli.workflows.model_f import TurnCosts, costs_of, forecast, solved, stationary_prompt_tokens
from cli.workflows.reproduce_theory import TheoryPoints, curve_of
from cli.workflows.study_runs import ShownRuns, origin_of, title_of
from cli.workflows.study_tables import StuckRuns
from ledger.page.figure import Figure
from modelf.turn_law import survivals
from modelf.workload import STANDARD_WORKLOAD
from registry.design import RunId
from verifier.ranges import errors_of

_LEAST_RHO, _STEPS = 1.02, 150
_LABELS = (
    ("mean_prompt_tokens", "mean prompt"),
    ("completions_per_s", "completions"),
    ("backlog_slope_per_s", "backlog slope"),
    ("sojourn_slope", "gap growth"),
)


def theory(pyplot: Any, rows: Sequence[StuckRuns], of: ShownRuns | None) -> Figure | str:
    """Stuck runs of a registration, or of the study, in model F's four panels."""
    if not rows:
        return "no stuck run of which model F can speak (see Table 2)"
    points = [_points(row) for row in rows]
    most = max(float(group.rho.max()) for group in points)
    rho = np.linspace(_LEAST_RHO, 1.03 * most, _STEPS)
    costs = dict.fromkeys(_costs(row) for row in rows)
    curves = [curve_of("model F", one.vector, one.workload, rho) for one in costs]
    count = sum(group.rho.size for group in points)
    reports = (report for row in rows for report in row.runs.reports if report.run in row.stuck)
    origin = origin_of(report.simulated is True for report in reports)
    head = title_of(
        origin, f"{of.name if of else 'all registrations'}, model F against {count_words(count, 'stuck run')}"
    )
    picture = draw_theory(pyplot, _by_cell(points), curves, head)
    text = f"{made(origin)}: {_words(rows, count)}"
    return finished(pyplot, picture, "theory", head, text, _data(rows, points, curves), of)


def _costs(row: StuckRuns) -> TurnCosts:
    costs = costs_of(row.runs.registration, row.stuck[0])
    assert costs is not None
    return costs


def _points(row: StuckRuns) -> TheoryPoints:
    design, cell = row.runs.design, row.runs.registration.cell.name
    arm, said = design.arm(row.arm), row.forecast
    name = cell if design.workload == STANDARD_WORKLOAD else f"{cell} ({row.runs.name})"
    values = {reading: np.array(found) for reading, found in row.measured.items()}
    return TheoryPoints(
        cell=name,
        from_empty=not (arm.burst or arm.tool_slowdown),
        rho=np.full(len(row.stuck), said.rho),
        prompt=values["mean_prompt_tokens"] / stationary_prompt_tokens(_costs(row)),
        completions=values["completions_per_s"] / said.lambda_miss_per_s,
        backlog_slope=values["backlog_slope_per_s"] / said.lambda_miss_per_s,
        gap_slope=values["sojourn_slope"],
    )


def _by_cell(points: Iterable[TheoryPoints]) -> list[TheoryPoints]:
    """The points of one cell and kind together, for one entry in the legend."""
    groups: dict[tuple[str, bool], list[TheoryPoints]] = {}
    for point in points:
        groups.setdefault((point.cell, point.from_empty), []).append(point)
    fields = ("rho", "prompt", "completions", "backlog_slope", "gap_slope")
    return [
        TheoryPoints(*kind, *(np.concatenate([getattr(one, field) for one in group]) for field in fields))
        for kind, group in groups.items()
    ]


def _words(rows: Sequence[StuckRuns], count: int) -> str:
    parts = []
    for reading, label in _LABELS:
        errors = errors_of(pair for row in rows for pair in row.pairs(reading))
        parts.append(f"{label} by {percent_words(errors.mean_error)} (at worst {percent_words(errors.worst)})")
    return (
        f"{count_words(count, 'stuck run')} beside model F, in which nothing is fitted to them. On average the runs "
        f"differ from it in {list_words(parts)}. Model F's values are asymptotic; a window holds a transient, too."
    )


def _data(rows: Sequence[StuckRuns], points: Sequence[TheoryPoints], curves: Sequence[TheoryPoints]) -> str:
    head = ("of", "cell", "arm", "rate_lambda_ref", "seed", "rho", "mean_prompt_over_stationary",
            "completions_over_lambda_miss", "backlog_slope_over_lambda_miss", "gap_slope_s_per_s")  # fmt: skip
    lines: list[tuple[str | float | int | None, ...]] = []
    for row, group in zip(rows, points, strict=True):
        values = zip(*(column.tolist() for column in _columns(group)), strict=True)
        named = (row.runs.name, row.runs.registration.cell.name, row.arm)
        lines += [(*named, row.rate, run.seed, *one) for run, one in zip(row.stuck, values, strict=True)]
    for place, curve in enumerate(curves, 1):
        name = "model F" if len(curves) == 1 else f"model F {place}"
        lines += [
            (name, None, None, None, None, *one) for one in zip(*(c.tolist() for c in _columns(curve)), strict=True)
        ]
    return csv_text(head, lines)


def _columns(group: TheoryPoints) -> tuple[Any, ...]:
    return group.rho, group.prompt, group.completions, group.backlog_slope, group.gap_slope


def turn_mix(pyplot: Any, runs: ShownRuns) -> Figure | str:
    """The turns that a trapped server serves, by model F alone, at the registered
    rates; no run is in it.
    """
    arm = next((arm.name for arm in runs.design.arms if arm.population is None), "")
    own = [RunId(arm, rate, runs.design.seeds.values[0]) for rate in runs.design.rates[:MOST_RATES] if arm]
    said = {run.rate: found for run in own if (found := forecast(runs.registration, run))}
    costs = costs_of(runs.registration, own[0]) if own else None
    if not said or costs is None:
        return "no rate of it is above model F's all-miss capacity, or its cell has no costs"
    rates = [rate for rate in runs.design.rates if rate in said]
    rho = np.linspace(_LEAST_RHO, max(2.5, 1.15 * max(one.rho for one in said.values())), _STEPS)
    loads = [said[rate].rho for rate in rates]
    mixes = {rate_name(rate): solved(costs, load).mix[0] for rate, load in zip(rates, loads, strict=True)}
    survival = np.asarray(survivals(costs.workload.turns))
    curve = curve_of("model F", costs.vector, costs.workload, rho)
    lines = {
        "mean prompt served / stationary mean": curve.prompt,
        "completions / $\\lambda_{miss}$": curve.completions,
        "backlog slope / ($\\lambda - \\lambda_{miss}$)": curve.backlog_slope / (rho - 1.0),
    }
    head = f"MODEL F, no measurement: {runs.name}, the turns that a trapped server serves"
    stationary = survival / survival.sum()
    picture = draw_mix(pyplot, stationary, mixes, lines, rho, loads, head)
    mean_turn = [float(np.dot(mix, np.arange(1, mix.size + 1))) for mix in mixes.values()]
    parts = [
        f"turn {turn:.1f} and {said[rate].mean_prompt_tokens:,.0f} prompt tokens at {rate_words(rate)}"
        for rate, turn in zip(rates, mean_turn, strict=True)
    ]
    text = (
        f"Model F, computed from {costs.origin}, no measurement. A trapped server's mean turn served is "
        f"{list_words(parts)}; in the stationary mix it is turn "
        f"{float(np.dot(stationary, np.arange(1, stationary.size + 1))):.1f} and "
        f"{stationary_prompt_tokens(costs):,.0f} tokens."
    )
    return finished(pyplot, picture, "turn-mix", head, text, _mix_data(stationary, rates, mixes, rho, curve), runs)


def rate_name(rate: float) -> str:
    """A rate in a legend."""
    return f"trapped, {rate:g} {LAMBDA_REF}"


def _mix_data(stationary: Any, rates: Sequence[float], mixes: dict[str, Any], rho: Any, curve: TheoryPoints) -> str:
    head = ("of", "rate_lambda_ref", "turn", "share_of_turns", "rho", "mean_prompt_over_stationary",
            "completions_over_lambda_miss", "backlog_slope_over_excess_load")  # fmt: skip
    lines: list[tuple[str | float | int | None, ...]] = []
    for rate, mix in zip((None, *rates), (stationary, *mixes.values()), strict=True):
        name = "stationary mix" if rate is None else "trapped mix"
        lines += [(name, rate, turn, share, None, None, None, None) for turn, share in enumerate(mix.tolist(), 1)]
    columns = (rho, curve.prompt, curve.completions, curve.backlog_slope / (rho - 1.0))
    lines += [("across loads", None, None, None, *one) for one in zip(*(c.tolist() for c in columns), strict=True)]
    return csv_text(head, lines)
