"""The throughput curve mu(n), n sessions kept running, and its hits."""

from __future__ import annotations

from typing import Any

import numpy as np

from cli.render.pictures import BLUE, GREY, RED
from cli.workflows.reproduce_closed import ClosedPoints, medians
from modelf.closed_population import ClosedCurve


def draw_closed(pyplot: Any, points: ClosedPoints, curve: ClosedCurve | None, title: str) -> Any:
    """Turns per second above, follow-up hit fraction below; every seed a dot,
    their median a ring, the theory of the closed population (if any) dashed.
    """
    figure, axes = pyplot.subplots(2, 1, figsize=(8.0, 6.0), layout="constrained", sharex=True)
    panels = (
        ("turns finished per second", points.turns_per_s, curve and curve.turns_per_s),
        ("follow-up hit fraction", points.hits, curve and curve.hit_fraction),
    )
    for axis, (label, seeds, predicted) in zip(axes, panels, strict=True):
        every = np.repeat(points.sessions, seeds.shape[1])
        axis.plot(every, seeds.ravel(), ".", color=RED, alpha=0.4, markersize=7, markeredgewidth=0,
                  label="runs, a dot a seed")  # fmt: skip
        axis.plot(points.sessions, medians(seeds), "o-", color=RED, linewidth=1.1, fillstyle="none",
                  label=f"median of {seeds.shape[1]} seeds")  # fmt: skip
        if curve is not None:
            axis.plot(curve.sessions, predicted, "--", color=BLUE, linewidth=1.4,
                      label="closed-population theory, the cell's step costs")  # fmt: skip
        axis.set(ylabel=label, ylim=(0, None))
    axes[1].axhline(0.5, color=GREY, linewidth=0.8)
    axes[1].set(xlabel="sessions kept running, n", xlim=(0, None), ylim=(-0.03, 1.05))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle(title, weight="bold")
    return figure
