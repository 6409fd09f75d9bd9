"""Whether a printed outcome agrees with the same outcome over our seeds.

Pure. Two questions, both answered from our runs alone. No tolerance is added;
our spans are rounded to the decimals that the page prints, since that is all
that is known of the printed value:

`inside`: does what is printed lie in our central 95%? For a value, and for
both ends of a range, that is the span between the 2.5% and the 97.5% quantile
of our runs (linear between order statistics). For `count` of `of` runs it is
the central 95% of the exact binomial with our share: no more than 2.5% lies
below or above.

`as_drawn`: could the paper's runs be draws from ours? It says yes in at least
95% of cases in which they are, as far as our seeds tell our distribution. For
a range, its ends are the lowest and the highest of n runs, each within the
central 97.5% of that extreme; for the highest of n, its central 95%; for a
mean of n, the normal 95% of a mean of n beside ours of m; else as `inside`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from verifier.printed_outcomes import Printed

Values = NDArray[np.float64]

CENTRAL = 0.95
_TAIL = (1 - CENTRAL) / 2


@dataclass(frozen=True)
class Agreement:
    """Our side of one outcome and what it says about the printed one.

    `runs` of ours were defined. For readings `median`, `low` and `high` (the
    central 95%), `least` and `most`, and `mean`; for counts `share`, and `low`
    and `high` are counts out of the printed number of runs. What was not to be
    had is None; so are the answers where no run of ours is defined.
    """

    runs: int
    median: float | None = None
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    least: float | None = None
    most: float | None = None
    share: float | None = None
    inside: bool | None = None
    as_drawn: bool | None = None


def agree(printed: Printed, ours: Sequence[float]) -> Agreement:
    """Compare a printed outcome with our runs: one value a run, 1.0 and 0.0
    for yes and no where a count is printed; a share of a rate's passes may
    stand for all. NaN is not defined, and left out.
    """
    values = np.asarray([value for value in ours if math.isfinite(value)], dtype=np.float64)
    if not values.size:
        return Agreement(0)
    mean = math.fsum(values.tolist()) / values.size
    if printed.kind == "count":
        low, high = binomial_central(printed.of, mean)
        inside = low <= printed.low <= high
        return Agreement(values.size, low=low, high=high, share=mean, inside=inside, as_drawn=inside)
    central = _span(values, _TAIL, 1 - _TAIL)
    inside = _within(printed.low, central, printed.decimals) and _within(printed.high, central, printed.decimals)
    return Agreement(
        runs=values.size,
        median=float(np.quantile(values, 0.5)),
        mean=mean,
        low=central[0],
        high=central[1],
        least=float(values.min()),
        most=float(values.max()),
        inside=inside,
        as_drawn=_as_drawn(printed, values, inside),
    )


def _as_drawn(printed: Printed, values: Values, inside: bool) -> bool | None:
    n, decimals = printed.of, printed.decimals
    if printed.kind == "range" and n > 1:
        tail = _TAIL / 2
        lowest = _span(values, 1 - (1 - tail) ** (1 / n), 1 - tail ** (1 / n))
        highest = _span(values, tail ** (1 / n), (1 - tail) ** (1 / n))
        return _within(printed.low, lowest, decimals) and _within(printed.high, highest, decimals)
    if printed.kind == "highest":
        return _within(printed.low, _span(values, _TAIL ** (1 / n), (1 - _TAIL) ** (1 / n)), decimals)
    if printed.kind == "mean":
        if values.size < 2:
            return None
        error = float(values.std(ddof=1)) * math.sqrt(1 / n + 1 / values.size)
        reach = NormalDist().inv_cdf(1 - _TAIL) * error
        return _within(printed.low, (float(values.mean()) - reach, float(values.mean()) + reach), decimals)
    return inside


def _span(values: Values, low: float, high: float) -> tuple[float, float]:
    return float(np.quantile(values, low)), float(np.quantile(values, high))


def _within(printed: float, span: tuple[float, float], decimals: int) -> bool:
    return round(span[0], decimals) <= printed <= round(span[1], decimals)


def binomial_central(n: int, share: float) -> tuple[int, int]:
    """The central 95% of a binomial of n with probability `share`: the least
    counts whose cumulative probability is above 2.5%, and at least 97.5%.
    """
    cumulative = [math.fsum(_terms(n, share)[: k + 1]) for k in range(n + 1)]
    low = next((k for k, p in enumerate(cumulative) if p > _TAIL), n)
    high = next((k for k, p in enumerate(cumulative) if p >= 1 - _TAIL), n)
    return low, high


def _terms(n: int, share: float) -> list[float]:
    return [math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
