"""How long the fluid server takes for a run's 8700 s with 60 turn classes.

Best of five at a step of one second: `python benchmarks/fluid_speed.py`.
"""

from __future__ import annotations

import time

from modelf.costs import COSTS
from modelf.fluid import fluid_orbit
from modelf.fluid_inputs import PiecewiseConstant, Pulse, RatedArrivals, Scenario, stationary_start
from modelf.workload import STANDARD_WORKLOAD

ROUNDS = 5
HORIZON_S = 8700.0
LIMIT_MS = 50.0


def main() -> None:
    """Print the best time beside what is wanted."""
    cell, turns = COSTS["sglang-300k"], STANDARD_WORKLOAD.turns
    costs = cell.turn_costs(STANDARD_WORKLOAD)
    rate = PiecewiseConstant((1.65 * cell.lambda_ref(),))
    scenario = Scenario(stationary_start(turns, 0.0, 10.0), RatedArrivals(rate, (Pulse(200.0, 1200.0, 60.0),)))
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        fluid_orbit(turns, costs, scenario, HORIZON_S)
        seconds.append(time.perf_counter() - start)
    print(f"fluid orbit of {HORIZON_S:g} s, {turns.max_turns} turn classes, step 1 s: {min(seconds) * 1000:.1f} ms")
    print(f"at most {LIMIT_MS:g} ms is wanted")


if __name__ == "__main__":
    main()
