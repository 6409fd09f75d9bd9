"""The figures of a verified study, and why the others are not there.

Every figure comes from runs of which every check is proven; nothing is decoded
again. The report must have been made with its runs' series.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cli.render.pictures import drawing
from cli.workflows.figure_completions import completions
from cli.workflows.figure_over_time import over_time
from cli.workflows.figure_rescue import rescue
from cli.workflows.figure_scales import basin, closed, time_scales
from cli.workflows.figure_theory import theory, turn_mix
from cli.workflows.study_runs import LeftOut, ShownRuns, shown_runs
from cli.workflows.study_tables import stuck_runs
from ledger.page.figure import Figure
from verifier.report import StudyReport


@dataclass(frozen=True)
class StudyFigures:
    """What was drawn, and what was not, each with its reason."""

    figures: tuple[Figure, ...]
    not_drawn: tuple[LeftOut, ...]


def page_figures(report: StudyReport) -> list[Figure]:
    """Every figure that a study has runs for, its text as text: for a page."""
    return list(drawn_figures(report, letters=True).figures)


def drawn_figures(report: StudyReport, *, letters: bool = False) -> StudyFigures:
    """The same, with what was not drawn and why.

    ValueError for a report whose runs have no series.
    """
    if any(run.accepted and run.series is None for proof in report.proofs for run in proof.runs):
        raise ValueError("the report's runs have no series: verify with_series")
    figures: list[Figure] = []
    not_drawn: list[LeftOut] = []
    with drawing(letters=letters) as pyplot:
        for what, found in _every_figure(pyplot, shown_runs(report)):
            if isinstance(found, Figure):
                figures.append(found)
            else:
                not_drawn.append(LeftOut(what, found))
    return StudyFigures(tuple(figures), tuple(not_drawn))


def _every_figure(pyplot: Any, shown: list[ShownRuns]) -> Iterator[tuple[str, Figure | str]]:
    rows = {runs.name: list(stuck_runs(runs)) for runs in shown}
    for runs in shown:
        yield f"{runs.name}, over time", over_time(pyplot, runs)
        yield f"{runs.name}, gap against turnover", time_scales(pyplot, runs)
        yield f"{runs.name}, model F against runs", theory(pyplot, rows[runs.name], runs)
        yield f"{runs.name}, turn mix of model F", turn_mix(pyplot, runs)
        yield f"{runs.name}, closed population", closed(pyplot, runs)
        yield f"{runs.name}, completions beside model F", completions(pyplot, runs, shown)
        yield f"{runs.name}, rescue and release", rescue(pyplot, runs)
    if sum(bool(found) for found in rows.values()) > 1:
        yield "study, model F against runs", theory(pyplot, [row for found in rows.values() for row in found], None)
    else:
        yield "study, model F against runs", "no two registrations have stuck runs of which model F can speak"
    yield "study, basin", basin(pyplot, shown)
