"""Tables and figures of made-up runs: each number by hand, each figure there."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from cli.render.pictures import drawing
from cli.render.study_tables import text_tables
from cli.workflows.figure_completions import completions
from cli.workflows.figure_over_time import over_time
from cli.workflows.figure_rescue import rescue
from cli.workflows.figure_scales import basin, closed, time_scales
from cli.workflows.figure_theory import theory, turn_mix
from cli.workflows.model_f import FITTED, STEP, forecast
from cli.workflows.study_figures import drawn_figures
from cli.workflows.study_runs import shown_runs
from cli.workflows.study_tables import QUANTITIES, stuck_runs, study_tables
from ledger.page.figure import Figure
from modelf.published import published
from registry.design import RunId
from registry.engine_setup import EngineSetup
from registry.registration import Registration
from tests.made_runs import LAMBDA_REF_PER_S, is_stuck, proof_of, registration_of, report_of
from verifier.check import refuted
from verifier.scores import Score


def as_model_f(registration: Registration, run: RunId) -> Mapping[str, float]:
    """Stuck runs that are 2% above model F in everything."""
    said = forecast(registration, run)
    return {name: 1.02 * getattr(said, name) for name in QUANTITIES} if said and is_stuck(run) else {}


def drawn(maker: Callable[..., Figure | str], *tests: str, shown_too: bool = False) -> Figure:
    """The figure of the first of some tests; the maker sees the others, too, if it wants to."""
    shown = shown_runs(report_of(*(proof_of(test, as_model_f) for test in tests)))
    with drawing() as pyplot:
        found = maker(pyplot, shown[0], shown) if shown_too else maker(pyplot, shown[0])
    assert isinstance(found, Figure)
    return found


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("row", published()["table2"], ids=lambda row: f"{row[0]} {row[1]}")
def test_model_f_is_the_papers_at_every_printed_load(row: list[float]) -> None:
    printed = dict(zip(published()["table2_columns"], row, strict=True))
    tests = {"sglang-300k": "e2", "sglang-native": "e2-native", "vllm-300k": "e2-vllm", "h200-600k": "e2-h200",
             "llama-300k": "e2-llama"}  # fmt: skip
    registration = registration_of(tests[str(printed["cell"])])
    said = forecast(registration, RunId("BURST", printed["rate_over_lambda_ref"], 0))
    assert said is not None
    assert said.costs == FITTED
    assert said.rho == pytest.approx(printed["rho"], abs=0.01)
    assert said.mean_prompt_tokens == pytest.approx(printed["mean_prompt_pred"], abs=1.0)
    assert said.sojourn_slope == pytest.approx(printed["gap_slope_pred"], abs=0.001)
    completions = said.completions_per_s / LAMBDA_REF_PER_S
    assert completions == pytest.approx(printed["completions_over_lambda_ref_pred"], abs=0.01)
    quasi_static = said.quasi_static_per_s / said.backlog_slope_per_s
    assert quasi_static == pytest.approx(printed["quasi_static_over_pred"], abs=0.01)


def test_model_f_says_nothing_below_its_capacity_or_of_a_closed_population() -> None:
    registration = registration_of("e2")
    assert forecast(registration, RunId("BURST", 0.5, 0)) is None
    assert forecast(registration, RunId("BURST", None, 0)) is None
    mirror = forecast(registration_of("mirror"), RunId("BURST", 1.65, 0))
    assert mirror is not None
    assert mirror.costs == STEP


def test_table_2_sets_stuck_runs_beside_model_f() -> None:
    tables = study_tables(report_of(proof_of("e2", as_model_f), proof_of("basin-1", as_model_f)))
    assert [(row.runs.name, row.arm, row.rate, len(row.stuck)) for row in tables.theory] == [
        ("e2 v1", "BURST", 1.35, 3),
        ("e2 v1", "BURST", 1.65, 3),
        ("basin-1 v1", "BURST100", 1.65, 3),
    ]
    assert [row.registration for row in tables.statistics] == ["e2 v1"] * 4 + ["basin-1 v1"] * 4 + [None] * 4
    for row in tables.statistics:
        assert row.errors.mean_error == pytest.approx(0.02)
        assert row.errors.worst == pytest.approx(0.02)
        assert row.errors.within == row.errors.runs == {"e2 v1": 6, "basin-1 v1": 3}.get(row.registration or "", 9)


def test_runs_that_are_helped_or_judged_after_their_own_release_are_not_in_table_2() -> None:
    assert study_tables(report_of(proof_of("r1"), proof_of("shed"), proof_of("cut-a"))).theory == ()


def test_table_4_has_releases_and_what_came_after() -> None:
    tables = study_tables(report_of(proof_of("r1"), proof_of("e2")))
    assert [(row.arm, row.rate, row.runs) for row in tables.rescues] == [("RESCUE", 1.35, 3), ("RESCUE", 1.65, 3)]
    row = tables.rescues[0]
    assert (row.gate.cap, row.gate.engage_s) == (20, 1800.0)
    assert (row.companions.quiet, row.companions.untreated) == ("NOBURST", "BURST")
    assert (row.release_s.least, row.release_s.most, row.release_s.runs) == (4000.0, 4200.0, 3)
    assert row.passed is None
    assert row.hits is not None
    assert row.outstanding is not None
    assert [row.hits.rescued.most, row.hits.quiet.most, row.hits.untreated.most] == [1.0, 1.0, 0.0]
    assert (row.outstanding.untreated.least, row.outstanding.untreated.most) == (200.0, 202.0)


def test_every_kind_of_figure_is_drawn_or_named_with_its_reason() -> None:
    found = drawn_figures(report_of(proof_of("basin-1", as_model_f), proof_of("closed")))
    assert [one.name for one in found.figures] == [
        "basin-1-v1-over-time",
        "basin-1-v1-time-scales",
        "basin-1-v1-theory",
        "basin-1-v1-turn-mix",
        "closed-v1-closed-population",
        "basin",
    ]
    assert len(found.figures) + len(found.not_drawn) == 2 * 7 + 2
    reasons = {one.what: one.why for one in found.not_drawn}
    assert reasons["closed v1, over time"] == "no run with open arrivals to show"
    assert reasons["study, model F against runs"].startswith("no two registrations")
    assert reasons["basin-1 v1, rescue and release"] == "no session cap engages inside its runs"
    for one in found.figures:
        assert one.title.startswith("MODEL F, no measurement" if one.name.endswith("mix") else "SIMULATED: ")
        assert one.registration is None or one.name.startswith(one.registration.split("/")[1])
        assert one.svg.startswith("<?xml")
        assert 40 < len(one.text) < 900
        assert "$" not in one.title + one.text
        assert len(rows(one.csv)) > 3


def test_model_f_stands_beside_the_stuck_runs_of_all_registrations() -> None:
    shown = shown_runs(report_of(*(proof_of(test, as_model_f) for test in ("basin-1", "mirror"))))
    with drawing() as pyplot:
        made = theory(pyplot, [row for one in shown for row in stuck_runs(one)], None)
    assert isinstance(made, Figure)
    assert made.title == "SIMULATED: all registrations, model F against 9 stuck runs"
    found = rows(made.csv)
    assert [row["of"] for row in found if row["seed"]] == ["basin-1 v1"] * 3 + ["mirror v1"] * 6
    assert {row["of"] for row in found if not row["seed"]} == {"model F 1", "model F 2"}
    assert "mean prompt by +2.0% (at worst +2.0%)" in made.text


def test_time_scales_are_the_readings_of_every_run() -> None:
    made = drawn(time_scales, "e2")
    found = rows(made.csv)
    assert len(found) == 18
    assert {(row["arm"], row["gap_s"], row["turnover_s"]) for row in found if row["seed"] == "2"} == {
        ("BURST", "302.0", "25.0"), ("NOBURST", "5.0", "200.0"), ("CAPPED", "5.0", "200.0")
    }  # fmt: skip
    assert "gap 300 to 302 s, turnover 25 s" in made.text


def test_the_basin_counts_each_burst_once() -> None:
    shown = shown_runs(report_of(*(proof_of(test) for test in ("e2", "r1", "basin-1", "basin-2"))))
    with drawing() as pyplot:
        made = basin(pyplot, shown)
    assert isinstance(made, Figure)
    stuck: dict[int, list[str]] = {}
    for row in rows(made.csv):
        assert row["rate_lambda_ref"] == "1.65"
        stuck.setdefault(int(row["burst_sessions"]), []).append(row["stuck"])
    # e2 gives 0 and 200; r1 repeats its plans, and is not counted.
    assert stuck == {size: [str(int(size > 40))] * 3 for size in (0, 25, 40, 50, 60, 100, 200)}
    assert "3 of 3 stuck after 50" in made.text


def test_completions_stand_beside_model_f_and_the_standard_workload() -> None:
    found = rows(drawn(completions, "mirror", "e2", shown_too=True).csv)
    assert {row["of"] for row in found} == {"mirror v1", "model F", "e2 v1"}
    runs = [row for row in found if row["of"] == "mirror v1"]
    assert len(runs) == 2 * 3 * 29
    assert {round(float(row["completions_per_s"]), 9) for row in runs if row["seed"] == "1"} == {0.06}
    fluid = [row for row in found if row["of"] == "model F"]
    assert min(float(row["time_s"]) for row in fluid) == 1350.0


def test_a_closed_population_has_a_dot_a_run_and_the_theorys_curve() -> None:
    found = rows(drawn(closed, "closed").csv)
    assert sum(row["of"] == "run" for row in found) == 27
    assert sum(row["of"] == "theory" for row in found) == 60


def test_a_rescue_shows_the_seed_of_median_release() -> None:
    made = drawn(rescue, "r1")
    found = rows(made.csv)
    assert {(row["arm"], row["seed"]) for row in found} == {("RESCUE", "1"), ("BURST", "1"), ("NOBURST", "1")}
    assert {row["cap_released_s"] for row in found if row["arm"] == "RESCUE"} == {"4100.0"}
    assert "came off at 4,100 s" in made.text
    assert made.title.startswith("SIMULATED: r1 v1")


def test_the_turn_mix_is_model_fs_alone() -> None:
    found = rows(drawn(turn_mix, "e2").csv)
    for rate in ("1.35", "1.65", ""):
        shares = [float(row["share_of_turns"]) for row in found if row["turn"] and row["rate_lambda_ref"] == rate]
        assert len(shares) == 60
        assert sum(shares) == pytest.approx(1.0)


def test_real_runs_are_not_called_simulated_and_mixed_ones_are_called_mixed() -> None:
    real = proof_of("basin-1", as_model_f, simulated=False)
    (one, other) = shown_runs(report_of(real, proof_of("basin-2", as_model_f)))
    with drawing() as pyplot:
        figures = [over_time(pyplot, one), over_time(pyplot, other), basin(pyplot, [one, other])]
    titles = [figure.title for figure in figures if isinstance(figure, Figure)]
    assert titles[0] == "basin-1 v1, hits and sessions over time"
    assert titles[1].startswith("SIMULATED: basin-2 v1")
    assert titles[2].startswith("SIMULATED AND REAL RUNS: ")
    assert isinstance(figures[0], Figure)
    assert figures[0].text.startswith("Measured on a real engine")
    assert "SIMULATED" not in text_tables(study_tables(report_of(real)))[0].caption


def test_a_run_that_does_not_hold_is_left_out_and_named() -> None:
    proof = proof_of("e2", as_model_f)
    bad = proof.runs[0]
    bad.check = refuted(bad.run.path, "its table was changed")
    proof.runs[1].state, proof.runs[1].check, proof.runs[1].readings = "missing", None, {}
    report = report_of(replace(proof, check=refuted(proof.tag, "BURST/1.35/0: its table was changed")))
    tables = study_tables(report)
    assert [(one.what, one.why) for one in tables.left_out] == [
        ("reg/e2/v1", "its proof FAILED, whatever is shown of it: BURST/1.35/0: its table was changed"),
        (f"reg/e2/v1 {bad.run.path}", "REFUTED: its table was changed"),
        (f"reg/e2/v1 {proof.runs[1].run.path}", "no result: missing"),
    ]
    assert len(shown_runs(report)[0].reports) == 16
    assert [len(row.stuck) for row in tables.theory] == [1, 3]
    with drawing() as pyplot:
        made = over_time(pyplot, shown_runs(report)[0])
    assert isinstance(made, Figure)
    seen = {(row["arm"], row["rate_lambda_ref"], row["seed"]) for row in rows(made.csv)}
    assert ("BURST", "1.35", "0") not in seen
    assert ("BURST", "1.35", "2") in seen
    assert "The proof of reg/e2/v1 FAILED" in made.text


def test_a_real_engines_study_without_runs_is_not_called_simulated() -> None:
    proof = proof_of("e2")
    for run in proof.runs:
        run.check, run.readings = None, {}
    (simulator,) = shown_runs(report_of(proof))
    assert simulator.origin == "simulated"
    setup = EngineSetup("vllm", "a-model", 1000, 2048, 8)
    (engine,) = shown_runs(report_of(replace(proof, registration=replace(simulator.registration, engine=setup))))
    assert engine.origin == "real"


def test_predictions_are_scored_over_the_runs_shown() -> None:
    proof = proof_of("e2")
    predicted: dict[int, float | bool] = {0: 10.0, 1: 10.0, 2: 10.0}
    measured: dict[int, float | bool] = {0: 10.4, 1: 12.0, 2: 99.0}
    proof.scores = [
        Score("p", "stated", "", "BURST", 1.35, "judged.sojourn_s", None, 0.05, predicted, measured, 1),
        Score("v", "simulator", "", "BURST", 1.35, None, "trapped", None, {0: True, 1: True}, {0: True, 1: False}, 1),
    ]
    proof.runs[2].check = refuted(proof.runs[2].run.path, "changed")
    value, verdict = study_tables(report_of(proof)).scores
    assert (value.hits, value.runs) == (1, 2)
    assert value.errors is not None
    assert value.errors.worst == pytest.approx(0.2)
    assert (verdict.hits, verdict.runs, verdict.errors) == (1, 2, None)


def test_a_study_without_runs_has_a_table_and_no_figure_of_runs() -> None:
    proof = proof_of("e2")
    for run in proof.runs:
        run.state, run.check, run.readings, run.series = "missing", None, {}, None
    report = report_of(proof)
    (table,) = text_tables(study_tables(report))
    assert table.rows[0]["runs shown"].startswith("0 of 18")
    assert [one.name for one in drawn_figures(report).figures] == ["e2-v1-turn-mix"]


def test_undefined_readings_leave_no_bar() -> None:
    (shown,) = shown_runs(report_of(proof_of("basin-1", lambda *_: {"idle_s": math.nan})))
    with drawing() as pyplot:
        assert time_scales(pyplot, shown) == "no run with open arrivals to show"
