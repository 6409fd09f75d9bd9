"""Hits and sessions over time: every arm a colour, every seed a thin line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cli.render.pictures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, legend_below
from registry.design import RunId
from verifier.series import Series

COLOURS = {
    "BURST": RED,
    "NOBURST": BLUE,
    "CAPPED": GREEN,
    "RESCUE": GREEN,
    "CUT": RED,
    "EMPTY": RED,
    "SLOW": RED,
    "SLOW10": BLUE,
    "SLOW30": RED,
    "STOP600": RED,
    "STOP3600": BLUE,
    "BURST25": BLUE,
    "BURST40": BLUE,
    "BURST50": ORANGE,
    "BURST60": RED,
    "BURST100": RED,
}
_OTHERS = (PURPLE, SKY, ORANGE, GREY)
_COLUMNS = 3
_STYLES = ("-", "--", ":", "-.")
_DASHED = {"CAPPED"}


def looks_of(arms: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Each arm's colour and line: its own colour, or one by its place; arms of one
    colour differ in their lines.
    """
    looks: dict[str, dict[str, Any]] = {}
    for place, arm in enumerate(arms):
        colour = COLOURS.get(arm) or _OTHERS[place % len(_OTHERS)]
        before = sum(look["color"] == colour for look in looks.values()) + (arm in _DASHED)
        looks[arm] = {"color": colour, "linestyle": _STYLES[before % len(_STYLES)]}
    return looks


def draw_arms(
    pyplot: Any,
    series: Mapping[RunId, Series],
    *,
    title: str,
    marks: Mapping[str, Sequence[tuple[float, float]]],
    judged: tuple[float, float] | None,
    horizon_s: float,
) -> Any:
    """One column a rate: follow-up hit fraction above, sessions below.

    `title` says whether the runs are simulated. `marks` are spans of seconds to
    shade, by what they mean; `judged` the window that the rule reads.
    """
    rates = list(dict.fromkeys(run.rate for run in series))
    arms = list(dict.fromkeys(run.arm for run in series))
    looks = looks_of(arms)
    seeds = len({run.seed for run in series})
    columns = min(len(rates), _COLUMNS)
    blocks = -(-len(rates) // _COLUMNS)
    size = (max(4.2 * columns + 1.0, 8.0), 4.9 * blocks + 0.5)
    figure, axes = pyplot.subplots(
        2 * blocks, columns, figsize=size, layout="constrained", sharex=True, sharey="row", squeeze=False
    )
    for place, rate in enumerate(rates):
        block, column = divmod(place, _COLUMNS)
        above, below = axes[2 * block : 2 * block + 2, column]
        for run, one in series.items():
            if run.rate == rate:
                look = looks[run.arm] | {"linewidth": 0.8, "alpha": 0.65}
                above.plot(one.middle_s, one.hits, **look)
                below.plot(one.middle_s, one.outstanding, **look)
        _dress(above, below, rate, marks, judged)
    for block in range(blocks):
        axes[2 * block, 0].set(ylabel="follow-up hit fraction", ylim=(-0.04, 1.06), xlim=(0, horizon_s))
        axes[2 * block + 1, 0].set(ylabel="sessions waiting at or\nserved by the engine", ylim=(0, None))
    for axis in axes.flat:
        axis.set_visible(bool(axis.lines))
    _legend(figure, looks, marks, judged)
    figure.suptitle(f"{title}, {seeds} seed{'s' if seeds > 1 else ''}", weight="bold")
    return figure


def _dress(above: Any, below: Any, rate: float | None, marks: Mapping[str, Any], judged: Any) -> None:
    above.set_title("closed population" if rate is None else f"{rate:g} $\\lambda_{{ref}}$")
    below.set_xlabel("time from the run's start, s")
    for axis in (above, below):
        for start_s, end_s in (span for spans in marks.values() for span in spans):
            axis.axvspan(start_s, end_s, color=ORANGE, alpha=0.18, linewidth=0)
        if judged:
            axis.axvspan(*judged, color=GREY, alpha=0.10, linewidth=0)


def _legend(figure: Any, looks: Mapping[str, dict[str, Any]], marks: Mapping[str, Any], judged: Any) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [Line2D([], [], label=arm, **look) for arm, look in looks.items()]
    handles += [Patch(color=ORANGE, alpha=0.3, linewidth=0, label=name) for name in marks]
    if judged:
        handles.append(Patch(color=GREY, alpha=0.2, linewidth=0, label="judged window"))
    legend_below(figure, handles)
