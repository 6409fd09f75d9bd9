"""Verdicts: run by run, rate by rate, and of the test. Never by silence.

All registered runs must exist and be decidable before a rate is judged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from registry.design import RunId
from registry.predictions import Values
from registry.registration import Registration
from registry.rule import Decision, Known, decide_rate, decide_run

Readings = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class RunVerdict:
    """One named verdict of one run; `reported` ones change nothing."""

    name: str
    decision: Decision
    reported: bool


@dataclass(frozen=True)
class RateVerdict:
    """The verdict of one rate (None: a closed population)."""

    rate: float | None
    decision: Decision
    counts: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class OverallVerdict:
    """Pass if every rate passes; None where a rate is not decidable."""

    value: bool | None
    words: str


def run_verdicts(
    registration: Registration, run: RunId, readings: Mapping[RunId, Readings], predictions: Values
) -> list[RunVerdict]:
    """Every verdict of one run, from the readings by window of all runs there
    are and the predictions that were frozen before them.
    """
    rule, references = registration.draft.rule, registration.references(run)
    known = _known(registration, run, readings, predictions)
    return [
        RunVerdict(r.name, decide_run(r, readings[run], references, known), reported)
        for rules, reported in ((rule.runs, False), (rule.reported, True))
        for r in rules
        if r.arm == run.arm
    ]


def _known(registration: Registration, run: RunId, readings: Mapping[RunId, Readings], predictions: Values) -> Known:
    """What stands beside a run: the other arms at its rate and seed, and what
    was predicted of it.
    """
    draft = registration.draft
    beside = {arm.name: draft.design.run_of(arm.name, run.rate, run.seed) for arm in draft.design.arms}
    values = {p.rule_name: predictions.get((p.name, run)) for p in draft.predictors}
    return Known(
        {arm: readings[other] for arm, other in beside.items() if other in readings},
        {name: value for name, value in values.items() if value is not None},
    )


def rate_verdicts(
    registration: Registration, verdicts: Mapping[RunId, list[RunVerdict]], unavailable: Collection[RunId] = ()
) -> list[RateVerdict]:
    """The verdict of every rate; `verdicts` holds the runs that exist, and
    `unavailable` those complete by record whose files are not here. Closed
    populations count at every rate.
    """
    rates = registration.draft.design.judged_rates
    return [_rate_verdict(registration, rate, verdicts, unavailable) for rate in rates]


def _rate_verdict(
    registration: Registration,
    rate: float | None,
    verdicts: Mapping[RunId, list[RunVerdict]],
    unavailable: Collection[RunId],
) -> RateVerdict:
    runs = [run for run in registration.draft.design.run_ids() if run.rate in (rate, None)]
    missing = [run for run in runs if run not in verdicts]
    lists: dict[str, list[bool]] = {}
    undecided: list[str] = []
    for run in runs:
        for verdict in verdicts.get(run, []):
            if verdict.decision.value is None:
                if not verdict.reported:
                    undecided.append(f"{run.path} {verdict.name}: {verdict.decision.reason}")
            else:
                lists.setdefault(f"{run.arm}.{verdict.name}", []).append(verdict.decision.value)
    counts = {name: (sum(values), len(values)) for name, values in lists.items()}
    if missing:
        word = "have no files here" if set(missing) <= set(unavailable) else "are missing"
        decision = Decision(None, f"{len(missing)} of {len(runs)} registered runs {word}")
    elif undecided:
        decision = Decision(None, undecided[0])
    else:
        decision = decide_rate(registration.draft.rule.rate, lists)
    return RateVerdict(rate, decision, counts)


def overall_verdict(rates: list[RateVerdict]) -> OverallVerdict:
    """The test's verdict over its rates."""
    values = [rate.decision.value for rate in rates]
    if None in values:
        return OverallVerdict(None, "NOT DECIDABLE")
    passed = [_name(r) for r in rates if r.decision.value]
    failed = [_name(r) for r in rates if not r.decision.value]
    if not failed:
        return OverallVerdict(
            True, {1: "PASS", 2: "PASS at both rates"}.get(len(rates), f"PASS at all {len(rates)} rates")
        )
    if not passed:
        return OverallVerdict(False, "FAIL")
    return OverallVerdict(False, f"PASS at {', '.join(passed)}; FAIL at {', '.join(failed)}")


def _name(verdict: RateVerdict) -> str:
    return "closed" if verdict.rate is None else f"{verdict.rate:g}"
