"""Which pictures a reproduction has, and what each is drawn from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cli.render.picture_arms import draw_arms
from cli.render.picture_basin import Dose, draw_basin
from cli.render.picture_closed import draw_closed
from cli.render.picture_mirror import draw_mirror
from cli.render.picture_rescue import RescueColumn, draw_rescue
from cli.render.picture_theory import draw_theory
from cli.render.pictures import drawing, save
from cli.workflows.arm_marks import marks_of
from cli.workflows.flows import Flow, run_flow
from cli.workflows.rehearse import Rehearsal
from cli.workflows.reporter import Reporter
from cli.workflows.reproduce import Reproduction
from cli.workflows.reproduce_closed import closed_points, predicted_curve
from cli.workflows.reproduce_series import all_series, literal_fluid
from cli.workflows.reproduce_theory import stuck_points, theory_curves
from cli.workflows.study_runs import SIMULATED, title_of
from registry.design import RunId, Window

BIN_S = 60.0
MIRROR_BIN_S = 300.0
MOST_SEEDS = 10
"""More seeds than this are not drawn over time: lines would hide lines."""

_RESCUES = ("r1", "r4")
_RESCUE_ARMS = {"rescued": "RESCUE", "quiet": "NOBURST", "untreated": "BURST"}
_BASINS = ("basin-1", "basin-2")
_MIRROR, _STANDARD, _FLUID = "mirror", "e2", "fluid-completions"
_LEAST_RHO, _RHO_STEPS = 1.02, 150


def draw_figures(result: Reproduction, folder: Path, reporter: Reporter) -> list[Path]:
    """Draw every picture that the reproduction has runs for; their files."""
    files: list[Path] = []
    with drawing() as pyplot:
        for name, figure in _figures(pyplot, result, reporter):
            files += save(figure, folder, name)
            pyplot.close(figure)
    return files


def _figures(pyplot: Any, result: Reproduction, reporter: Reporter) -> Iterator[tuple[str, Any]]:
    rehearsals = result.rehearsals
    for test, rehearsal in rehearsals.items():
        if rehearsal.registration.draft.design.rates:
            yield test, _arms(pyplot, rehearsal, reporter)
        elif closed := closed_points(rehearsal.registration, rehearsal.readings, rehearsal.seeds):
            cell = rehearsal.registration.cell.name
            title = title_of(SIMULATED, f"throughput and hits of a closed population, cell {cell}")
            yield test, draw_closed(pyplot, closed, predicted_curve(rehearsal.registration), title)
    if any(test in rehearsals for test in _RESCUES):
        yield "rescue", _rescue(pyplot, rehearsals, reporter)
    if doses := _doses(result):
        title = title_of(SIMULATED, "which bursts trap, cell sglang-300k at 1.65 $\\lambda_{ref}$")
        yield "basin", draw_basin(pyplot, {f"simulated, {doses[0].runs} seeds": doses}, title)
    if _MIRROR in rehearsals:
        yield "mirror-completions", _mirror(pyplot, rehearsals, reporter)
    if points := stuck_points(rehearsals.values()):
        most = max(float(group.rho.max()) for group in points)
        cells = dict.fromkeys(group.cell for group in points)
        rho = np.linspace(_LEAST_RHO, 1.03 * most, _RHO_STEPS)
        count = sum(group.rho.size for group in points)
        title = title_of(SIMULATED, f"model F against {count} stuck runs")
        yield "theory", draw_theory(pyplot, points, theory_curves(cells, rho), title, set_apart=True)


def _drawn(rehearsal: Rehearsal, arms: tuple[str, ...] = (), seeds: int = MOST_SEEDS) -> list[RunId]:
    """The runs of open arrivals of the first seeds, of some arms or all."""
    shown = rehearsal.seeds[:seeds]
    runs = [run for run in rehearsal.readings if run.rate is not None and run.seed in shown]
    return [run for run in runs if not arms or run.arm in arms]


def _arms(pyplot: Any, rehearsal: Rehearsal, reporter: Reporter) -> Any:
    draft = rehearsal.registration.draft
    series = all_series(rehearsal, _drawn(rehearsal), BIN_S, reporter)
    judged = draft.design.window(draft.judged_window)
    span = (judged.start_s, judged.end_s) if isinstance(judged, Window) else None
    title = title_of(SIMULATED, f"{draft.id}, cell {draft.cell.name}")
    marks, horizon_s = marks_of(draft.design), draft.design.horizon_s
    return draw_arms(pyplot, series, title=title, marks=marks, judged=span, horizon_s=horizon_s)


def _rescue(pyplot: Any, rehearsals: dict[str, Rehearsal], reporter: Reporter) -> Any:
    columns = {}
    for test in (test for test in _RESCUES if test in rehearsals):
        rehearsal = rehearsals[test]
        for rate in rehearsal.registration.draft.design.rates:
            seed = seed_of_median_release(rehearsal, rate)
            runs = [run for run in rehearsal.readings if (run.rate, run.seed) == (rate, seed)]
            series = all_series(rehearsal, runs, BIN_S, reporter)
            title = f"{test.upper()}, {rehearsal.registration.cell.name}, {rate:g} $\\lambda_{{ref}}$, seed {seed}"
            arms = {run.arm: one for run, one in series.items()}
            columns[title] = RescueColumn(arms["RESCUE"], arms["NOBURST"], arms["BURST"], _RESCUE_ARMS)
    horizon_s = max(r.registration.draft.design.horizon_s for t, r in rehearsals.items() if t in _RESCUES)
    title = title_of(SIMULATED, "a session cap rescues an established trap (seeds of median release)")
    return draw_rescue(pyplot, columns, title=title, horizon_s=horizon_s)


def seed_of_median_release(rehearsal: Rehearsal, rate: float) -> int:
    """The seed whose cap came off at the median time of all (the lower of two
    middle ones); a cap that never came off is later than all.
    """
    found = []
    for run, readings in rehearsal.readings.items():
        if (run.arm, run.rate) == ("RESCUE", rate):
            release_s = readings["last"]["release_s"]
            found.append((math.inf if math.isnan(release_s) else release_s, run.seed))
    return sorted(found)[(len(found) - 1) // 2][1]


def _doses(result: Reproduction) -> list[Dose]:
    doses = []
    for test in _BASINS:
        for row in result.tables.get(test, ()):
            outcome, ours = row.outcome, row.agreement
            burst = result.rehearsals[test].registration.draft.design.arm(outcome.arms[0]).burst
            if burst is None or outcome.verdict not in ("good", "stuck"):
                continue
            yes, printed = round((ours.share or 0.0) * ours.runs), int(outcome.printed.low)
            if outcome.verdict == "good":
                yes, printed = ours.runs - yes, outcome.printed.of - printed
            doses.append(Dose(burst.sessions, yes, ours.runs, printed, outcome.printed.of))
    return sorted(doses, key=lambda dose: dose.sessions)


def _mirror(pyplot: Any, rehearsals: dict[str, Rehearsal], reporter: Reporter) -> Any:
    rehearsal = rehearsals[_MIRROR]
    registration = rehearsal.registration
    assert registration.calibration is not None
    runs = _drawn(rehearsal, ("BURST",))
    standard = rehearsals.get(_STANDARD)
    late = registration.draft.design.window("late")
    assert isinstance(late, Window)
    return draw_mirror(
        pyplot,
        _flows(rehearsal, runs, reporter),
        {run: literal_fluid(registration, _FLUID, run, MIRROR_BIN_S) for run in runs},
        _flows(standard, _drawn(standard, ("BURST",)), reporter) if standard else {},
        title=title_of(SIMULATED, "MIRROR (at most 20 turns a session)"),
        names=("MIRROR, trapped", "model F on MIRROR's plans", "standard workload, trapped"),
        lambda_ref_per_s=registration.calibration.lambda_ref_per_s,
        bin_s=MIRROR_BIN_S,
        judged=(late.start_s, late.end_s),
    )


def _flows(rehearsal: Rehearsal, runs: list[RunId], reporter: Reporter) -> dict[RunId, Flow]:
    return {run: run_flow(one) for run, one in all_series(rehearsal, runs, MIRROR_BIN_S, reporter).items()}
