"""The figure of a session cap inside a run: trap, rescue, release and after."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from cli.render.picture_rescue import RescueColumn, draw_rescue
from cli.render.pictures import LAMBDA_REF
from cli.render.range_words import list_words, rate_words, value_words
from cli.workflows.figure_over_time import LATE_SHARE, late_mean
from cli.workflows.figure_parts import MOST_RATES, Cell, csv_text, finished, made
from cli.workflows.study_rescues import companions_of, gate_reading, is_rescue
from cli.workflows.study_runs import ShownRuns, title_of
from ledger.page.figure import Figure
from registry.design import Arm, RunId
from verifier.series import Series

_MOST_TOLD = 2


def rescue(pyplot: Any, runs: ShownRuns) -> Figure | str:
    """The seed of median release of each capped arm and rate; why not, where none is."""
    arms = [arm for arm in runs.design.arms if is_rescue(arm)]
    if not arms:
        return "no session cap engages inside its runs"
    pairs = [(arm, rate) for arm in arms for rate in runs.design.rates]
    found = [one for arm, rate in pairs if (one := _median_release(runs, arm, rate))]
    chosen = found[:MOST_RATES]
    if not chosen:
        return "no run of a capped arm to show"
    head = title_of(runs.origin, f"{runs.name}, a session cap inside a run (seeds of median release)")
    columns = {_column_title(run, len(arms) > 1): _column(runs, run) for run in chosen}
    picture = draw_rescue(pyplot, columns, title=head, horizon_s=runs.design.horizon_s)
    text = f"{made(runs.origin)}. " + " ".join(_words(runs, run) for run in chosen[:_MOST_TOLD])
    return finished(pyplot, picture, "rescue", head, text, _data(runs, chosen), runs)


def _median_release(runs: ShownRuns, arm: Arm, rate: float) -> RunId | None:
    """The run whose cap came off at the median time (the lower of two middle ones);
    a cap that never came off is later than all.
    """
    times = [(gate_reading(runs, run, "release_s"), run) for run in runs.groups.get((arm.name, rate), [])]
    ordered = sorted((math.inf if math.isnan(release_s) else release_s, run.seed, run) for release_s, run in times)
    return ordered[(len(ordered) - 1) // 2][2] if ordered else None


def _beside(runs: ShownRuns, run: RunId) -> dict[str, str]:
    """The arms of a column by their role."""
    beside = companions_of(runs, runs.design.arm(run.arm))
    names = {"untreated": beside.untreated, "quiet": beside.quiet, "rescued": run.arm}
    return {role: name for role, name in names.items() if name}


def _lines(runs: ShownRuns, run: RunId) -> dict[str, Series]:
    """The series of a column by their role."""
    found = {role: runs.series.get(RunId(arm, run.rate, run.seed)) for role, arm in _beside(runs, run).items()}
    return {role: series for role, series in found.items() if series}


def _column(runs: ShownRuns, run: RunId) -> RescueColumn:
    lines = _lines(runs, run)
    return RescueColumn(lines["rescued"], lines.get("quiet"), lines.get("untreated"), _beside(runs, run))


def _column_title(run: RunId, several: bool) -> str:
    arm = f"{run.arm}, " if several else ""
    return f"{arm}{run.rate:g} {LAMBDA_REF}, seed {run.seed}"


def _words(runs: ShownRuns, run: RunId) -> str:
    one, since_s = runs.series[run], LATE_SHARE * runs.design.horizon_s
    where = f"{run.arm} at {rate_words(run.rate)}, seed {run.seed}"
    if math.isnan(one.engaged_s):
        return f"In {where}, the cap never engaged."
    off = "never came off" if math.isnan(one.release_s) else f"came off at {one.release_s:,.0f} s"
    arms, lines = _beside(runs, run), _lines(runs, run)
    ends = [
        f"{value_words(late_mean(line, line.hits, since_s), '.2f')} in {arms[role]}" for role, line in lines.items()
    ]
    return (
        f"In {where}, the cap engaged at {one.engaged_s:,.0f} s and {off}; in the last tenth of the run the hit "
        f"fraction averages {list_words(ends)}."
    )


def _data(runs: ShownRuns, chosen: Sequence[RunId]) -> str:
    head = (
        "arm", "rate_lambda_ref", "seed", "time_s", "followup_hit_fraction", "outstanding_sessions",
        "waiting_at_gate_sessions", "cap_engaged_s", "cap_released_s",
    )  # fmt: skip

    def rows() -> Iterator[Sequence[Cell]]:
        for run in chosen:
            for role, one in _lines(runs, run).items():
                columns = (one.middle_s, one.hits, one.outstanding, one.at_gate)
                for values in zip(*(column.tolist() for column in columns), strict=True):
                    yield _beside(runs, run)[role], run.rate, run.seed, *values, one.engaged_s, one.release_s

    return csv_text(head, rows())
