"""The runs of a verified study that its tables and figures may show, and the others.

A run is shown if every check of it is proven. What is left out is named with its
reason, and so is a registration whose proof failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from registry.design import Arm, Design, EnginePolicy, ReleaseWindow, RunId, Window
from registry.registration import Registration
from verifier.check import Outcome
from verifier.report import Proof, StudyReport
from verifier.run_report import RunReport
from verifier.series import Series
from verifier.verdict import Readings

STUCK_BELOW = 0.5
"""A run is stuck if no 300 s of its judged window reach this hit fraction."""

SIMULATED, MIXED, REAL = "simulated", "mixed", "real"
_TITLES = {SIMULATED: "SIMULATED: ", MIXED: "SIMULATED AND REAL RUNS: ", REAL: ""}


@dataclass(frozen=True)
class LeftOut:
    """What is not shown, and why: a run (`reg/e2/v1 BURST/1.35/0`), a
    registration, or a figure of one.
    """

    what: str
    why: str


@dataclass(frozen=True)
class ShownRuns:
    """One registration and those of its runs that may be shown."""

    proof: Proof
    registration: Registration
    reports: tuple[RunReport, ...]

    @cached_property
    def readings(self) -> Mapping[RunId, Readings]:
        """The recomputed readings of every run shown."""
        return {report.run: report.readings for report in self.reports}

    @cached_property
    def groups(self) -> Mapping[tuple[str, float | None], list[RunId]]:
        """The runs shown by arm and rate, in the design's order."""
        found: dict[tuple[str, float | None], list[RunId]] = {}
        for report in self.reports:
            found.setdefault((report.run.arm, report.run.rate), []).append(report.run)
        return found

    @cached_property
    def series(self) -> Mapping[RunId, Series]:
        """The coarse series of every run shown that has one."""
        return {report.run: report.series for report in self.reports if report.series}

    @property
    def origin(self) -> str:
        """Whether its runs are `simulated`, `real` or `mixed`."""
        return origin_of(self.kinds)

    @property
    def kinds(self) -> set[bool]:
        """Whether its runs are simulated; without any, what was registered."""
        return {report.simulated is True for report in self.reports} or {self.registration.engine is None}

    @property
    def design(self) -> Design:
        """The registered design."""
        return self.registration.draft.design

    @property
    def stem(self) -> str:
        """The registration's name in names of files: `e2-v1`."""
        return f"{self.registration.id}-v{self.registration.version}"

    @property
    def name(self) -> str:
        """The registration's name in titles: `e2 v1`."""
        return f"{self.registration.id} v{self.registration.version}"

    @property
    def judged(self) -> Window | None:
        """The window that the rule reads first; None where it opens with a
        release, so that each run has its own.
        """
        window = self.design.window(self.registration.draft.judged_window)
        return None if isinstance(window, ReleaseWindow) else window

    def judged_readings(self, run: RunId) -> Mapping[str, float]:
        """A run's readings in the window that the rule reads first."""
        return self.readings[run][self.registration.draft.judged_window]


def shown_runs(report: StudyReport) -> list[ShownRuns]:
    """Every registration that could be read, with its runs that may be shown."""
    return [
        ShownRuns(proof, proof.registration, tuple(run for run in proof.runs if run.accepted))
        for proof in report.proofs
        if proof.kind == "registration" and proof.registration
    ]


def left_out(report: StudyReport) -> list[LeftOut]:
    """Every run that is not shown, and every proof that failed, with reasons."""
    found = []
    for proof in report.proofs:
        if proof.check.outcome is Outcome.REFUTED:
            found.append(LeftOut(proof.tag, f"its proof FAILED, whatever is shown of it: {proof.check.reason}"))
        elif proof.claim_too_strong:
            found.append(LeftOut(proof.tag, f"its proof FAILED: it claims {proof.claim}, and is {proof.status.name}"))
        found += [LeftOut(f"{proof.tag} {run.run.path}", _why(run)) for run in proof.runs if not run.accepted]
    return found


def _why(run: RunReport) -> str:
    if run.check is None:
        return f"no result: {run.state}"
    return f"{run.check.outcome}: {run.check.reason}" if run.check.outcome is not Outcome.PROVEN else run.state


def origin_of(simulated: Iterable[bool]) -> str:
    """`simulated`, `real`, or `mixed` where some runs are and some are not."""
    kinds = set(simulated)
    return MIXED if len(kinds) > 1 else REAL if kinds == {False} else SIMULATED


def title_of(origin: str, words: str) -> str:
    """The title of a table or figure of such runs."""
    return _TITLES[origin] + words


def is_plain(arm: Arm) -> bool:
    """Whether an arm leaves the engine and its arrivals to themselves, so that
    model F may speak of its runs: bursts and slow tools are all it has.
    """
    helped = arm.gate or arm.cut or arm.shed or arm.step_cap or arm.population
    return arm.caching and not helped and arm.engine == EnginePolicy()


def stuck(readings: Mapping[str, float]) -> bool:
    """Whether a run was stuck in a window."""
    return readings["max_hit_300s"] < STUCK_BELOW
