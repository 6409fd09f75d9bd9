"""The trap as a loop, in numbers: its steps and its exits at each load, by model F.

What has no unit of time comes from the fitted costs, as in the calculator. Seconds
and caps come from the cell's own step costs, which the simulator takes as well:
estimates, where the paper prints no scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cli.workflows.playground_grid import (
    DRAINED_SESSIONS,
    Inputs,
    below,
    columns,
    head,
    inputs_of,
    mixes,
    padded,
    rounded,
    theory_columns,
)
from cli.workflows.playground_runs import lambda_ref_per_s, why_not_run
from modelf.advice import prevention_cap, rescue_cap
from modelf.cells import CELLS, Cell, StepCosts
from modelf.closed_population import closed_curve, onset_of
from modelf.costs import Vector, session_cost
from modelf.first_principles import all_miss_capacity, running_at_full_pool, turn_costs
from modelf.renewal import busy_period, mean_stationary_prompt_tokens, remaining_work
from modelf.turn_mix import stationary_weights
from modelf.workload import WORKLOADS, Workload

POOL_FACTOR = 2
GPU_FACTOR = 2
JUST_BELOW = 0.98
"""A cut this much below what the trapped engine is seen to complete."""

DEEP_CUT = 0.9
"""A cut that model F says works, in multiples of the all-miss capacity."""

_GAP_SPAN_S = 600.0
_HOUR_S = 3600.0
_DIGITS = 4


def loop_data(cells: Iterable[str], loads: Sequence[float]) -> dict[str, Any]:
    """Steps and exits by cell, workload and load; of columns `exit_*`, 1 is that it works."""
    found = {}
    for cell in cells:
        found[cell] = head(CELLS[cell])
        for name, workload in WORKLOADS.items():
            inputs = inputs_of(cell, name)
            theory = theory_columns(inputs, loads)
            steps = {key: theory[key] for key in ("rho", "gap_slope", "completions_over_lambda_ref", "growth")}
            steps |= {
                "mean_prompt_tokens": theory["mean_prompt_tokens"],
                "gap_growth_s": _GAP_SPAN_S * theory["gap_slope"],
            }
            steps |= _cut_just_below(theory, inputs)
            steps |= {"exit_alone": _verdict(theory["rho"] <= 1.0), "exit_gpu": _verdict(theory["rho"] < GPU_FACTOR)}
            steps |= {"exit_stop": np.ones(len(loads))}
            problem = why_not_run(cell, name)
            entry: dict[str, Any] = {"capacity": rounded(1 / inputs.reference), "problem": problem}
            entry |= {"normal_prompt": rounded(mean_stationary_prompt_tokens(workload))}
            if problem is None:
                engine = engine_numbers(CELLS[cell], workload, inputs.reference)
                entry |= {"engine": engine}
                steps |= _engine_columns(cell, workload, inputs, loads) | _engine_exits(engine, np.asarray(loads))
            found[cell]["workloads"][name] = entry | {"columns": columns(steps, _DIGITS)}
    return {"loads": list(loads), "cells": found, "backlog": DRAINED_SESSIONS, "hit_tokens": _hit_tokens()}


def _hit_tokens() -> dict[str, int]:
    return {name: w.prompt_tokens(2) - w.reusable_tokens(2) for name, w in WORKLOADS.items()}


def _cut_just_below(theory: dict[str, Vector], inputs: Inputs) -> dict[str, Vector]:
    """A cut to just below the completions measured in the trap, and 1 where that is
    below capacity, so that the queue empties.
    """
    to = JUST_BELOW * theory["completions_over_lambda_ref"]
    return {"cut_to": to, "exit_cut": np.where(np.isnan(to), np.nan, to * inputs.reference < 1.0)}


def engine_numbers(cell: Cell, workload: Workload, reference: float) -> dict[str, Any]:
    """What does not depend on the load. Rates in multiples of lambda_ref.

    `onset`: fewest sessions of the all-miss state; `cap_rate`: what a good engine
    completes with the rescue cap's sessions running; `big_*`: with the pool doubled,
    where model F's costs move by the decode share alone.
    """
    costs, pool = cell.step_costs, cell.pool_tokens
    assert costs is not None
    onset = onset_of(costs, workload, pool)
    prevention = prevention_cap(onset)
    cap = rescue_cap(workload, pool, prevention)
    rates = closed_curve(costs, workload, pool, [cap, prevention]).sessions_per_s / lambda_ref_per_s(cell.name)
    big = replace(cell, pool_tokens=POOL_FACTOR * pool)
    return {
        "onset": rounded(onset, 3),
        "prevention_cap": prevention,
        "cap": cap,
        "cap_rate": rounded(float(rates[0]), 3),
        "prevention_rate": rounded(float(rates[1]), 3),
        "fill": rounded(running_at_full_pool(workload, pool), 3),
        "big_pool": big.pool_tokens,
        "big_capacity": rounded(_gain(costs, workload, pool) / reference, 4),
        "big_onset": rounded(onset_of(costs, workload, big.pool_tokens), 3),
    }


def _gain(costs: StepCosts, workload: Workload, pool: int) -> float:
    """All-miss capacity with the pool enlarged, over that without."""
    return all_miss_capacity(costs, workload, POOL_FACTOR * pool) / all_miss_capacity(costs, workload, pool)


def _verdict(works: NDArray[np.bool_]) -> Vector:
    return np.asarray(works, dtype=np.float64)


def _engine_exits(engine: dict[str, Any], loads: Vector) -> dict[str, Vector]:
    """1 where an exit works with 200 sessions present: a cap under which a good engine
    completes more than arrives; a doubled pool in which so many sessions cannot miss, or
    whose all-miss capacity is above the load.
    """
    pool = (loads < engine["big_capacity"]) | (engine["big_onset"] > DRAINED_SESSIONS)
    return {"exit_cap": _verdict(loads < engine["cap_rate"]), "exit_pool": _verdict(pool)}


def _engine_columns(cell: str, workload: Workload, inputs: Inputs, loads: Sequence[float]) -> dict[str, Vector]:
    """`turnover_s`: the pool over the tokens written a second while every turn misses;
    `backlog_per_h`: sessions that stay. Until 200 sessions present are through (their
    mix the trap's, the normal one below capacity): `alone_s` at this load, `drain_s`
    after a cut to `DEEP_CUT`, `stop_s` with all arrivals refused, `refused` meanwhile.
    """
    costs, pool = CELLS[cell].step_costs, CELLS[cell].pool_tokens
    assert costs is not None
    all_miss_s = turn_costs(costs, workload, pool).all_miss_s
    lambda_miss = 1 / session_cost(workload, all_miss_s)
    rho, missing = np.asarray(loads) * inputs.reference, below(inputs, loads)
    mix = mixes(inputs, loads[missing:])
    tokens = mix @ (np.asarray(workload.prompts(), dtype=np.float64) + workload.output_tokens)
    present = np.concatenate([np.repeat(stationary_weights(workload), missing, axis=0), mix])
    work_s = DRAINED_SESSIONS * present @ remaining_work(all_miss_s, workload)
    stays = theory_columns(inputs, loads)["backlog_over_lambda_ref"]
    return {
        "turnover_s": padded(pool * (mix @ all_miss_s) / tokens, missing),
        "backlog_per_h": _HOUR_S * stays * lambda_ref_per_s(cell),
        "alone_s": np.array([busy_period(w, r) for w, r in zip(work_s, rho, strict=True)]),
        "drain_s": np.array([busy_period(w, DEEP_CUT) for w in work_s]),
        "stop_s": work_s,
        "refused": np.rint(work_s * rho * lambda_miss),
    }
