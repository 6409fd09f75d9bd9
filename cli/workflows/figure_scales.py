"""Figures without a time axis: time scales, closed populations, and the basin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cli.render.picture_basin import Dose, draw_basin
from cli.render.picture_closed import draw_closed
from cli.render.picture_time_scales import TimeScales, draw_time_scales
from cli.render.pictures import LAMBDA_REF, without_formulas
from cli.render.range_words import count_words, list_words, range_words, value_words
from cli.workflows.figure_parts import csv_text, finished, made
from cli.workflows.reproduce_closed import ClosedPoints, closed_points, medians, predicted_curve
from cli.workflows.study_runs import ShownRuns, is_plain, origin_of, stuck, title_of
from ledger.page.figure import Figure
from modelf.closed_population import ClosedCurve
from modelf.workload import STANDARD_WORKLOAD
from registry.design import RunId
from verifier.ranges import range_of

_MOST_ROWS = 40
"""More arms and rates than this are not drawn."""


def time_scales(pyplot: Any, runs: ShownRuns) -> Figure | str:
    """The gap between a session's turns against the pool's turnover time, by arm
    and rate, in the window that the rule reads first.
    """
    every = [(arm, rate, own) for (arm, rate), own in runs.groups.items() if rate is not None]
    found = every[:_MOST_ROWS]
    rows = [
        TimeScales(
            f"{arm} at {rate:g} {LAMBDA_REF}",
            range_of(runs.judged_readings(run)["idle_s"] for run in own),
            range_of(runs.judged_readings(run)["turnover_s"] for run in own),
        )
        for arm, rate, own in found
    ]
    rows = [row for row in rows if row.gap_s.runs and row.turnover_s.runs]
    if not rows:
        return "no run with open arrivals to show"
    window = runs.registration.draft.judged_window
    head = title_of(runs.origin, f"{runs.name}, gap between turns against pool turnover")
    picture = draw_time_scales(pyplot, rows, head)
    rows.sort(key=lambda row: row.gap_s.most / row.turnover_s.least)
    ends = [
        f"{without_formulas(row.name)}: gap {range_words(row.gap_s)} s, turnover {range_words(row.turnover_s)} s"
        for row in dict.fromkeys((rows[-1], rows[0]))
    ]
    text = (
        f"{made(runs.origin)}, window {window}. The gap is longest against the turnover in {ends[0]}"
        f"{f'; shortest in {ends[1]}' if len(ends) > 1 else ''}."
        f"{f' The first {len(found)} of {len(every)} arms and rates are drawn.' if len(found) < len(every) else ''}"
    )
    csv_rows = (
        (arm, rate, run.seed, runs.judged_readings(run)["idle_s"], runs.judged_readings(run)["turnover_s"])
        for arm, rate, own in found
        for run in own
    )
    data = csv_text(("arm", "rate_lambda_ref", "seed", "gap_s", "turnover_s"), csv_rows)
    return finished(pyplot, picture, "time-scales", head, text, data, runs)


def closed(pyplot: Any, runs: ShownRuns) -> Figure | str:
    """Throughput and hits of n sessions kept running, against n."""
    seeds = runs.design.seeds.values
    points = closed_points(runs.registration, runs.readings, seeds) if not runs.design.rates else None
    if points is None or points.sessions.size < 2:
        return "no closed populations of several sizes, with the cell's own pool and cache"
    if not np.isfinite(points.turns_per_s).any():
        return "no run of a closed population to show"
    curve = predicted_curve(runs.registration)
    head = title_of(runs.origin, f"{runs.name}, throughput and hits of a closed population")
    picture = draw_closed(pyplot, points, curve, head)
    text = f"{made(runs.origin)}: {count_words(len(seeds), 'seed')}. {_closed_words(points, curve)}"
    return finished(pyplot, picture, "closed-population", head, text, _closed_data(points, seeds, curve), runs)


def _closed_words(points: ClosedPoints, curve: ClosedCurve | None) -> str:
    turns, hits = medians(points.turns_per_s), medians(points.hits)
    peak = int(np.nanargmax(turns))
    told = [f"Throughput is highest at n = {points.sessions[peak]:g}, {turns[peak]:.2f} turns a second"]
    below = np.flatnonzero(hits < 0.5)
    if below.size and below[0]:
        low, high = points.sessions[below[0] - 1], points.sessions[below[0]]
        told.append(f"the follow-up hit fraction falls through 0.5 between n = {low:g} and {high:g}")
    if curve is not None:
        theory = np.flatnonzero(curve.hit_fraction < 0.5)
        if theory.size and theory[0]:
            told.append(f"the theory has it near n = {value_words(float(curve.sessions[theory[0]]), '.1f')}")
    return f"{'; '.join(told)}."


def _closed_data(points: ClosedPoints, seeds: Sequence[int], curve: ClosedCurve | None) -> str:
    rows: list[tuple[str | float | int | None, ...]] = [
        ("run", sessions, seed, turns, hits)
        for sessions, every_turns, every_hits in zip(points.sessions, points.turns_per_s, points.hits, strict=True)
        for seed, turns, hits in zip(seeds, every_turns.tolist(), every_hits.tolist(), strict=True)
    ]
    if curve is not None:
        columns = (curve.sessions.tolist(), curve.turns_per_s.tolist(), curve.hit_fraction.tolist())
        rows += [("theory", n, None, turns, hits) for n, turns, hits in zip(*columns, strict=True)]
    return csv_text(("of", "sessions", "seed", "turns_per_s", "followup_hit_fraction"), rows)


def basin(pyplot: Any, shown: Sequence[ShownRuns]) -> Figure | str:
    """The share of runs that a burst leaves stuck, by its size, over the study."""
    runs = [(one, run) for one in shown for run in _bursts(one)]
    groups: dict[str, dict[int, list[bool]]] = {}
    for one, run in runs:
        sizes = groups.setdefault(_basin_name(one, run), {})
        sizes.setdefault(_size(one, run), []).append(stuck(one.judged_readings(run)))
    doses = {
        name: [Dose(size, sum(found), len(found)) for size, found in sorted(sizes.items())]
        for name, sizes in groups.items()
        if len(sizes.keys() - {0}) > 1
    }
    if not doses:
        return "no two sizes of burst on one cell, at one rate, with plans of their own"
    kept = [(one, run) for one, run in runs if _basin_name(one, run) in doses]
    used = {(one.name, run) for one, run in kept}
    reports = (report for one in shown for report in one.reports if (one.name, report.run) in used)
    origin = origin_of(report.simulated is True for report in reports)
    head = title_of(origin, "the runs that a burst leaves stuck, by its size")
    picture = draw_basin(pyplot, doses, head)
    parts = [
        f"{without_formulas(name)}: "
        + list_words(f"{dose.stuck} of {dose.runs} stuck after {dose.sessions}" for dose in found)
        for name, found in doses.items()
    ]
    data = csv_text(
        ("registration", "cell", "arm", "rate_lambda_ref", "seed", "burst_sessions", "stuck"),
        (
            (one.name, one.registration.cell.name, run.arm, run.rate, run.seed, _size(one, run),
             int(stuck(one.judged_readings(run))))
            for one, run in kept
        ),
    )  # fmt: skip
    text = f"{made(origin)}. Runs stuck in the window that their rule reads first, by the burst's sessions. "
    return finished(pyplot, picture, "basin", head, f"{text}{'. '.join(parts[:3])}.", data)


def _bursts(runs: ShownRuns) -> Iterator[RunId]:
    """Runs with a burst or nothing done to them. Plans of another registration
    would count its runs twice; a window of a run's own release is no common one.
    """
    if runs.judged is None or runs.registration.plan_source:
        return
    for run in runs.readings:
        arm = runs.design.arm(run.arm)
        if run.rate is not None and is_plain(arm) and not arm.tool_slowdown and arm.pool_tokens is None:
            yield run


def _size(runs: ShownRuns, run: RunId) -> int:
    burst = runs.design.arm(run.arm).burst
    return burst.sessions if burst else 0


def _basin_name(runs: ShownRuns, run: RunId) -> str:
    workload = "" if runs.design.workload == STANDARD_WORKLOAD else f", workload of {runs.name}"
    return f"{runs.registration.cell.name} at {run.rate:g} {LAMBDA_REF}{workload}"
