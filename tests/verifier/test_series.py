"""A run in bins says what the readings say in windows of the bins' bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cli.workflows.reproduce import shipped_draft
from modelf.cells import CELLS
from registry.design import Arm, Burst, GateSetting, Window
from registry.plan import make_plan, plan_key
from runners.simulated.run import simulate
from verifier.readings import RunFrames, compute_readings
from verifier.run_report import frames_of
from verifier.series import MOST_BINS, coarse_bin_s, in_groups, series_of
from verifier.turn_columns import TurnColumns, due_turns, gate_spans

CELL = CELLS["sglang-300k"]
HORIZON_S, BIN_S = 410.0, 60.0


@pytest.fixture(scope="module")
def frames() -> RunFrames:
    design = replace(shipped_draft("e2").design, horizon_s=HORIZON_S)
    arm = Arm("RESCUE", burst=Burst(40, 50.0, 10.0), gate=GateSetting(6, 130.0, None))
    return frames_of(simulate(make_plan(plan_key("", 0, "", 1000), design, arm, 0.2, 1.0), arm, CELL))


def test_every_bin_is_a_window(frames: RunFrames) -> None:
    series = series_of(frames, HORIZON_S, BIN_S, CELL.cache_block_tokens)
    assert series.middle_s.tolist() == [30.0, 90.0, 150.0, 210.0, 270.0, 330.0, 385.0]
    due = due_turns(TurnColumns.of(frames.turns), HORIZON_S)
    for k in range(series.middle_s.size):
        window = Window("bin", k * BIN_S, min((k + 1) * BIN_S, HORIZON_S))
        readings = compute_readings(frames, window, pool_tokens=CELL.pool_tokens, cache_block_tokens=1)
        assert series.hits[k] == pytest.approx(readings["followup_hit_fraction"], nan_ok=True)
        assert series.outstanding[k] == pytest.approx(readings["outstanding"])
        assert series.completions_per_s[k] == pytest.approx(readings["completions_per_s"])
        waited_s = gate_spans(due).overlaps(window.start_s, window.end_s).sum()
        assert series.at_gate[k] == pytest.approx(waited_s / (window.end_s - window.start_s))
    assert series.at_gate.max() > 1.0


def test_the_gate_is_told_and_no_follow_up_is_no_fraction(frames: RunFrames) -> None:
    series = series_of(frames, HORIZON_S, 1.0, CELL.cache_block_tokens)
    assert series.engaged_s == 130.0
    assert np.isnan(series.release_s)
    assert np.isnan(series.hits).any()


@pytest.mark.parametrize(
    ("horizon_s", "bin_s"), [(8700.0, 60.0), (240.0, 2.0), (150.0, 1.0), (151.0, 2.0), (15.0, 0.1), (1e6, 10_000.0)]
)
def test_a_coarse_series_has_round_bins_and_not_too_many(horizon_s: float, bin_s: float) -> None:
    assert coarse_bin_s(horizon_s) == pytest.approx(bin_s)
    assert horizon_s / coarse_bin_s(horizon_s) <= MOST_BINS * (1 + 1e-9)


def test_groups_of_bins_leave_out_what_is_not_whole(frames: RunFrames) -> None:
    series = series_of(frames, HORIZON_S, BIN_S, CELL.cache_block_tokens)
    # Six whole bins of 60 s and one of 50 s: two groups of three.
    assert in_groups(series, "middle_s", 3).tolist() == [90.0, 270.0]
    coarse = series_of(frames, HORIZON_S, 3 * BIN_S, CELL.cache_block_tokens)
    assert in_groups(series, "completions_per_s", 3) == pytest.approx(coarse.completions_per_s[:2])
    assert in_groups(series, "outstanding", 3) == pytest.approx(coarse.outstanding[:2])
    assert in_groups(series, "outstanding", 7).size == 0


def test_a_bin_in_which_the_engine_did_not_say_what_was_cached_has_no_fraction(frames: RunFrames) -> None:
    turns = frames.turns.copy()
    turns["cached_tokens"] = turns["cached_tokens"].astype("float64")
    late = turns["done_s"] >= 120.0
    turns.loc[late, "cached_tokens"] = np.nan
    known = series_of(frames, HORIZON_S, BIN_S, CELL.cache_block_tokens)
    series = series_of(replace(frames, turns=turns), HORIZON_S, BIN_S, CELL.cache_block_tokens)
    np.testing.assert_array_equal(series.hits[:2], known.hits[:2])
    assert np.isnan(series.hits[2:]).all()
