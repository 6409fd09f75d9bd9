"""The first-principles trap forecast, by hand and at its bounds."""

from __future__ import annotations

import numpy as np
import pytest

from modelf.cells import CELLS
from modelf.closed_population import closed_curve, onset_of
from modelf.first_principles import all_miss_capacity, step_costs
from modelf.hardware import GPUS, MODELS
from modelf.trap_forecast import PlannedSession, forecast, good_service_s, peak_when_good
from modelf.workload import STANDARD_WORKLOAD

COSTS = step_costs(MODELS["Qwen2.5-7B-Instruct"], GPUS["A100 80GB PCIe"])
SERVICE_S = np.array([1.0, 2.0, 3.0])


def test_the_peak_by_hand() -> None:
    sessions = [PlannedSession(0.0, (5.0,)), PlannedSession(7.5, ()), PlannedSession(8.0, ())]
    # The first lasts 1 + 5 + 2 = 8 s: it meets the second, and has gone for the third.
    assert peak_when_good(SERVICE_S, sessions) == 2
    assert peak_when_good(SERVICE_S, sessions, lambda start_s: 4.0 if start_s < 2 else 0.0) == 3
    assert peak_when_good(SERVICE_S, []) == 0


def test_a_good_turn_is_served_by_its_hit_and_its_decode_steps() -> None:
    service = good_service_s(COSTS, STANDARD_WORKLOAD)
    assert service.shape == (60,)
    first = COSTS.prefill_request_s + COSTS.prefill_token_s * 2000 + COSTS.prefill_pair_s * 2000**2 / 2
    assert service[0] == pytest.approx(first + 99 * (COSTS.decode_step_s + COSTS.decode_kv_token_s * 2050))
    assert service[1] < service[0] and (np.diff(service[1:]) > 0).all()


def test_it_traps_from_the_onset_on_and_above_the_all_miss_capacity_only() -> None:
    pool = 300_000
    onset = onset_of(COSTS, STANDARD_WORKLOAD, pool)
    capacity = all_miss_capacity(COSTS, STANDARD_WORKLOAD, pool)

    def traps(sessions: int, arrivals_per_s: float) -> bool:
        planned = [PlannedSession(10.0, (5.0, 5.0))] * sessions
        return forecast(COSTS, STANDARD_WORKLOAD, pool, planned, arrivals_per_s).traps

    assert traps(int(onset) + 1, 1.1 * capacity)
    assert not traps(int(onset), 1.1 * capacity)
    assert not traps(200, 0.9 * capacity)


def test_reuse_counts_tokens_and_lies_below_the_hits_of_whole_contexts_plus_parts() -> None:
    costs = CELLS["sglang-300k"].step_costs
    assert costs
    for fluctuation in (False, True):
        curve = closed_curve(costs, STANDARD_WORKLOAD, 300_000, [4, 16, 32, 64], fluctuation=fluctuation)
        assert (np.diff(curve.reuse_fraction) < 0).all()
        assert curve.reuse_fraction[0] == pytest.approx(0.95, abs=0.01)  # 551 of 11,000 tokens are new
        assert curve.reuse_fraction[-1] < 0.1
        # Parts of contexts add to whole ones.
        assert (curve.reuse_fraction > 0.94 * curve.hit_fraction).all()
