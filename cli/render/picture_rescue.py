"""Trap, rescue, release and persistence, after the paper's Figure 10."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cli.render.pictures import BLUE, GREEN, GREY, RED
from verifier.series import Series

_LOOKS = {
    "BURST": {"color": RED, "linewidth": 1.2},
    "NOBURST": {"color": BLUE, "linewidth": 2.4, "alpha": 0.6},
    "RESCUE": {"color": GREEN, "linewidth": 1.4},
}
_WORDS = {"BURST": "BURST, never capped", "NOBURST": "NOBURST", "RESCUE": "RESCUE"}


def draw_rescue(pyplot: Any, columns: Mapping[str, Mapping[str, Series]], horizon_s: float) -> Any:
    """One column a test and rate (its title: the arms' series): hits above,
    sessions below; shaded green while the cap is engaged, grey after release.
    """
    figure, axes = pyplot.subplots(
        2, len(columns), figsize=(3.9 * len(columns) + 1.0, 5.4), layout="constrained", sharex=True, squeeze=False
    )
    for column, (title, arms) in enumerate(columns.items()):
        above, below = axes[:, column]
        for arm, series in arms.items():
            above.plot(series.middle_s, series.hits, label=_WORDS.get(arm, arm), **_LOOKS.get(arm, {}))
            below.plot(series.middle_s, series.outstanding, **_LOOKS.get(arm, {}))
        rescue = arms["RESCUE"]
        below.plot(rescue.middle_s, rescue.at_gate, ":", color=GREEN, label="RESCUE, waiting at the client")
        _shade((above, below), rescue, horizon_s)
        above.set_title(title, fontsize=9)
        above.set_ylim(-0.04, 1.06)
        below.set_ylim(bottom=0)
        above.set_xlim(0, horizon_s)
        below.set_xlabel("time from the run's start, s")
    axes[0, 0].set_ylabel("follow-up hit fraction")
    axes[1, 0].set_ylabel("sessions waiting at or\nserved by the engine")
    handles = [h for axis in axes[:, 0] for h in axis.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=6)
    figure.suptitle("SIMULATED: a session cap rescues an established trap (seeds of median release)", weight="bold")
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
