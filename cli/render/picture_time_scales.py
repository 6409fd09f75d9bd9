"""The gap between a session's turns against the pool's turnover, on one time axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cli.render.pictures import BLUE, ORANGE
from verifier.ranges import Range

_HALF, _LEAST_RATIO = 0.17, 1.03
"""Half of a bar's height; the least ratio of its ends, so that one run is seen."""

_TICKS = (1, 2, 5)


@dataclass(frozen=True)
class TimeScales:
    """One arm at one rate: its name, and its ranges over runs, seconds."""

    name: str
    gap_s: Range
    turnover_s: Range


def draw_time_scales(pyplot: Any, rows: Sequence[TimeScales], title: str) -> Any:
    """A row an arm and rate: the gap's range above, the turnover's below."""
    figure, axis = pyplot.subplots(figsize=(8.0, 0.62 * len(rows) + 1.7), layout="constrained")
    for place, row in enumerate(rows):
        for found, offset, colour in ((row.gap_s, -_HALF, BLUE), (row.turnover_s, _HALF, ORANGE)):
            if found.runs and found.least > 0:
                low, high = found.least, max(found.most, found.least * _LEAST_RATIO)
                axis.barh(place + offset, high - low, left=low, height=1.8 * _HALF, color=colour, linewidth=0)
                axis.annotate(_words(found), (high, place + offset), xytext=(4, 0), textcoords="offset points",
                              va="center", fontsize=8)  # fmt: skip
    axis.set_xscale("log")
    _seconds(axis, [end for row in rows for found in (row.gap_s, row.turnover_s) for end in (found.least, found.most)])
    axis.set_yticks(range(len(rows)), [row.name for row in rows])
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.grid(visible=False, axis="y")
    axis.set_xlabel("seconds")
    _legend(figure)
    figure.suptitle(title, weight="bold")
    return figure


def _seconds(axis: Any, values: Sequence[float]) -> None:
    """A time axis with room for the numbers beside the bars."""
    low, high = min(value for value in values if value > 0) / 1.5, max(values) * 3.5
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**decade for decade in decades for step in _TICKS if low <= step * 10.0**decade <= high]
    axis.set_xlim(low, high)
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()


def _words(found: Range) -> str:
    ends = [f"{value:.3g}" if value < 100 else f"{value:,.0f}" for value in (found.least, found.most)]
    return " to ".join(dict.fromkeys(ends))


def _legend(figure: Any) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(color=BLUE, linewidth=0, label="gap between a session's turns"),
        Patch(color=ORANGE, linewidth=0, label="pool turnover time"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
