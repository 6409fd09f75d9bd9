"""A study's tables in words and numbers: its tests and its rescues (Tables 1 and 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cli.render.range_words import UNDEFINED, count_words, list_words, range_words
from cli.render.text_table import Quoted, TextTable, Value
from cli.render.theory_tables import prediction_table, statistics_table, theory_table
from cli.workflows.study_rescues import AfterRelease, Rescue
from cli.workflows.study_runs import ShownRuns, title_of
from cli.workflows.study_tables import StudyTables
from verifier.ranges import Range
from verifier.report import Proof
from verifier.verdict import RateVerdict

_VERDICTS = {True: "PASS", False: "FAIL", None: "NOT DECIDABLE"}
_BESIDE = ("rescued", "quiet", "untreated")


def text_tables(tables: StudyTables) -> list[TextTable]:
    """Every table that has a row."""
    made = (test_table(tables), theory_table(tables), statistics_table(tables), prediction_table(tables))
    return [table for table in (*made, rescue_table(tables)) if table.rows]


def test_table(tables: StudyTables) -> TextTable:
    """Table 1: every registration, and what came out."""
    return TextTable(
        "table-1-tests",
        title_of(tables.origin, f"Table 1. The registered tests of {tables.study} and their outcomes."),
        [_test_row(runs) for runs in tables.tests],
        [row for runs in tables.tests for row in _test_data(runs)],
        frozenset({"title", "cell and design", "by rate"}),
    )


def _test_row(runs: ShownRuns) -> Mapping[str, str]:
    proof, design = runs.proof, runs.design
    rates = f"at {list_words(f'{rate:g}' for rate in design.rates)} lambda_ref; " if design.rates else ""
    arms = ", ".join(arm.name for arm in design.arms)
    seeds = count_words(len(design.seeds.values), "seed")
    return {
        "registration": runs.name,
        "title": Quoted(runs.registration.draft.title),
        "cell and design": f"{runs.registration.cell.name}; {arms}; {rates}{seeds}; {design.horizon_s:,.0f} s",
        "runs shown": f"{len(runs.reports)} of {len(design.run_ids())}, {runs.origin}",
        "status": f"{proof.status.name} (claims {proof.claim})" if proof.claim_too_strong else proof.status.name,
        "proof": _proof(proof),
        "verdict": proof.verdict.words,
        "by rate": "; ".join(_rate(rate) for rate in proof.rates),
    }


def _proof(proof: Proof) -> str:
    return "FAILED" if proof.failed else str(proof.check.outcome)


def _rate(rate: RateVerdict) -> str:
    counts = ", ".join(f"{name} {true}/{decided}" for name, (true, decided) in rate.counts.items())
    name = "closed" if rate.rate is None else f"{rate.rate:g}"
    return f"{name} {_VERDICTS[rate.decision.value]}: {counts or 'no run'}"


def _test_data(runs: ShownRuns) -> Iterator[Mapping[str, Value]]:
    """A row for each rate and named verdict."""
    proof = runs.proof
    undecided: Mapping[str | None, tuple[int | None, int | None]] = {None: (None, None)}
    for rate in proof.rates:
        for name, (true, decided) in (dict(rate.counts) or undecided).items():
            yield {
                "registration": runs.name,
                "title": Quoted(runs.registration.draft.title),
                "cell": runs.registration.cell.name,
                "claim": proof.claim,
                "status": proof.status.name,
                "proof": _proof(proof),
                "verdict": proof.verdict.words,
                "rate_lambda_ref": rate.rate,
                "rate_verdict": _VERDICTS[rate.decision.value],
                "run_verdict": name,
                "true_runs": true,
                "decided_runs": decided,
                "runs_shown": len(runs.reports),
                "runs_registered": len(runs.design.run_ids()),
                "runs_are": runs.origin,
            }


def rescue_table(tables: StudyTables) -> TextTable:
    """Table 4: session caps that engage inside a run."""
    caption = (
        "Table 4. Session caps that engage inside a run, ranges over seeds. After release: the capped arm / the arm "
        "with nothing done to it / the arm never capped."
    )
    return TextTable(
        "table-4-rescues",
        title_of(tables.origin, caption),
        [_rescue_row(row) for row in tables.rescues],
        [_rescue_data(row) for row in tables.rescues],
    )


def _rescue_row(row: Rescue) -> Mapping[str, str]:
    cap = f"{row.gate.cap}" if row.gate.cap is not None else f"{row.gate.pool_share:g} of the pool"
    passed = "no rule" if row.passed is None else f"{row.passed}/{row.runs}"
    released = "" if row.release_s.runs == row.runs else f" ({row.release_s.runs} of {row.runs} released)"
    return {
        "registration, arm, rate": f"{row.registration}, {row.arm}, {row.rate:g}",
        "cell": row.cell,
        "cap; engaged at": f"{cap}; {row.gate.engage_s:,.0f} s",
        "rescued (relapses)": f"{passed} ({row.relapses})",
        "release, s": f"{range_words(row.release_s, '.0f')}{released}",
        "hit fraction after release": _after(row.hits, ".3f"),
        "mean outstanding after release": _after(row.outstanding, ".1f"),
        "sessions paused": range_words(row.paused, ".0f"),
        "delay, session-hours": range_words(row.delay_session_h, ".1f"),
    }


def _after(found: AfterRelease | None, form: str) -> str:
    if found is None:
        return UNDEFINED
    return " / ".join(range_words(getattr(found, arm), form) for arm in _BESIDE)


def _rescue_data(row: Rescue) -> Mapping[str, Value]:
    data: dict[str, Value] = {
        "registration": row.registration,
        "arm": row.arm,
        "rate_lambda_ref": row.rate,
        "cell": row.cell,
        "cap": row.gate.cap,
        "pool_share": row.gate.pool_share,
        "engaged_s": row.gate.engage_s,
        "runs": row.runs,
        "rescued_runs": row.passed,
        "relapses": row.relapses,
        "released_runs": row.release_s.runs,
        "quiet_arm": row.companions.quiet,
        "untreated_arm": row.companions.untreated,
    }
    ranges: dict[str, Range | None] = {"release_s": row.release_s, "paused": row.paused}
    ranges["delay_session_h"] = row.delay_session_h
    for name, after in (("hit_fraction", row.hits), ("outstanding", row.outstanding)):
        ranges |= {f"{name}_{arm}": getattr(after, arm) if after else None for arm in _BESIDE}
    for name, found in ranges.items():
        data |= {f"{name}_least": found.least if found else None, f"{name}_most": found.most if found else None}
    return data
