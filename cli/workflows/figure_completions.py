"""The figure of completions over time, beside model F on the runs' own plans."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from cli.render.picture_mirror import draw_mirror
from cli.render.range_words import list_words, range_words, rate_words
from cli.workflows.figure_parts import csv_text, finished, first_seeds, made
from cli.workflows.flows import Flow, fluid_flow, run_flow
from cli.workflows.study_runs import MIXED, ShownRuns, is_plain, stuck, title_of
from ledger.page.figure import Figure
from modelf.workload import STANDARD_WORKLOAD
from registry.design import Arm, RunId
from registry.predictor import Predictor
from verifier.exact_statistics import mean
from verifier.ranges import range_of

GROUP = 5
"""Bins of a run's series in one bin of this figure."""

FLUID = "model-f-fluid"
Flows = Mapping[RunId, Flow]


def completions(pyplot: Any, runs: ShownRuns, shown: Sequence[ShownRuns]) -> Figure | str:
    """Completions per bin of the arm of which model F's fluid was registered to
    speak; in grey stuck runs of the standard workload that are otherwise treated alike.
    """
    predictor = next((p for p in runs.registration.draft.predictors if p.kind == FLUID), None)
    calibration = runs.registration.calibration
    if predictor is None or calibration is None:
        return "no predictor of it is model F's fluid"
    drawn = [run for run in first_seeds(runs) if run.arm == predictor.arm]
    if not drawn:
        return f"no run of {predictor.arm} to show"
    bin_s = GROUP * runs.series[drawn[0]].bin_s
    flows = {run: run_flow(runs.series[run], GROUP) for run in drawn}
    fluids = {run: _fluid(runs, predictor, run, bin_s) for run in drawn}
    other = next((one for one in shown if _others(runs, predictor.arm, one)), None)
    grey = _others(runs, predictor.arm, other) if other else {}
    judged = (runs.judged.start_s, runs.judged.end_s) if runs.judged else None
    origin = MIXED if other and other.origin != runs.origin else runs.origin
    head = title_of(origin, f"{runs.name}, completions of {predictor.arm} beside model F")
    picture = draw_mirror(
        pyplot,
        flows,
        fluids,
        grey,
        title=head,
        names=(
            f"{runs.name}, {predictor.arm}",
            "model F on the same plans",
            f"{other.name if other else ''}, stuck, standard workload",
        ),
        lambda_ref_per_s=calibration.lambda_ref_per_s,
        bin_s=bin_s,
        judged=judged,
    )
    text = f"{made(origin)}. {_words(flows, fluids, judged, calibration.lambda_ref_per_s)}"
    groups = {runs.name: flows, "model F": fluids} | ({other.name: grey} if other else {})
    return finished(pyplot, picture, "completions", head, text, _data(groups), runs)


def _fluid(runs: ShownRuns, predictor: Predictor, run: RunId, bin_s: float) -> Flow:
    plan = runs.registration.plan(run, runs.proof.beacon)
    return fluid_flow(runs.registration, predictor, run, plan, bin_s)


def _others(runs: ShownRuns, arm: str, other: ShownRuns) -> Flows:
    """Stuck runs of the standard workload, where this one has another: of another
    registration on the same cell, with the same burst at the same rates.
    """
    burst = runs.design.arm(arm).burst
    same = (other.registration.cell, other.design.horizon_s) == (runs.registration.cell, runs.design.horizon_s)
    standard = other.design.workload == STANDARD_WORKLOAD != runs.design.workload
    if other.judged is None or not same or burst is None or not standard:
        return {}
    arms = {a.name for a in other.design.arms if is_plain(a) and a.burst == burst and _whole(a)}
    kept = [run for run in first_seeds(other) if run.arm in arms and run.rate in runs.design.rates]
    return {run: run_flow(other.series[run], GROUP) for run in kept if stuck(other.judged_readings(run))}


def _whole(arm: Arm) -> bool:
    return arm.horizon_s is None and arm.tool_slowdown is None


def _words(flows: Flows, fluids: Flows, judged: tuple[float, float] | None, lambda_ref_per_s: float) -> str:
    start_s, end_s = judged or (0.0, math.inf)

    def late(flow: Flow) -> float:
        inside = (flow.middle_s >= start_s) & (flow.middle_s < end_s)
        return mean(flow.completions_per_s[inside]) / lambda_ref_per_s

    parts = []
    for rate in dict.fromkeys(run.rate for run in flows):
        ours, theirs = (range_of(late(f[run]) for run in flows if run.rate == rate) for f in (flows, fluids))
        said = f"model F {range_words(theirs, '.2f')}"
        parts.append(f"{range_words(ours, '.2f')} ({said}) at {rate_words(rate)}")
    span = f"From {start_s:,.0f} to {end_s:,.0f} s" if judged else "Over the run"
    return f"{span} the runs complete, in multiples of lambda_ref and over the seeds, {list_words(parts)}."


def _data(groups: Mapping[str, Flows]) -> str:
    head = ("of", "arm", "rate_lambda_ref", "seed", "time_s", "completions_per_s", "sessions")
    rows = (
        (name, run.arm, run.rate, run.seed, *values)
        for name, flows in groups.items()
        for run, flow in flows.items()
        for values in zip(flow.middle_s.tolist(), flow.completions_per_s.tolist(), flow.sessions.tolist(), strict=True)
    )
    return csv_text(head, rows)
