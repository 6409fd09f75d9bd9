"""What the central 95% of our runs says about a printed outcome."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from verifier.agreement import agree, binomial_central
from verifier.printed_outcomes import Printed

OURS = [float(value) for value in range(1, 41)]


def printed(kind: str, low: float, high: float | None = None, of: int = 3, decimals: int = 2) -> Printed:
    return Printed(kind, low, low if high is None else high, of, decimals)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 57])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.5, 0.77, 0.95, 1.0])
def test_the_binomial_is_the_exact_one(n: int, share: float) -> None:
    low, high = binomial_central(n, share)
    assert (low, high) == (max(0, binom.ppf(0.025, n, share)), max(0, binom.ppf(0.975, n, share)))


def test_a_count_is_inside_where_the_binomial_of_our_share_holds_it() -> None:
    ours = [1.0] * 30 + [0.0] * 10
    answer = agree(printed("count", 5, of=6), ours)
    assert (answer.share, answer.low, answer.high) == (0.75, 2, 6)
    assert answer.inside and answer.as_drawn
    assert agree(printed("count", 1, of=6), ours).inside is False


def test_a_share_of_one_holds_only_the_full_count() -> None:
    assert agree(printed("count", 3, of=3), [1.0] * 20).inside is True
    assert agree(printed("count", 2, of=3), [1.0] * 20).inside is False


def test_both_ends_of_a_range_lie_between_our_quantiles() -> None:
    low, high = np.quantile(OURS, [0.025, 0.975]).tolist()
    assert agree(printed("range", low + 0.01, high - 0.01), OURS).inside is True
    assert agree(printed("range", low - 0.1, 20), OURS).inside is False
    assert agree(printed("range", 20, high + 0.1), OURS).inside is False


def test_our_spans_are_rounded_as_the_page_is_and_no_further() -> None:
    ours = [0.0504] * 5
    assert agree(printed("value", 0.05, of=1, decimals=2), ours).inside is True
    assert agree(printed("value", 0.05, of=1, decimals=3), ours).inside is True
    assert agree(printed("value", 0.05, of=1, decimals=4), ours).inside is False


def test_a_narrow_range_at_one_end_is_inside_but_no_draw_of_ours() -> None:
    answer = agree(printed("range", 37, 38), OURS)
    assert answer.inside is True
    assert answer.as_drawn is False


def test_extremes_of_many_runs_may_leave_the_central_95_percent() -> None:
    answer = agree(printed("range", 1.5, 39.5, of=40), OURS)
    assert answer.inside is False
    assert answer.as_drawn is True


def test_draws_of_our_own_distribution_are_called_so_nearly_always() -> None:
    chosen = np.random.default_rng(5)
    ours = chosen.normal(size=4000).tolist()
    draws = [chosen.normal(size=3) for _ in range(400)]
    said = [agree(printed("range", d.min(), d.max(), decimals=6), ours).as_drawn for d in draws]
    assert 0.92 < np.mean(said) < 0.99


def test_a_mean_is_held_to_the_scatter_of_means() -> None:
    assert agree(printed("mean", 21, of=40), OURS).as_drawn is True
    assert agree(printed("mean", 30, of=40), OURS).as_drawn is False
    assert agree(printed("mean", 30, of=40), OURS).inside is True


def test_the_highest_of_many_is_held_to_the_highest_of_ours() -> None:
    assert agree(printed("highest", 39.8, of=50), OURS).as_drawn is True
    assert agree(printed("highest", 20, of=50), OURS).as_drawn is False


def test_undefined_runs_are_left_out_and_none_decides_nothing() -> None:
    assert agree(printed("range", 2, 3), [math.nan, 1.0, 4.0]).runs == 2
    assert agree(printed("range", 2, 3), [math.nan]).inside is None
