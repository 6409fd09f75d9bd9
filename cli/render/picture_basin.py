"""The share of runs that a burst traps, by its size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cli.render.pictures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, legend_below
from verifier.agreement import binomial_central

_COLOURS = (RED, BLUE, GREEN, PURPLE, ORANGE, SKY, GREY)
_MARKERS = "os^Dv<>"
_MOST_COUNTS = 12


@dataclass(frozen=True)
class Dose:
    """`stuck` of `runs` runs after a burst of `sessions`; where the paper has such
    runs, it saw `printed_stuck` of `printed_runs`.
    """

    sessions: int
    stuck: int
    runs: int
    printed_stuck: int = 0
    printed_runs: int = 0


def draw_basin(pyplot: Any, groups: Mapping[str, Sequence[Dose]], title: str) -> Any:
    """Shares against the burst's size, a line a group (its name: its doses); where
    the paper has runs, its share, and a bar: what as many runs as the paper's would
    show 95% of the time.
    """
    figure, axis = pyplot.subplots(figsize=(7.0, 4.2), layout="constrained")
    for place, (name, doses) in enumerate(groups.items()):
        colour = _COLOURS[place % len(_COLOURS)]
        _printed(axis, doses, colour)
        shares = [dose.stuck / dose.runs for dose in doses]
        axis.plot([dose.sessions for dose in doses], shares, marker=_MARKERS[place % len(_MARKERS)], color=colour,
                  linewidth=1.0, alpha=0.85, label=name)  # fmt: skip
        if len(groups) == 1 and len(doses) <= _MOST_COUNTS:
            for dose, share in zip(doses, shares, strict=True):
                axis.annotate(f"{dose.stuck} of {dose.runs}", (dose.sessions, share), xytext=(0, 7),
                              textcoords="offset points", ha="center", fontsize=8)  # fmt: skip
    axis.set(xlabel="sessions in the burst", ylabel="share of runs stuck", ylim=(-0.05, 1.12))
    handles = dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    legend_below(figure, handles.values())
    figure.suptitle(title, weight="bold")
    return figure


def _printed(axis: Any, doses: Sequence[Dose], colour: str) -> None:
    known = [dose for dose in doses if dose.printed_runs]
    for dose in known:
        low, high = binomial_central(dose.printed_runs, dose.stuck / dose.runs)
        span = [low / dose.printed_runs, high / dose.printed_runs]
        axis.plot([dose.sessions] * 2, span, color=colour, linewidth=6, alpha=0.25, solid_capstyle="butt",
                  label=f"central 95% of {dose.printed_runs} such runs")  # fmt: skip
    if known:
        shares = [dose.printed_stuck / dose.printed_runs for dose in known]
        axis.plot([dose.sessions for dose in known], shares, "D", color=BLUE, markersize=8, fillstyle="none",
                  markeredgewidth=1.8, label=f"the paper's engine, {known[0].printed_runs} seeds")  # fmt: skip
