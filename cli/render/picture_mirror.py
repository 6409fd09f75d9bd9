"""Completions and sessions of runs, beside model F on the same plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cli.render.pictures import BLUE, GREY, RED, legend_below
from cli.workflows.flows import Flow
from registry.design import RunId


def draw_mirror(
    pyplot: Any,
    runs: Mapping[RunId, Flow],
    fluids: Mapping[RunId, Flow],
    others: Mapping[RunId, Flow],
    *,
    title: str,
    names: tuple[str, str, str],
    lambda_ref_per_s: float,
    bin_s: float,
    judged: tuple[float, float] | None,
) -> Any:
    """Completions over lambda_ref in bins of `bin_s` above, sessions below, a
    column a rate; seeds thin, their mean thick. `others`: runs of another
    workload, in grey, where there are some. `names` of the three in the legend.
    """
    rates = list(dict.fromkeys(run.rate for run in runs))
    figure, axes = pyplot.subplots(
        2,
        len(rates),
        figsize=(4.2 * len(rates) + 1.0, 5.6),
        layout="constrained",
        sharex=True,
        sharey="row",
        squeeze=False,
    )
    for column, rate in enumerate(rates):
        above, below = axes[:, column]
        groups = (
            (names[2], others, GREY, "-"),
            (names[0], runs, RED, "-"),
            (names[1], fluids, BLUE, "--"),
        )
        for label, group, colour, style in groups:
            chosen = [one for run, one in group.items() if run.rate == rate]
            if chosen:
                completions = [one.completions_per_s / lambda_ref_per_s for one in chosen]
                _bundle(above, chosen[0].middle_s, completions, colour, style, label)
                _bundle(below, chosen[0].middle_s, [one.sessions for one in chosen], colour, style, label)
        above.set_title(f"{rate:g} $\\lambda_{{ref}}$")
        below.set_xlabel("time from the run's start, s")
        for axis in (above, below):
            if judged:
                axis.axvspan(*judged, color=GREY, alpha=0.10, linewidth=0, label="window of the rule")
    axes[0, 0].set(ylim=(0, None), xlim=(0, None))
    axes[1, 0].set_ylim(bottom=0)
    axes[0, 0].set_ylabel(f"completions / $\\lambda_{{ref}}$, {bin_s:g} s bins")
    axes[1, 0].set_ylabel("sessions waiting at or\nserved by the engine")
    legend_below(figure, axes[0, 0].get_legend_handles_labels()[0])
    seeds = len({run.seed for run in runs})
    figure.suptitle(f"{title}, {seeds} seed{'s' if seeds > 1 else ''}, their mean bold", weight="bold")
    return figure


def _bundle(axis: Any, middle_s: Any, values: list[Any], colour: str, style: str, label: str) -> None:
    for one in values:
        axis.plot(middle_s, one, style, color=colour, linewidth=0.5, alpha=0.25)
    axis.plot(middle_s, np.mean(values, axis=0), style, color=colour, linewidth=1.9, label=label)
