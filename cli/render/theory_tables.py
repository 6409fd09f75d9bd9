"""Model F and registered predictions against a study's runs (Table 2), as tables."""

from __future__ import annotations

from collections.abc import Mapping

from cli.render.range_words import percent_words, range_words, rate_words, value_words
from cli.render.text_table import TextTable, Value
from cli.workflows.study_runs import title_of
from cli.workflows.study_tables import ScoreRow, StuckRuns, StudyTables, TheoryStatistics
from verifier.ranges import WITHIN, Range

_QUANTITIES = {
    "mean_prompt_tokens": "mean prompt served",
    "sojourn_slope": "gap growth",
    "completions_per_s": "completions",
    "backlog_slope_per_s": "backlog slope",
}
_NOT_FITTED = "Nothing is fitted to any run."


def theory_table(tables: StudyTables) -> TextTable:
    """Table 2: measured ranges over seeds beside model F."""
    caption = (
        "Table 2. Model F against the stuck runs: measured range over seeds / model F's asymptotic value; gap slope in "
        f"seconds a second; sigma is model F's backlog slope, in brackets the quasi-static reading. {_NOT_FITTED}"
    )
    return TextTable(
        "table-2-model-f",
        title_of(tables.origin, caption),
        [_theory_row(row) for row in tables.theory],
        [_theory_data(row) for row in tables.theory],
    )


def _lambda_ref_per_s(row: StuckRuns) -> float:
    assert row.runs.registration.calibration is not None
    return row.runs.registration.calibration.lambda_ref_per_s


def _theory_row(row: StuckRuns) -> Mapping[str, str]:
    said, reference = row.forecast, _lambda_ref_per_s(row)
    completions = range_words(row.range_of("completions_per_s", reference), ".2f")
    backlog = range_words(row.range_of("backlog_slope_per_s", said.backlog_slope_per_s), ".2f")
    return {
        "registration, arm, rate": f"{row.runs.name}, {row.arm}, {row.rate:g}",
        "cell": row.runs.registration.cell.name,
        "stuck": f"{len(row.stuck)} of {row.shown}",
        "rho": f"{said.rho:.2f}",
        "mean prompt, tokens": f"{_measured(row, 'mean_prompt_tokens', '.0f')} / {said.mean_prompt_tokens:.0f}",
        "gap slope": f"{_measured(row, 'sojourn_slope', '.3f')} / {said.sojourn_slope:.3f}",
        "completions / lambda_ref": f"{completions} / {said.completions_per_s / reference:.2f}",
        "backlog slope / sigma": f"{backlog} ({said.quasi_static_per_s / said.backlog_slope_per_s:.2f})",
        "costs": said.costs,
    }


def _measured(row: StuckRuns, reading: str, form: str) -> str:
    return range_words(row.range_of(reading), form)


def _theory_data(row: StuckRuns) -> Mapping[str, Value]:
    said = row.forecast
    data: dict[str, Value] = {
        "registration": row.runs.name,
        "cell": row.runs.registration.cell.name,
        "arm": row.arm,
        "rate_lambda_ref": row.rate,
        "stuck_runs": len(row.stuck),
        "runs_shown": row.shown,
        "rho": said.rho,
        "lambda_ref_per_s": _lambda_ref_per_s(row),
        "lambda_miss_per_s": said.lambda_miss_per_s,
    }
    for name in _QUANTITIES:
        found = row.range_of(name)
        data |= {f"{name}_least": found.least, f"{name}_most": found.most, f"{name}_model_f": getattr(said, name)}
    return data | {"quasi_static_backlog_slope_per_s": said.quasi_static_per_s, "costs": said.costs}


def statistics_table(tables: StudyTables) -> TextTable:
    """How each quantity of model F fits the stuck runs."""
    caption = (
        "Model F against the stuck runs, in statistics. The error of a run is (measured - model F) / model F; sums are "
        f"exact. {_NOT_FITTED} Model F's values are asymptotic; a window holds a transient, too."
    )
    return TextTable(
        "table-2-statistics",
        title_of(tables.origin, caption),
        [_statistics_row(row) for row in tables.statistics],
        [_statistics_data(row) for row in tables.statistics],
    )


def _statistics_row(row: TheoryStatistics) -> Mapping[str, str]:
    found = row.errors
    return {
        "registration": row.registration or "all",
        "quantity": _QUANTITIES[row.quantity],
        "runs": str(found.runs),
        "mean error": percent_words(found.mean_error),
        "mean size of error": value_words(found.mean_size, ".1%"),
        "worst error": percent_words(found.worst),
        "median ratio": value_words(found.median_ratio, ".2f"),
        "ratios": range_words(Range(found.least_ratio, found.most_ratio, found.runs), ".2f"),
        f"within {WITHIN:.0%}": f"{found.within} of {found.runs}",
    }


def _statistics_data(row: TheoryStatistics) -> Mapping[str, Value]:
    return {
        "registration": row.registration or "all",
        "quantity": row.quantity,
        "runs": row.errors.runs,
        "mean_relative_error": row.errors.mean_error,
        "mean_absolute_relative_error": row.errors.mean_size,
        "worst_relative_error": row.errors.worst,
        "median_ratio": row.errors.median_ratio,
        "least_ratio": row.errors.least_ratio,
        "most_ratio": row.errors.most_ratio,
        f"runs_within_{WITHIN:g}": row.errors.within,
    }


def prediction_table(tables: StudyTables) -> TextTable:
    """The registered predictions, scored."""
    caption = "The registered predictions, scored over the runs shown: hits lie within the registered tolerance."
    return TextTable(
        "table-predictions",
        title_of(tables.origin, caption),
        [_score_row(row) for row in tables.scores],
        [_score_data(row) for row in tables.scores],
    )


def _score_row(row: ScoreRow) -> Mapping[str, str]:
    errors = row.errors
    return {
        "registration": row.registration,
        "prediction": row.score.name,
        "kind": row.score.kind,
        "arm, rate": f"{row.score.arm}, {rate_words(row.score.rate)}",
        "of": row.score.reading or f"verdict {row.score.verdict}",
        "hits": f"{row.hits} of {row.runs}",
        "mean error": percent_words(errors.mean_error) if errors else "a verdict",
        "worst error": percent_words(errors.worst) if errors else "a verdict",
    }


def _score_data(row: ScoreRow) -> Mapping[str, Value]:
    errors = row.errors
    return {
        "registration": row.registration,
        "prediction": row.score.name,
        "kind": row.score.kind,
        "arm": row.score.arm,
        "rate_lambda_ref": row.score.rate,
        "of": row.score.reading or f"verdict {row.score.verdict}",
        "relative_tolerance": row.score.relative_tolerance,
        "hits": row.hits,
        "runs": row.runs,
        "mean_relative_error": errors.mean_error if errors else None,
        "worst_relative_error": errors.worst if errors else None,
    }
