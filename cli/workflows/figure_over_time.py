"""The figure of every arm over time: hits, and sessions at the engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from cli.render.picture_arms import draw_arms
from cli.render.range_words import count_words, list_words, range_words
from cli.workflows.arm_marks import marks_of
from cli.workflows.figure_parts import csv_text, finished, first_seeds, made
from cli.workflows.study_runs import ShownRuns, title_of
from ledger.page.figure import Figure
from registry.design import RunId
from verifier.exact_statistics import FloatArray, mean
from verifier.ranges import range_of
from verifier.series import Series

LATE_SHARE = 0.9
"""Texts speak of the end of a run: what comes after this share of its horizon."""


def over_time(pyplot: Any, runs: ShownRuns) -> Figure | str:
    """Hits and sessions of every arm with open arrivals; why not, where none is."""
    drawn = first_seeds(runs)
    if not drawn:
        return "no run with open arrivals to show"
    series = {run: runs.series[run] for run in drawn}
    judged = (runs.judged.start_s, runs.judged.end_s) if runs.judged else None
    head = title_of(runs.origin, f"{runs.name}, cell {runs.registration.cell.name}")
    picture = draw_arms(
        pyplot, series, title=head, marks=marks_of(runs.design), judged=judged, horizon_s=runs.design.horizon_s
    )
    head = title_of(runs.origin, f"{runs.name}, hits and sessions over time")
    return finished(pyplot, picture, "over-time", head, _words(runs, series), _data(series), runs)


def _words(runs: ShownRuns, series: dict[RunId, Series]) -> str:
    since_s = LATE_SHARE * runs.design.horizon_s
    seeds = len({run.seed for run in series})
    parts = []
    for arm in dict.fromkeys(run.arm for run in series):
        own = [one for run, one in series.items() if run.arm == arm]
        hits = range_of(late_mean(one, one.hits, since_s) for one in own)
        sessions = range_of(late_mean(one, one.outstanding, since_s) for one in own)
        parts.append(f"{arm} {range_words(hits, '.2f')} and {range_words(sessions, '.0f')}")
    arrived = sum(run.rate is not None for run in runs.series)
    more = f" (the first {len(series)} of {arrived} runs are drawn)" if len(series) < arrived else ""
    rates = list_words(f"{rate:g}" for rate in dict.fromkeys(run.rate for run in series) if rate is not None)
    return (
        f"{made(runs.origin)}: {count_words(seeds, 'seed')}{more}, at {rates} lambda_ref. In the last tenth of the "
        f"runs, the follow-up hit fraction and the sessions waiting at or served by the engine average, arm by arm: "
        f"{'; '.join(parts)}."
    )


def late_mean(series: Series, values: FloatArray, since_s: float) -> float:
    """The mean over the bins from `since_s` on, undefined ones left out."""
    late = values[series.middle_s >= since_s]
    return mean(late[np.isfinite(late)])


def _data(series: dict[RunId, Series]) -> str:
    head = ("arm", "rate_lambda_ref", "seed", "time_s", "followup_hit_fraction", "outstanding_sessions")
    rows = (
        (run.arm, run.rate, run.seed, *values)
        for run, one in series.items()
        for values in zip(one.middle_s.tolist(), one.hits.tolist(), one.outstanding.tolist(), strict=True)
    )
    return csv_text(head, rows)
