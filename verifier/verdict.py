"""Verdicts: run by run, rate by rate, and of the test. Never by silence.

All registered runs must exist and be decidable before a rate is judged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from registry.design import RunId
from registry.registration import Registration
from registry.rule import Decision, decide_rate, decide_run

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


def run_verdicts(registration: Registration, run: RunId, readings: Readings) -> list[RunVerdict]:
    """Every verdict of one run, from its recomputed readings by window."""
    rule, references = registration.draft.rule, registration.references(run)
    return [
        RunVerdict(r.name, decide_run(r, readings, references), reported)
        for rules, reported in ((rule.runs, False), (rule.reported, True))
        for r in rules
        if r.arm == run.arm
    ]


def rate_verdicts(
    registration: Registration, verdicts: Mapping[RunId, list[RunVerdict]], unavailable: Collection[RunId] = ()
) -> list[RateVerdict]:
    """The verdict of every rate; `verdicts` holds the runs that exist, and
    `unavailable` those complete by record whose files are not here.
    """
    design = registration.draft.design
    rates: tuple[float | None, ...] = design.rates or (None,)
    return [_rate_verdict(registration, rate, verdicts, unavailable) for rate in rates]


def _rate_verdict(
    registration: Registration,
    rate: float | None,
    verdicts: Mapping[RunId, list[RunVerdict]],
    unavailable: Collection[RunId],
) -> RateVerdict:
    runs = [run for run in registration.draft.design.run_ids() if run.rate == rate]
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
