"""The share of bursts that trap, by their size, beside the paper's runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cli.render.pictures import BLUE, RED
from verifier.agreement import binomial_central


@dataclass(frozen=True)
class Dose:
    """`stuck` of `runs` simulated runs after a burst of `sessions`; the paper
    saw `printed_stuck` of `printed_runs`.
    """

    sessions: int
    stuck: int
    runs: int
    printed_stuck: int
    printed_runs: int


def draw_basin(pyplot: Any, doses: Sequence[Dose], title: str) -> Any:
    """Shares against the burst's size; the bar is what as many runs as the
    paper's would show 95% of the time.
    """
    figure, axis = pyplot.subplots(figsize=(7.0, 4.2), layout="constrained")
    at = [dose.sessions for dose in doses]
    for dose in doses:
        low, high = binomial_central(dose.printed_runs, dose.stuck / dose.runs)
        span = [low / dose.printed_runs, high / dose.printed_runs]
        axis.plot([dose.sessions] * 2, span, color=RED, linewidth=6, alpha=0.25, solid_capstyle="butt",
                  label=f"central 95% of {dose.printed_runs} such runs")  # fmt: skip
    shares = [dose.stuck / dose.runs for dose in doses]
    axis.plot(at, shares, "o-", color=RED, linewidth=1.0, label=f"simulated, {doses[0].runs} seeds")
    printed = [dose.printed_stuck / dose.printed_runs for dose in doses]
    axis.plot(at, printed, "D", color=BLUE, markersize=8, fillstyle="none", markeredgewidth=1.8,
              label=f"the paper's engine, {doses[0].printed_runs} seeds")  # fmt: skip
    axis.set(xlabel="sessions in the burst", ylabel="share of runs stuck", ylim=(-0.05, 1.05))
    handles = dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    axis.legend(handles.values(), handles.keys(), loc="lower right")
    figure.suptitle(f"SIMULATED: {title}", weight="bold")
    return figure
