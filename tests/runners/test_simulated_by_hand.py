"""The simulated engine by hand: exact times, and requests that cannot run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from modelf.cells import CELLS, Cell, StepCosts
from modelf.turn_law import TruncatedGeometric
from modelf.workload import STANDARD_WORKLOAD, Workload
from registry.design import Arm, Design, GateSetting, Seeds
from registry.errors import TrapError
from registry.plan import Plan, make_plan, plan_key
from runners.simulated.run import simulate

CELL = CELLS["sglang-300k"]
NOBURST = Arm("NOBURST")


def plan_of(arm: Arm, horizon_s: float) -> Plan:
    design = Design(horizon_s, STANDARD_WORKLOAD, (), (arm,), (), Seeds((0,), "literal"))
    lambda_per_s = None if arm.population else 0.0972
    return make_plan(plan_key("", 0, "", 0), design, arm, lambda_per_s)


# Every cost is a power of two, so the sums below are exact in any order.
TINY_COSTS = StepCosts(0.5, 2.0**-10, 2.0**-20, 0.25, 2.0**-12, 6)
TINY_CELL = Cell("tiny", "", "", "", "", 1000, 1, TINY_COSTS, ())
TINY_WORKLOAD = Workload(TruncatedGeometric(1, 1), 8, 5, 3, 1.0)


def test_a_tiny_run_has_the_times_worked_out_by_hand() -> None:
    plan = Plan(b"key", TINY_WORKLOAD, 60_000_000, (1_000_000, 2_000_000), (), 0)
    tables = simulate(plan, NOBURST, TINY_CELL)
    first, second = tables["turns"].to_pylist()
    # Pieces of 6 and 2 tokens: pairs 18, then 2 * 6 + 2 = 14.
    prefill_s = 0.5 + 8 / 1024 + 32 / 2**20
    first_token_s = 1.0 + prefill_s
    assert (first["start_s"], first["first_token_s"]) == (1.0, first_token_s)
    # The second arrives during decode step 2, which reads 9 tokens after 8.
    second_start_s = first_token_s + 2 * 0.25 + (8 + 9) / 4096
    second_token_s = second_start_s + prefill_s
    assert (second["start_s"], second["first_token_s"]) == (second_start_s, second_token_s)
    first_done_s = second_token_s + 2 * 0.25 + (18 + 20) / 4096
    assert first["done_s"] == first_done_s
    assert second["done_s"] == first_done_s + 2 * 0.25 + (10 + 11) / 4096
    engine = tables["engine"].to_pydict()
    assert engine["time_s"] == [float(second) for second in range(60)]
    assert engine["running_requests"][:4] == [0, 1, 1, 2]
    assert engine["waiting_requests"][:4] == [0, 0, 1, 0]
    # At 2 s: the first token and one decode step, over at 1.7598 s.
    assert engine["output_tokens_total"][:3] == [0, 0, 2]
    assert engine["output_tokens_total"][-1] == 10
    assert engine["uncached_prefill_tokens_total"][-1] == 16
    assert engine["idle_cached_tokens"][-1] == 24
    assert engine["running_tokens"][-1] == 0


def test_a_slot_freed_by_a_finish_is_used_in_the_same_instant() -> None:
    plan = Plan(b"key", TINY_WORKLOAD, 60_000_000, (1_000_000, 2_000_000, 2_500_000), (), 0)
    arm = Arm("GATED", gate=GateSetting(2, 0.0, None))
    tables = simulate(plan, arm, TINY_CELL)
    first, second, third = tables["turns"].to_pylist()
    assert (third["planned_s"], third["ready_s"]) == (2.5, 2.5)
    assert first["done_s"] < second["done_s"]
    assert third["admitted_s"] == third["submit_s"] == third["start_s"] == first["done_s"]
    assert tables["gate"].to_pylist()[-1] == {
        "time_s": first["done_s"],
        "event": "admitted",
        "session": "base-2",
    }


@pytest.mark.parametrize("arm", [NOBURST, Arm("CLOSED", population=3)])
def test_a_pool_too_small_for_the_longest_turn_is_an_error_before_the_run(arm: Arm) -> None:
    # The longest of 60 turns: 2000 + 59 * 650 prompt tokens and 100 more.
    with pytest.raises(TrapError, match="too small for one turn") as failure:
        simulate(plan_of(arm, 30.0), arm, replace(CELL, pool_tokens=40_449))
    assert failure.value.value == "a pool of 40449 tokens, a turn of 40450"
    assert simulate(plan_of(arm, 30.0), arm, replace(CELL, pool_tokens=40_450))["engine"].num_rows == 30


def test_a_cell_without_step_costs_is_refused_in_words() -> None:
    unknown = replace(CELLS["vllm-300k"], step_costs=None)
    with pytest.raises(TrapError, match="vllm-300k cannot be simulated"):
        simulate(plan_of(NOBURST, 10.0), NOBURST, unknown)


def test_cached_tokens_come_in_whole_blocks() -> None:
    cell = replace(CELL, cache_block_tokens=16)
    turns = simulate(plan_of(NOBURST, 600.0), NOBURST, cell)["turns"]
    cached = [n for n in turns["cached_tokens"].to_pylist() if n]
    assert cached
    assert all(n % 16 == 0 for n in cached)
