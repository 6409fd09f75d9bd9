"""Session caps that engage inside a run: release, and what came after (Table 4)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from cli.workflows.study_runs import ShownRuns, is_plain
from registry.design import Arm, GateSetting, ReleaseWindow, RunId
from verifier.ranges import Range, range_of


@dataclass(frozen=True)
class Companions:
    """The arms beside a rescue: `quiet` has nothing done to it, `untreated` has
    what the rescued arm had and no cap; None where the design has no such arm.
    """

    quiet: str | None
    untreated: str | None


@dataclass(frozen=True)
class AfterRelease:
    """Readings in the window that the release opens, of the rescued arm and of
    those beside it.
    """

    rescued: Range
    quiet: Range
    untreated: Range


@dataclass(frozen=True)
class Rescue:
    """A capped arm at one rate, over `runs` runs: a column of Table 4.

    `passed`: runs for which every judged verdict of the arm is true, None where
    the rule asks nothing of it. `hits` and `outstanding` are None where no window
    opens with the arm's release.
    """

    registration: str
    cell: str
    arm: str
    rate: float
    gate: GateSetting
    companions: Companions
    runs: int
    passed: int | None
    relapses: int
    release_s: Range
    hits: AfterRelease | None
    outstanding: AfterRelease | None
    paused: Range
    delay_session_h: Range


def is_rescue(arm: Arm) -> bool:
    """Whether a session cap engages inside the arm's runs."""
    return arm.gate is not None and arm.gate.engage_s > 0


def companions_of(runs: ShownRuns, arm: Arm) -> Companions:
    """The arms to be set beside a rescued one."""
    plain = [other for other in runs.design.arms if is_plain(other)]
    quiet = [other.name for other in plain if not (other.burst or other.tool_slowdown)]
    done = (arm.burst, arm.tool_slowdown)
    same = [other.name for other in plain if any(done) and (other.burst, other.tool_slowdown) == done]
    return Companions(next(iter(quiet), None), next(iter(same), None))


def rescues_of(runs: ShownRuns) -> Iterator[Rescue]:
    """Every rescued arm and rate of a registration with a run to show."""
    for arm in filter(is_rescue, runs.design.arms):
        for rate in runs.design.rates:
            if chosen := runs.groups.get((arm.name, rate)):
                yield _rescue(runs, arm, rate, chosen)


def _rescue(runs: ShownRuns, arm: Arm, rate: float, chosen: list[RunId]) -> Rescue:
    assert arm.gate is not None
    beside = companions_of(runs, arm)
    opened = next(
        (w.name for w in runs.design.windows if isinstance(w, ReleaseWindow) and w.from_release_of == arm.name), None
    )
    return Rescue(
        registration=runs.name,
        cell=runs.registration.cell.name,
        arm=arm.name,
        rate=rate,
        gate=arm.gate,
        companions=beside,
        runs=len(chosen),
        passed=_passed(runs, chosen),
        relapses=int(sum(value for run in chosen if math.isfinite(value := gate_reading(runs, run, "relapses")))),
        release_s=range_of(gate_reading(runs, run, "release_s") for run in chosen),
        hits=_after(runs, rate, opened, arm.name, beside, "followup_hit_fraction"),
        outstanding=_after(runs, rate, opened, arm.name, beside, "outstanding"),
        paused=range_of(gate_reading(runs, run, "paused") for run in chosen),
        delay_session_h=range_of(gate_reading(runs, run, "delay_session_h") for run in chosen),
    )


def gate_reading(runs: ShownRuns, run: RunId, name: str) -> float:
    """A reading of the gate from the run's start on, in the design's last window."""
    last = max(runs.design.windows, key=lambda window: window.end_s)
    return runs.readings[run][last.name][name]


def _passed(runs: ShownRuns, chosen: list[RunId]) -> int | None:
    judged = [
        [verdict.decision.value is True for verdict in report.verdicts if not verdict.reported]
        for report in runs.reports
        if report.run in chosen
    ]
    return sum(all(values) for values in judged) if any(judged) else None


def _after(
    runs: ShownRuns, rate: float, window: str | None, arm: str, beside: Companions, reading: str
) -> AfterRelease | None:
    if window is None:
        return None

    def over(name: str | None) -> Range:
        found = runs.groups.get((name, rate), []) if name else []
        return range_of(runs.readings[run][window][reading] for run in found)

    return AfterRelease(over(arm), over(beside.quiet), over(beside.untreated))
