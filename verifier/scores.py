"""Frozen predictions against recomputed readings. Scores change no verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from registry.design import RunId
from registry.draft import Predictor
from registry.registration import Registration
from verifier.verdict import Readings


@dataclass(frozen=True)
class Score:
    """One predictor: its value in the reading's unit, the readings by seed,
    and how many of them lie within the tolerance.
    """

    name: str
    source: str
    arm: str
    rate: float
    reading: str
    predicted: float
    relative_tolerance: float
    measured: dict[int, float]
    hits: int


def score(registration: Registration, readings: Mapping[RunId, Readings]) -> list[Score]:
    """Every predictor scored over the runs that exist."""
    return [_score(registration, predictor, readings) for predictor in registration.draft.predictors]


def _score(registration: Registration, predictor: Predictor, readings: Mapping[RunId, Readings]) -> Score:
    measured: dict[int, float] = {}
    predicted = predictor.value
    for run in registration.draft.design.run_ids():
        if (run.arm, run.rate) != (predictor.arm, predictor.rate):
            continue
        if predictor.times:
            predicted = predictor.value * registration.references(run)[predictor.times]
        if run in readings:
            measured[run.seed] = readings[run][predictor.window][predictor.reading]
    allowed = predictor.relative_tolerance * abs(predicted)
    hits = sum(1 for x in measured.values() if math.isfinite(x) and abs(x - predicted) <= allowed)
    return Score(
        predictor.name,
        predictor.source,
        predictor.arm,
        predictor.rate,
        f"{predictor.window}.{predictor.reading}",
        predicted,
        predictor.relative_tolerance,
        measured,
        hits,
    )
