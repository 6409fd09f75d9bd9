"""Model F against every stuck run, after the paper's Figure 8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cli.render.pictures import BLUE, GREEN, GREY, PURPLE, RED, SKY, legend_below
from cli.workflows.reproduce_theory import TheoryPoints

_COLOURS = {"sglang-300k": RED, "sglang-native": BLUE, "vllm-300k": SKY, "h200-600k": GREEN, "llama-300k": PURPLE}
_MARKERS = {"sglang-300k": "o", "sglang-native": "s", "vllm-300k": "^", "h200-600k": "D", "llama-300k": "v"}
_APART = 1.015
"""Groups of dots are set apart by this factor of the load, so that all are seen."""
_TICKS = (1.0, 1.35, 1.65, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0)
_FINE_TICKS = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9)
_PANELS = (
    ("prompt", "mean prompt served / stationary mean"),
    ("completions", "completions / $\\lambda_{miss}$"),
    ("backlog_slope", "backlog slope / $\\lambda_{miss}$"),
    ("gap_slope", "gap slope, s per s"),
)


def _place(group: TheoryPoints) -> int:
    """Where a group stands beside others of nearly its load."""
    if group.from_empty:
        return 0
    return list(_COLOURS).index(group.cell) - len(_COLOURS) // 2 if group.cell in _COLOURS else 0


def _look(group: TheoryPoints) -> dict[str, Any]:
    colour = _COLOURS.get(group.cell, GREY)
    if group.from_empty:
        return {"color": colour, "marker": "D", "fillstyle": "none", "markersize": 4, "alpha": 0.45,
                "markeredgewidth": 0.7, "label": f"{group.cell}, from empty"}  # fmt: skip
    return {"color": colour, "marker": _MARKERS.get(group.cell, "o"), "markersize": 4.5, "alpha": 0.6,
            "markeredgewidth": 0, "label": f"{group.cell}, stuck runs"}  # fmt: skip


def draw_theory(
    pyplot: Any, points: Sequence[TheoryPoints], curves: Sequence[TheoryPoints], title: str, *, set_apart: bool = False
) -> Any:
    """Four panels against rho: a line a cell for model F, a dot a stuck run,
    the quasi-static reading dashed. `set_apart`: the cells' dots beside each other.
    """
    figure, axes = pyplot.subplots(2, 2, figsize=(9.0, 7.0), layout="constrained", sharex=True)
    rho = curves[0].rho
    quasi_static = {"prompt": np.ones_like(rho), "completions": np.ones_like(rho), "backlog_slope": rho - 1.0}
    for axis, (name, label) in zip(axes.flat, _PANELS, strict=True):
        for group in points:
            axis.plot(
                group.rho * _APART ** (set_apart * _place(group)), getattr(group, name), linestyle="", **_look(group)
            )
        for curve in curves:
            axis.plot(curve.rho, getattr(curve, name), color="black", linewidth=0.9, label="model F, a line a cell")
        if name in quasi_static:
            axis.plot(rho, quasi_static[name], "--", color=GREY, linewidth=1.2, label="quasi-static reading")
        axis.set_ylabel(label)
    for axis in axes[1]:
        axis.set_xscale("log")
        ticks = _FINE_TICKS if rho[-1] < _FINE_TICKS[-1] else _TICKS
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
        axis.minorticks_off()
        axis.set_xlim(0.97, 1.05 * rho[-1])
        axis.set_xlabel("load $\\rho = \\lambda / \\lambda_{miss}$")
    handles = dict(zip(*reversed(axes[0, 1].get_legend_handles_labels()), strict=True))
    legend_below(figure, handles.values())
    apart = " (cells set apart by 1.5% of the load)" if set_apart else ""
    figure.suptitle(f"{title}{apart}", weight="bold")
    return figure
