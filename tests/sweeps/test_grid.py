"""The grid: numbers of runs, the arms behind them, and what is refused."""

from __future__ import annotations

import itertools
from dataclasses import astuple, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.workflows.rehearse import provisional
from cli.workflows.reproduce import shipped_draft
from cli.workflows.sweep_axes import AXES, Value, values_of
from cli.workflows.sweep_grid import Grid, arm_at, check_grid, grid_of
from registry.design import Burst, EnginePolicy, GateSetting
from registry.draft import Draft
from registry.errors import StudyError
from registry.registration import Calibration, Registration, read_registration

E2, POLICIES, CLOSED = shipped_draft("e2"), shipped_draft("policies"), shipped_draft("closed")


def given_axes(**texts: str) -> dict[str, tuple[Value, ...]]:
    return {name: values_of(AXES[name], text) for name, text in texts.items()}


def of_draft(draft: Draft) -> Registration:
    quoted = Calibration(
        draft.calibration or "", 1, "0" * 64, 11_126.0, 0.072, {"ALLMISS/closed/0": ("0" * 64, 11_126.0)}
    )
    return read_registration(provisional(draft, quoted if draft.calibration else None), "here")


def checked(draft: Draft, arm: str, **texts: str) -> Grid:
    registration = of_draft(draft)
    design, axes = registration.draft.design, given_axes(**texts)
    grid = grid_of(design, design.arm(arm), registration.cell, axes)
    check_grid(registration, design.arm(arm), grid, axes)
    return grid


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 3), min_size=len(AXES), max_size=len(AXES)))
def test_every_run_number_is_one_place_in_the_grid(sizes: list[int]) -> None:
    axes = {name: tuple(range(size)) for name, size in zip(AXES, sizes, strict=True)}
    grid = Grid(axes)
    points = [astuple(grid.point(run)) for run in range(grid.runs)]
    assert points == list(itertools.product(*axes.values()))


def test_seeds_come_last_so_that_half_a_sweep_is_a_whole_grid_of_half_the_seeds() -> None:
    grid = checked(E2, "BURST", seed="0:9", rate="1.0:2.0:0.25")
    assert [grid.point(run).seed for run in range(10)] == [0] * 5 + [1] * 5
    assert grid.stride("seed") == 5


def test_an_axis_that_is_not_given_keeps_the_rule_files_values() -> None:
    grid = checked(E2, "CAPPED")
    assert grid.runs == 6
    assert {astuple(grid.point(run))[1:] for run in range(6)} == {
        (rate, 200, 20, 300_000, "fcfs", "lru") for rate in (1.35, 1.65)
    }
    assert [grid.point(run).seed for run in range(6)] == [0, 0, 1, 1, 2, 2]


def test_a_point_is_the_arm_with_its_values_and_nothing_else_changed() -> None:
    base = E2.design.arm("BURST")
    grid = checked(E2, "BURST", burst_sessions="0,50", cap="none,7", pool_tokens="150k", eviction="longest-wait")
    first, last = (arm_at(base, grid.point(run)) for run in (0, grid.runs - 1))
    policy = EnginePolicy(eviction="longest-wait")
    assert first == replace(base, burst=None, pool_tokens=150_000, engine=policy)
    gate = GateSetting(7, engage_s=0.0, release_after_s=None)
    assert last == replace(base, burst=Burst(50, 1200.0, 60.0), gate=gate, pool_tokens=150_000, engine=policy)


def test_a_gate_that_is_there_keeps_its_times_and_loses_its_cap_to_none() -> None:
    arm = POLICIES.design.arm("AIMD")
    assert arm.gate is not None
    grid = checked(POLICIES, "AIMD", cap="40,none")
    assert arm_at(arm, grid.point(0)).gate == replace(arm.gate, cap=40)
    assert arm_at(arm, grid.point(1)).gate is None
    share = POLICIES.design.arm("CAPACITY")
    assert arm_at(share, checked(POLICIES, "CAPACITY").point(0)).gate == share.gate


def test_a_closed_population_has_no_rate() -> None:
    (arm, *_) = CLOSED.design.arms
    grid = checked(CLOSED, arm.name, seed="0:1")
    assert [grid.point(run).rate for run in range(grid.runs)] == [None, None]


@pytest.mark.parametrize(
    ("draft", "arm", "axis", "text", "word"),
    [
        (E2, "NOBURST", "burst_sessions", "50", "no burst"),
        (POLICIES, "CAPACITY", "cap", "20", "pool's share"),
        (POLICIES, "AIMD", "cap", "1", "above the first cap"),
        (POLICIES, "PINNED", "eviction", "longest-wait", "pins go with"),
        (E2, "BURST", "pool_tokens", "300001", "larger than its cell's"),
        (E2, "BURST", "pool_tokens", "1k", "too small for one turn"),
        (E2, "BURST", "seed", "0:99999", "too many runs"),
        (CLOSED, CLOSED.design.arms[0].name, "rate", "1.0", "population"),
        (CLOSED, CLOSED.design.arms[0].name, "burst_sessions", "9", "no burst"),
        (CLOSED, CLOSED.design.arms[0].name, "cap", "9", "population"),
    ],
)
def test_an_arm_refuses_what_it_cannot_vary(draft: object, arm: str, axis: str, text: str, word: str) -> None:
    more = {"rate": "1.0:2.0:0.1"} if axis == "seed" else {}
    with pytest.raises(StudyError, match=word) as caught:
        checked(draft, arm, **{axis: text}, **more)
    assert caught.value.remedy
