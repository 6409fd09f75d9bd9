"""Ranges of a value over runs, and of theory against runs. Nothing is fitted.

Sums are exact (`verifier.exact_statistics`); what is not finite is left out, and
counted out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

import numpy as np

from verifier.exact_statistics import mean


@dataclass(frozen=True)
class Range:
    """The least and the most of a value over `runs` runs; NaN where there are none."""

    least: float
    most: float
    runs: int


@dataclass(frozen=True)
class Errors:
    """Measured values against predicted ones, over `runs` runs.

    The relative error of a run is (measured - predicted) / |predicted|:
    `mean_error` keeps its sign, `mean_size` drops it, `worst` is the largest one
    in size, with its sign. `median_ratio`, `least_ratio` and `most_ratio` are of
    measured over predicted; `within` counts the runs whose error is at most
    `WITHIN` in size. All NaN where there are no runs.
    """

    runs: int
    mean_error: float
    mean_size: float
    worst: float
    median_ratio: float
    least_ratio: float
    most_ratio: float
    within: int


WITHIN = 0.03
"""The paper's measure of near: 3%."""


def range_of(values: Iterable[float]) -> Range:
    """The range of the finite values."""
    finite = [value for value in values if math.isfinite(value)]
    return Range(min(finite, default=math.nan), max(finite, default=math.nan), len(finite))


def errors_of(pairs: Iterable[tuple[float, float]]) -> Errors:
    """The statistics of (measured, predicted) pairs; a prediction of 0 has no
    relative error and is left out.
    """
    kept = [(m, p) for m, p in pairs if math.isfinite(m) and math.isfinite(p) and p != 0]
    ratios = [measured / predicted for measured, predicted in kept]
    errors = np.array([(measured - predicted) / abs(predicted) for measured, predicted in kept], dtype=np.float64)
    nothing = not kept
    return Errors(
        runs=len(kept),
        mean_error=mean(errors),
        mean_size=mean(np.abs(errors)),
        worst=math.nan if nothing else float(errors[int(np.argmax(np.abs(errors)))]),
        median_ratio=math.nan if nothing else float(median(ratios)),
        least_ratio=min(ratios, default=math.nan),
        most_ratio=max(ratios, default=math.nan),
        within=int(np.count_nonzero(np.abs(errors) <= WITHIN)),
    )
