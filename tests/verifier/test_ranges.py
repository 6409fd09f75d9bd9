"""Ranges over runs, and theory against runs: by hand."""

from __future__ import annotations

import math

import pytest

from verifier.ranges import errors_of, range_of


def test_a_range_leaves_out_what_is_not_defined() -> None:
    found = range_of([3.0, math.nan, 1.0, math.inf])
    assert (found.least, found.most, found.runs) == (1.0, 3.0, 2)
    nothing = range_of([math.nan])
    assert nothing.runs == 0
    assert math.isnan(nothing.least)
    assert math.isnan(nothing.most)


def test_errors_are_relative_to_what_was_predicted() -> None:
    found = errors_of([(11.0, 10.0), (9.0, 10.0), (5.0, 10.0), (1.0, 0.0), (math.nan, 10.0), (10.2, 10.0)])
    assert found.runs == 4
    assert found.mean_error == pytest.approx((0.1 - 0.1 - 0.5 + 0.02) / 4)
    assert found.mean_size == pytest.approx((0.1 + 0.1 + 0.5 + 0.02) / 4)
    assert found.worst == -0.5
    assert (found.least_ratio, found.most_ratio) == (0.5, 1.1)
    assert found.median_ratio == pytest.approx(0.96)
    assert found.within == 1


def test_a_negative_prediction_keeps_the_sign_of_the_error() -> None:
    found = errors_of([(-1.5, -1.0)])
    assert found.worst == -0.5
    assert found.most_ratio == 1.5


def test_no_pair_has_no_statistics() -> None:
    found = errors_of([])
    assert (found.runs, found.within) == (0, 0)
    assert all(math.isnan(value) for value in (found.mean_error, found.mean_size, found.worst, found.median_ratio))
