"""Predictions against recomputed readings. Scores change no verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from registry.design import RunId
from registry.predictions import Values
from registry.predictor import Predictor
from registry.registration import Registration
from verifier.predictors import predicted_runs
from verifier.verdict import Readings


@dataclass(frozen=True)
class Score:
    """One predictor at one rate (None: a closed population): predicted and
    measured values by seed, and how many measured ones lie within the
    tolerance. A computed predictor has no prediction (and no hit) where none
    was frozen before the runs.
    """

    name: str
    kind: str
    source: str
    arm: str
    rate: float | None
    reading: str
    relative_tolerance: float
    predicted: dict[int, float]
    measured: dict[int, float]
    hits: int


def score(registration: Registration, readings: Mapping[RunId, Readings], frozen: Values) -> list[Score]:
    """Every predictor scored over the runs that exist; `frozen` holds the
    values of the computed ones, from their own tag.
    """
    return [
        _score(registration, predictor, rate, readings, frozen)
        for predictor in registration.draft.predictors
        for rate in dict.fromkeys(run.rate for run in predicted_runs(registration, predictor))
    ]


def _score(
    registration: Registration,
    predictor: Predictor,
    rate: float | None,
    readings: Mapping[RunId, Readings],
    frozen: Values,
) -> Score:
    predicted: dict[int, float] = {}
    measured: dict[int, float] = {}
    for run in (run for run in predicted_runs(registration, predictor) if run.rate == rate):
        value = _predicted(registration, predictor, run, frozen)
        if value is not None:
            predicted[run.seed] = value
        if run in readings:
            measured[run.seed] = readings[run][predictor.window][predictor.reading]
    hits = sum(
        _hit(predicted[seed], value, predictor.relative_tolerance)
        for seed, value in measured.items()
        if seed in predicted
    )
    return Score(
        predictor.name,
        predictor.kind,
        predictor.source,
        predictor.arm,
        rate,
        f"{predictor.window}.{predictor.reading}",
        predictor.relative_tolerance,
        predicted,
        measured,
        hits,
    )


def _predicted(registration: Registration, predictor: Predictor, run: RunId, frozen: Values) -> float | None:
    if predictor.computed:
        return frozen.get((predictor.name, run))
    assert predictor.value is not None
    return predictor.value * (registration.references(run)[predictor.times] if predictor.times else 1.0)


def _hit(predicted: float, measured: float, tolerance: float) -> bool:
    return (
        math.isfinite(measured) and math.isfinite(predicted) and abs(measured - predicted) <= tolerance * abs(predicted)
    )
