"""Table 3, Corollary 3 illustrated: cuts of arrivals in the all-miss fluid.

Cell sglang-300k at 1.65 lambda_ref; ten sessions present at 1200 s in the
stationary turn mix, the 200-session burst over 60 s, every turn a miss from
1200 s on; arrivals cut at 5000 s. The page lost the rates cut to; the last,
"about 0.9", is found from its printed emptying time, W / (1 - rho').
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from modelf.costs import COSTS
from modelf.fluid import FluidOrbit, fluid_orbit
from modelf.fluid_inputs import PiecewiseConstant, Pulse, RatedArrivals, Scenario, stationary_start
from modelf.workload import STANDARD_WORKLOAD

CUT_S = 5000.0
END_S = 30_000.0
_RATE = 1.65
_CELL = COSTS["sglang-300k"]
_TURNS = STANDARD_WORKLOAD.turns


@lru_cache
def cut_orbit(to_over_lambda_miss: float, until_s: float = END_S, step_s: float = 2.0) -> FluidOrbit:
    """The orbit with arrivals cut at 5000 s to a multiple of lambda_miss."""
    before, after = _RATE * _CELL.lambda_ref(), to_over_lambda_miss * _CELL.lambda_miss(STANDARD_WORKLOAD)
    arrivals = RatedArrivals(PiecewiseConstant((before, after), (CUT_S,)), (Pulse(200.0, 1200.0, 60.0),))
    scenario = Scenario(stationary_start(_TURNS, 1200.0, 10.0), arrivals)
    return fluid_orbit(_TURNS, _CELL.turn_costs(STANDARD_WORKLOAD), scenario, until_s, step_s)


def present_at_cut() -> float:
    """Sessions present when arrivals are cut."""
    orbit = cut_orbit(1.0)
    return float(np.interp(CUT_S, orbit.time_s, orbit.present))


def fewest_after_cut(to_over_lambda_miss: float) -> float:
    """The fewest sessions present after the cut, until 30,000 s."""
    return cut_orbit(to_over_lambda_miss).lowest_present(CUT_S)[1]


def present_at_end(to_over_lambda_miss: float) -> float:
    """Sessions present at 30,000 s."""
    return float(cut_orbit(to_over_lambda_miss).present[-1])


def rate_that_empties(empty_at_s: float) -> float:
    """The cut, in multiples of lambda_miss, whose busy period ends then."""
    orbit = cut_orbit(1.0)
    work = float(np.interp(CUT_S, orbit.time_s, orbit.remaining_work_s))
    return 1.0 - work / (empty_at_s - CUT_S)


def empty_after_cut(to_over_lambda_miss: float, until_s: float) -> float:
    """When the fluid empties after a cut, seconds; inf where it does not."""
    found = cut_orbit(to_over_lambda_miss, until_s, 5.0).emptied_at(CUT_S)
    return float("inf") if found is None else found
