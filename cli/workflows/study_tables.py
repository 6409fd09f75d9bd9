"""The values of a study's tables: its tests, model F against its runs, its rescues.

They hold numbers, never text for people; `cli.render.study_tables` writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cli.workflows.model_f import Forecast, forecast
from cli.workflows.study_rescues import Rescue, rescues_of
from cli.workflows.study_runs import LeftOut, ShownRuns, is_plain, left_out, origin_of, shown_runs, stuck
from registry.design import RunId
from verifier.ranges import Errors, Range, errors_of, range_of
from verifier.report import StudyReport
from verifier.scores import Score, is_hit

QUANTITIES = ("mean_prompt_tokens", "sojourn_slope", "completions_per_s", "backlog_slope_per_s")
"""What model F says of a trapped run, by the names of readings."""


@dataclass(frozen=True)
class StuckRuns:
    """The stuck runs of one arm at one rate beside model F: a row of Table 2.

    `shown` counts the runs of arm and rate, stuck or not; `measured` holds, by
    reading, one value a stuck run.
    """

    runs: ShownRuns
    arm: str
    rate: float
    shown: int
    stuck: tuple[RunId, ...]
    forecast: Forecast
    measured: Mapping[str, tuple[float, ...]]

    def range_of(self, reading: str, over: float = 1.0) -> Range:
        """A reading's range over the runs, in units of `over`."""
        return range_of(value / over for value in self.measured[reading])

    def pairs(self, reading: str) -> list[tuple[float, float]]:
        """(measured, predicted), a pair a run."""
        return [(value, getattr(self.forecast, reading)) for value in self.measured[reading]]


@dataclass(frozen=True)
class TheoryStatistics:
    """How one quantity of model F fits the stuck runs; `registration` is None
    over all of them.
    """

    registration: str | None
    quantity: str
    errors: Errors


@dataclass(frozen=True)
class ScoreRow:
    """A registered prediction over the runs shown, `hits` of `runs`; errors None
    for a verdict.
    """

    registration: str
    score: Score
    runs: int
    hits: int
    errors: Errors | None


@dataclass(frozen=True)
class StudyTables:
    """Everything that a study's tables say; `origin` is of all runs together."""

    study: str
    origin: str
    tests: tuple[ShownRuns, ...]
    theory: tuple[StuckRuns, ...]
    statistics: tuple[TheoryStatistics, ...]
    scores: tuple[ScoreRow, ...]
    rescues: tuple[Rescue, ...]
    left_out: tuple[LeftOut, ...]


def study_tables(report: StudyReport) -> StudyTables:
    """The tables of a verified study."""
    shown = shown_runs(report)
    theory = tuple(row for runs in shown for row in stuck_runs(runs))
    return StudyTables(
        study=report.study,
        origin=origin_of(kind for runs in shown for kind in runs.kinds),
        tests=tuple(shown),
        theory=theory,
        statistics=tuple(_statistics(theory)),
        scores=tuple(row for runs in shown for row in _scored(runs)),
        rescues=tuple(rescue for runs in shown for rescue in rescues_of(runs)),
        left_out=tuple(left_out(report)),
    )


def stuck_runs(runs: ShownRuns) -> Iterator[StuckRuns]:
    """A row for each arm and rate of a registration with stuck runs of which
    model F can speak: open arrivals above the all-miss capacity, an engine left
    to itself, a judged window that is the same for every run.
    """
    if runs.judged is None:
        return
    for arm in (arm for arm in runs.design.arms if is_plain(arm)):
        for rate in runs.design.rates:
            shown = runs.groups.get((arm.name, rate), [])
            caught = tuple(run for run in shown if stuck(runs.judged_readings(run)))
            said = forecast(runs.registration, caught[0]) if caught else None
            if said:
                measured = {name: tuple(runs.judged_readings(run)[name] for run in caught) for name in QUANTITIES}
                yield StuckRuns(runs, arm.name, rate, len(shown), caught, said, measured)


def _statistics(rows: Sequence[StuckRuns]) -> Iterator[TheoryStatistics]:
    """Every quantity, by registration and, where there are several, over all."""
    names = list(dict.fromkeys(row.runs.name for row in rows))
    for name in [*names, *([None] if len(names) > 1 else [])]:
        chosen = [row for row in rows if name in (None, row.runs.name)]
        for quantity in QUANTITIES:
            yield TheoryStatistics(name, quantity, errors_of(pair for row in chosen for pair in row.pairs(quantity)))


def _scored(runs: ShownRuns) -> Iterator[ScoreRow]:
    """The predictions of a registration, over the runs that are shown."""
    for score in runs.proof.scores:
        seeds = {run.seed for run in runs.groups.get((score.arm, score.rate), [])}
        both = [seed for seed in score.measured if seed in score.predicted and seed in seeds]
        pairs = [(float(score.measured[seed]), float(score.predicted[seed])) for seed in both]
        hits = sum(is_hit(predicted, measured, score.relative_tolerance) for measured, predicted in pairs)
        yield ScoreRow(runs.name, score, len(both), hits, None if score.verdict else errors_of(pairs))
