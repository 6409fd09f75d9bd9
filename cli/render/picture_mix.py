"""Model F's turn mix at the registered rates, and its readings against the load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cli.render.pictures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY
from verifier.exact_statistics import FloatArray

COLOURS = (RED, BLUE, GREEN, PURPLE, ORANGE, SKY)


def draw_mix(
    pyplot: Any,
    stationary: FloatArray,
    mixes: Mapping[str, FloatArray],
    curves: Mapping[str, FloatArray],
    rho: FloatArray,
    marked: Sequence[float],
    title: str,
) -> Any:
    """Left, the share of turns served by turn number: steps for the trapped mixes
    (their names: theirs), a line for the stationary one. Right, `curves` over `rho`,
    the registered loads marked.
    """
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
    edges = np.arange(stationary.size + 1) + 0.5
    for place, (name, mix) in enumerate(mixes.items()):
        left.stairs(mix, edges, color=COLOURS[place % len(COLOURS)], fill=place == 0, alpha=0.35 if place == 0 else 1.0,
                    linewidth=1.3, label=name)  # fmt: skip
    left.plot(np.arange(stationary.size) + 1, stationary, color=GREY, linewidth=1.4, label="stationary mix")
    left.set(
        xlabel="turn number", ylabel="share of the turns served", xlim=(0.5, stationary.size + 0.5), ylim=(0, None)
    )
    left.xaxis.get_major_locator().set_params(integer=True)
    left.legend()
    for place, (name, values) in enumerate(curves.items()):
        right.plot(rho, values, color=COLOURS[place % len(COLOURS)], linewidth=1.4, label=name)
    for place, load in enumerate(marked):
        right.axvline(load, color=GREY, linewidth=0.8, linestyle=":", label=None if place else "registered loads")
    right.axhline(1.0, color=GREY, linewidth=0.6)
    right.set(xlabel="load $\\rho = \\lambda / \\lambda_{miss}$", xlim=(1.0, rho[-1]), ylim=(0, None))
    right.legend()
    figure.suptitle(title, weight="bold")
    return figure
