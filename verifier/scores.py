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
from verifier.verdict import Readings, RunVerdict


@dataclass(frozen=True)
class Score:
    """One predictor at one rate (None: a closed population): predicted and
    measured values by seed, and how many measured ones lie within the
    tolerance. A computed predictor has no prediction (and no hit) where none
    was frozen before the runs.

    A predicted `verdict` has no reading and no tolerance: its values are true
    or false, and a hit is equality. Runs without a decided verdict are not
    measured.
    """

    name: str
    kind: str
    source: str
    arm: str
    rate: float | None
    reading: str | None
    verdict: str | None
    relative_tolerance: float | None
    predicted: dict[int, float | bool]
    measured: dict[int, float | bool]
    hits: int


def score(
    registration: Registration,
    readings: Mapping[RunId, Readings],
    verdicts: Mapping[RunId, list[RunVerdict]],
    frozen: Values,
) -> list[Score]:
    """Every predictor scored over the runs that exist; `frozen` holds the
    values of the computed ones, from their own tag.
    """
    return [
        _score(registration, predictor, rate, readings, verdicts, frozen)
        for predictor in registration.draft.predictors
        for rate in dict.fromkeys(run.rate for run in predicted_runs(registration, predictor))
    ]


def _score(
    registration: Registration,
    predictor: Predictor,
    rate: float | None,
    readings: Mapping[RunId, Readings],
    verdicts: Mapping[RunId, list[RunVerdict]],
    frozen: Values,
) -> Score:
    predicted: dict[int, float | bool] = {}
    measured: dict[int, float | bool] = {}
    for run in (run for run in predicted_runs(registration, predictor) if run.rate == rate):
        value = _predicted(registration, predictor, run, frozen)
        if value is not None:
            predicted[run.seed] = value if predictor.verdict is None else bool(value)
        found = _measured(predictor, readings.get(run), verdicts.get(run, []))
        if found is not None:
            measured[run.seed] = found
    tolerance = predictor.relative_tolerance
    hits = sum(is_hit(predicted[seed], value, tolerance) for seed, value in measured.items() if seed in predicted)
    return Score(
        predictor.name,
        predictor.kind,
        predictor.source,
        predictor.arm,
        rate,
        f"{predictor.window}.{predictor.reading}" if predictor.verdict is None else None,
        predictor.verdict,
        tolerance,
        predicted,
        measured,
        hits,
    )


def _measured(predictor: Predictor, readings: Readings | None, verdicts: list[RunVerdict]) -> float | bool | None:
    if predictor.verdict is not None:
        return {v.name: v.decision.value for v in verdicts}.get(predictor.verdict)
    return readings[str(predictor.window)][str(predictor.reading)] if readings else None


def _predicted(registration: Registration, predictor: Predictor, run: RunId, frozen: Values) -> float | None:
    if predictor.computed:
        return frozen.get((predictor.name, run))
    assert predictor.value is not None
    return predictor.value * (registration.references(run)[predictor.times] if predictor.times else 1.0)


def is_hit(predicted: float, measured: float, tolerance: float | None) -> bool:
    """Whether a run hit: within the relative tolerance, or (None) equal."""
    if tolerance is None:
        return predicted == measured
    return (
        math.isfinite(measured) and math.isfinite(predicted) and abs(measured - predicted) <= tolerance * abs(predicted)
    )
