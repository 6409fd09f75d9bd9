"""What our runs say about one printed outcome: a value a run. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache

from cli.workflows.rehearse import Rehearsal, on_literal_seeds
from modelf.conformance import quantities
from modelf.workload import WORKLOADS
from registry.design import RunId
from registry.predictions import Values
from registry.registration import Registration
from registry.rule import Decision
from verifier.predictors import evaluate
from verifier.printed_outcomes import Outcome
from verifier.scores import score
from verifier.verdict import RunVerdict


def values_of(outcome: Outcome, rehearsals: Mapping[str, Rehearsal]) -> list[float]:
    """One value for each of the outcome's runs, in the rehearsals' order; NaN
    where it is not defined. Of a rate's rule: the share of passes of each rate.
    """
    return [value for test in outcome.tests for value in _values(outcome, rehearsals[test])]


def _values(outcome: Outcome, rehearsal: Rehearsal) -> Iterator[float]:
    if outcome.rate_rule:
        yield from (rehearsal.pass_share[rate] for rate in outcome.rates or rehearsal.pass_share)
        return
    if outcome.scored:
        yield from _scores(outcome, rehearsal)
        return
    predictions = _predictions(outcome.predicted, rehearsal) if outcome.predicted else {}
    for run in rehearsal.readings:
        if run.arm in outcome.arms and (not outcome.rates or run.rate in outcome.rates):
            yield _value(outcome, rehearsal, run, predictions)


def _predictions(name: str, rehearsal: Rehearsal) -> Values:
    """What one predictor says on the plans of the literal seeds."""
    literal = on_literal_seeds(rehearsal.registration, rehearsal.seeds, [name])
    return evaluate(literal, None, rehearsal.readings.__getitem__)


def _scores(outcome: Outcome, rehearsal: Rehearsal) -> Iterator[float]:
    """1 for each run that the predictor hit, 0 for each that it missed."""
    name = str(outcome.scored)
    literal = on_literal_seeds(rehearsal.registration, rehearsal.seeds, [name])
    verdicts = {
        run: [RunVerdict(verdict, Decision(value, ""), False) for verdict, value in found.items()]
        for run, found in rehearsal.verdicts.items()
    }
    for one in score(literal, rehearsal.readings, verdicts, _predictions(name, rehearsal)):
        if not outcome.rates or one.rate in outcome.rates:
            both = [seed for seed in one.measured if seed in one.predicted]
            yield from [1.0] * one.hits + [0.0] * (len(both) - one.hits)


def _value(outcome: Outcome, rehearsal: Rehearsal, run: RunId, predictions: Values) -> float:
    if outcome.verdict:
        decided = rehearsal.verdicts[run][outcome.verdict]
        return math.nan if decided is None else float(decided)
    readings = rehearsal.readings[run][outcome.window] if outcome.window else {}
    named = outcome.predicted
    value = predictions[named, run] if named else readings[str(outcome.reading)]
    if outcome.over:
        value = _quotient(value, scale(outcome.over, rehearsal.registration, run, readings))
    if outcome.within is not None and math.isfinite(value):
        return float(abs(value - 1.0) <= outcome.within)
    return value


def _quotient(value: float, scale_value: float) -> float:
    return value / scale_value if scale_value else math.nan


def scale(name: str, registration: Registration, run: RunId, readings: Mapping[str, float]) -> float:
    """The value of a scale for one run: one of `SCALES`, or a reading."""
    if name in readings:
        return readings[name]
    calibration = registration.calibration
    if calibration is None:
        return math.nan
    reference = calibration.lambda_ref_per_s
    if name == "lambda_ref_per_s":
        return reference
    if name == "lambda_ref_prefill_tokens_per_s":
        return reference * registration.draft.design.workload.expected_session_prompt_tokens()
    return reference_scales(registration, run.rate)[name] if run.rate else math.nan


def reference_scales(registration: Registration, rate: float) -> dict[str, float]:
    """Model F's values for a registration's cell and workload at one rate, with
    the cell's fitted costs and lambda_ref as calibrated.
    """
    assert registration.calibration is not None
    reference = registration.calibration.lambda_ref_per_s
    workload = next(name for name, known in WORKLOADS.items() if known == registration.draft.design.workload)
    law = _law(registration.cell.name, workload, rate)
    return {
        "lambda_miss_per_s": reference * rate / law["rho"],
        "model_f_sigma_per_s": reference * (rate - law["completions_over_lambda_ref"]),
        "model_f_mean_prompt_tokens": law["mean_prompt_tokens"],
        "model_f_gap_slope": law["gap_slope"],
        "rho": law["rho"],
    }


@lru_cache
def _law(cell: str, workload: str, rate: float) -> dict[str, float]:
    return quantities(cell, workload, rate)
