"""Means, slopes and percentiles that are the same bytes on any machine.

Every sum is `math.fsum`, correctly rounded and so independent of the order of
its terms; nothing goes through BLAS, pairwise sums or a solver. NaN in, NaN
out; what has no value (a mean of nothing) is NaN.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def total(values: FloatArray | IntArray) -> float:
    """The sum, correctly rounded; 0.0 of nothing."""
    return math.fsum(values.tolist())


def quotient(numerator: float, denominator: float) -> float:
    """The quotient; NaN where the denominator is not above 0."""
    return numerator / denominator if denominator > 0 else math.nan


def mean(values: FloatArray | IntArray) -> float:
    """Arithmetic mean; NaN of nothing."""
    return quotient(total(values), float(values.size))


def slope(times: FloatArray, values: FloatArray) -> float:
    """Least-squares slope of `values` on `times` (one each, shape (n,)).

    NaN for fewer than two distinct times.
    """
    # Equal times are found by comparing: their mean may round to another value.
    if times.size < 2 or times.min() == times.max():
        return math.nan
    from_mean = times - mean(times)
    spread = total(from_mean * from_mean)
    return quotient(total(from_mean * (values - mean(values))), spread)


def nearest_ranks(values: FloatArray, percents: tuple[int, ...]) -> tuple[float, ...]:
    """Percentiles by nearest rank: the ceil(p n / 100)-th smallest of n values.

    NaN for each where there are no values or one of them is NaN.
    """
    if values.size == 0 or bool(np.isnan(values).any()):
        return (math.nan,) * len(percents)
    ascending = np.sort(values)
    ranks = [max(1, -(-percent * values.size // 100)) for percent in percents]
    return tuple(float(ascending[rank - 1]) for rank in ranks)
