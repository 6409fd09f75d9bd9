"""The playground's numbers: the whole grid, model F's own values, exits that agree."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from cli.workflows.playground import RUN_LOADS, Grid
from cli.workflows.playground_evidence import TRIALS, evidence_row
from cli.workflows.playground_files import write_pages
from cli.workflows.playground_grid import (
    DRAINED_SESSIONS,
    LOADS,
    PER,
    calculator_data,
    columns,
    inputs_of,
    rounded,
)
from cli.workflows.playground_loop import loop_data
from cli.workflows.playground_renewal import renewal_data
from cli.workflows.playground_replay import SCENARIOS, replay_of
from cli.workflows.playground_runs import lambda_ref_per_s, why_not_run
from cli.workflows.theory import sweep
from modelf.advice import cuts
from modelf.cells import CELLS
from modelf.conformance import quantities
from modelf.costs import COSTS
from modelf.first_principles import all_miss_capacity, turn_costs
from modelf.workload import STANDARD_WORKLOAD, WORKLOADS
from tests.browser.playground_build import small_data
from tests.support import command

EVERY = [(cell, workload) for cell in CELLS for workload in WORKLOADS]


@pytest.fixture(scope="module")
def calculator() -> dict[str, Any]:
    return calculator_data(CELLS, LOADS)


def entry(data: dict[str, Any], cell: str, workload: str) -> Any:
    return data["cells"][cell]["workloads"][workload]


@pytest.mark.parametrize(("cell", "workload"), EVERY)
def test_every_cell_and_workload_has_200_loads_with_a_trapped_state(
    calculator: dict[str, Any], cell: str, workload: str
) -> None:
    found = entry(calculator, cell, workload)["columns"]
    assert {len(column) for column in found.values()} == {len(LOADS)}
    assert sum(value is not None for value in found["growth"]) >= 200
    assert len(set(LOADS)) == len(LOADS) and list(LOADS) == sorted(LOADS)


def test_as_many_loads_are_simulated() -> None:
    assert Grid().cells == tuple(CELLS) and len(set(Grid().run_loads)) >= 200
    assert set(RUN_LOADS) <= set(LOADS)
    assert {(s.cell, s.workload) for s in SCENARIOS} == {pair for pair in EVERY if why_not_run(*pair) is None}


@pytest.mark.parametrize(("cell", "workload"), EVERY)
@pytest.mark.parametrize("load", [1.47, 1.65, 2.5, 4.0])
def test_values_are_those_of_the_theory(
    calculator: dict[str, Any], tmp_path: Path, cell: str, workload: str, load: float
) -> None:
    theory = sweep(cell, workload, (load,), tmp_path).rows[0]
    if cell in COSTS:
        assert theory == quantities(cell, workload, load)
    shown = {name: column[LOADS.index(load)] for name, column in entry(calculator, cell, workload)["columns"].items()}
    assert {name: shown[name] for name in theory} == {name: rounded(value) for name, value in theory.items()}


def test_the_printed_numbers_are_there(calculator: dict[str, Any]) -> None:
    found = entry(calculator, "sglang-300k", "standard")["columns"]
    assert round(found["mean_prompt_tokens"][LOADS.index(1.35)]) == 9324
    mirror = entry(calculator, "sglang-300k", "mirror")["columns"]
    assert round(mirror["completions_over_lambda_miss"][LOADS.index(1.65)], 4) == 0.7705


def test_backlog_growth_is_what_arrives_and_does_not_complete(calculator: dict[str, Any]) -> None:
    found = entry(calculator, "sglang-native", "standard")["columns"]
    i = LOADS.index(4.0)
    assert found["arrivals_per_h"][i] - found["completions_per_h"][i] == pytest.approx(found["backlog_per_h"][i], 1e-3)
    assert found["backlog_over_lambda_ref"][i] == pytest.approx(4.0 - found["completions_over_lambda_ref"][i], 1e-3)


@pytest.mark.parametrize("cell", CELLS)
def test_no_rate_an_hour_where_the_scale_is_not_known(calculator: dict[str, Any], cell: str) -> None:
    found = entry(calculator, cell, "standard")
    known = cell not in ("vllm-300k", "h200-600k", "llama-300k")
    assert ("completions_per_h" in found["columns"]) == known
    assert ("Not known in seconds" in found["scale"]) != known


def test_below_capacity_there_is_no_trapped_state_and_the_queue_drains(calculator: dict[str, Any]) -> None:
    found = entry(calculator, "sglang-300k", "standard")
    i = LOADS.index(0.95)
    assert found["columns"]["growth"][i] is None and found["mix"][i] is None and found["groups"][i] is None
    assert found["columns"]["drain_s"][i] > 0 and found["columns"]["drain_s"][LOADS.index(1.35)] is None


def test_mixes_and_maternities_sum_to_what_they_must(calculator: dict[str, Any]) -> None:
    data = renewal_data(CELLS, LOADS)
    for cell, workload in EVERY:
        found, i = entry(data, cell, workload), LOADS.index(2.0)
        turns = WORKLOADS[workload].turns.max_turns
        assert len(found["mix"][i]) == turns
        assert sum(found["mix"][i]) == pytest.approx(PER, abs=turns)
        assert sum(found["discounted"][i]) == pytest.approx(PER, abs=turns)
        assert sum(found["maternity"][i]) == pytest.approx(PER * found["columns"]["rho"][i], abs=turns)
        assert found["mix"] == entry(calculator, cell, workload)["mix"]
        assert found["cycles"][i][-1] == pytest.approx(found["columns"]["growth_50"][i], rel=1e-3)
        top = max(found["maternity"][i]) / PER
        assert top <= found["columns"]["maternity_top"][i] / 100
    assert len(json.dumps(data, separators=(",", ":"))) < 3_000_000


def test_numbers_are_rounded_once() -> None:
    assert [rounded(x) for x in (0.0128683, 9324.13, 12345.6, 2.0, math.nan, math.inf)] == [
        0.012868, 9324.1, 12346, 2, None, None,
    ]  # fmt: skip
    assert columns({"a": [1.23456, math.nan]}, 3) == {"a": [1.23, None]}


def test_exits_agree_with_the_advice() -> None:
    data = loop_data(["sglang-300k"], (0.9, 1.35, 1.65))
    found = entry(data, "sglang-300k", "standard")
    costs, pool = CELLS["sglang-300k"].step_costs, 300_000
    assert costs is not None
    all_miss_s = turn_costs(costs, STANDARD_WORKLOAD, pool).all_miss_s
    rho = inputs_of("sglang-300k", "standard").reference * 1.65
    rate = rho * all_miss_capacity(costs, STANDARD_WORKLOAD, pool)
    deep, _, stop = cuts(all_miss_s, STANDARD_WORKLOAD, DRAINED_SESSIONS, rate)
    at = {name: column[2] for name, column in found["columns"].items()}
    assert (at["drain_s"], at["stop_s"]) == (rounded(deep.empty_after_s, 4), rounded(stop.empty_after_s, 4))
    assert rate == pytest.approx(1.65 * lambda_ref_per_s("sglang-300k"))
    assert (at["exit_alone"], at["exit_cut"], at["exit_cap"], at["exit_pool"], at["exit_gpu"]) == (0, 0, 1, 0, 1)
    assert [found["columns"]["exit_alone"][0], found["columns"]["alone_s"][0] > 0] == [1, True]
    assert at["alone_s"] is None
    assert found["engine"]["onset"] == 33.4


def test_an_engine_too_small_for_the_workload_has_no_exits() -> None:
    found = entry(loop_data(["vllm-cpu-mini"], (1.65,)), "vllm-cpu-mini", "standard")
    assert "40,450" in found["problem"] and "engine" not in found and "exit_cap" not in found["columns"]
    assert found["columns"]["rho"] == [1.65]


def test_evidence_counts_the_seeds_freed() -> None:
    rows = [{"followup_hit_fraction": h, "outstanding": 3.0, "refused": 0.0} for h in (0.95, 0.2, None)]
    row = evidence_row(TRIALS[0], rows)
    assert (row["freed"], row["seeds"], row["hits"], row["outstanding"]) == (1, 3, "0.2 to 0.95", "3")


@pytest.fixture(scope="module")
def small() -> dict[str, Any]:
    return small_data()


def test_the_burst_traps_and_the_cap_rescues_in_the_replay(small: dict[str, Any]) -> None:
    for scenario in small["replay"]["scenarios"]:
        assert set(scenario["alone"]["hits"][-100:]) - {None} == {0}
        assert scenario["rescued"]["hits"][-1] >= 0.9 and scenario["rescued"]["engaged_s"] == 1800
        assert scenario["alone"]["engaged_s"] is None and set(scenario["alone"]["gate"]) == {0}
        # The same plan: alike until the cap engages, in bin 90.
        assert scenario["alone"]["engine"][:90] == scenario["rescued"]["engine"][:90]
        assert max(scenario["rescued"]["gate"]) > 50


def test_time_scales_part_in_the_trap(small: dict[str, Any]) -> None:
    found = entry(small["timescales"], "sglang-300k", "standard")["columns"]
    for i in (0, 1):
        assert found["calm_ratio"][i] < 0.1 and found["calm_hits"][i] > 0.9
        assert found["burst_ratio"][i] > 3 and found["burst_hits"][i] == 0
        assert found["burst_turnover_s"][i] == pytest.approx(found["turnover_s"][i], rel=0.1)


def test_the_same_data_gives_the_same_bytes(small: dict[str, Any], tmp_path: Path) -> None:
    first, second = (write_pages(small, tmp_path / name) for name in ("a", "b"))
    assert [f.read_bytes() for f in first] == [f.read_bytes() for f in second]
    assert first[0].name == "index.html" and len(first) == 6
    order = SCENARIOS[0].orders()[1]
    assert replay_of(order) == small["replay"]["scenarios"][0]["rescued"]


def test_the_command_writes_the_pages_and_says_which_to_open(
    small: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.workflows.playground.playground_data", lambda grid, reporter: small)
    result = command(tmp_path, "playground", "--out", "pages")
    assert (result.code, result.out) == (0, "")
    assert "wrote 6 pages; open pages/index.html" in result.err
    assert len(list((tmp_path / "pages").glob("*.html"))) == 6
    (tmp_path / "file").write_text("")
    refused = command(tmp_path, "playground", "--out", "file")
    assert refused.code == 2 and "cannot be written" in refused.err and "--out DIR" in refused.err
