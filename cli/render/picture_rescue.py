"""Trap, rescue, release and persistence, after the paper's Figure 10."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cli.render.pictures import BLUE, GREEN, GREY, RED, legend_below
from verifier.series import Series

_LOOKS = {
    "untreated": {"color": RED, "linewidth": 1.2},
    "quiet": {"color": BLUE, "linewidth": 2.4, "alpha": 0.6},
    "rescued": {"color": GREEN, "linewidth": 1.4},
}
_MOST_COLUMNS = 3


@dataclass(frozen=True)
class RescueColumn:
    """One seed at one rate: the capped run, and those beside it (None: not there);
    `names` are the arms' names, as in the fields.
    """

    rescued: Series
    quiet: Series | None
    untreated: Series | None
    names: Mapping[str, str]

    @property
    def lines(self) -> dict[str, Series]:
        """The runs there are, in the order in which they are drawn."""
        found = {role: getattr(self, role) for role in ("untreated", "quiet", "rescued")}
        return {role: series for role, series in found.items() if series is not None}


def draw_rescue(pyplot: Any, columns: Mapping[str, RescueColumn], *, title: str, horizon_s: float) -> Any:
    """One column a test and rate (its title: its runs): hits above, sessions
    below; shaded green while the cap is engaged, grey after release.
    """
    across = min(len(columns), _MOST_COLUMNS)
    blocks = -(-len(columns) // _MOST_COLUMNS)
    figure, axes = pyplot.subplots(
        2 * blocks,
        across,
        figsize=(max(3.9 * across + 1.0, 7.0), 4.9 * blocks + 0.5),
        layout="constrained",
        sharex=True,
        squeeze=False,
    )
    handles: dict[str, Any] = {}
    for place, (head, column) in enumerate(columns.items()):
        block, across_place = divmod(place, _MOST_COLUMNS)
        above, below = axes[2 * block : 2 * block + 2, across_place]
        for role, series in column.lines.items():
            label = f"{column.names[role]}, never capped" if role == "untreated" else column.names[role]
            above.plot(series.middle_s, series.hits, label=label, **_LOOKS[role])
            below.plot(series.middle_s, series.outstanding, **_LOOKS[role])
        rescue = column.rescued
        waiting = f"{column.names['rescued']}, waiting at the client"
        below.plot(rescue.middle_s, rescue.at_gate, ":", color=GREEN, label=waiting)
        _shade((above, below), rescue, horizon_s)
        above.set_title(head, fontsize=9)
        above.set_ylim(-0.04, 1.06)
        below.set_ylim(bottom=0)
        above.set_xlim(0, horizon_s)
        below.set_xlabel("time from the run's start, s")
        for axis in (above, below):
            handles |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    for block in range(blocks):
        axes[2 * block, 0].set_ylabel("follow-up hit fraction")
        axes[2 * block + 1, 0].set_ylabel("sessions waiting at or\nserved by the engine")
    for axis in axes.flat:
        axis.set_visible(bool(axis.lines))
    legend_below(figure, handles.values())
    figure.suptitle(title, weight="bold")
    return figure


def _shade(axes: tuple[Any, Any], rescue: Series, horizon_s: float) -> None:
    if np.isnan(rescue.engaged_s):
        return
    released = not np.isnan(rescue.release_s)
    until_s = rescue.release_s if released else horizon_s
    for axis in axes:
        axis.axvspan(rescue.engaged_s, until_s, color=GREEN, alpha=0.13, linewidth=0)
        if released:
            axis.axvspan(until_s, horizon_s, color=GREY, alpha=0.10, linewidth=0)
    words = f"cap on, {rescue.engaged_s:,.0f} to {until_s:,.0f} s"
    axes[1].text((rescue.engaged_s + until_s) / 2, 0.97, words, transform=axes[1].get_xaxis_transform(),
                 ha="center", va="top", color="#00553e", fontsize=8)  # fmt: skip
