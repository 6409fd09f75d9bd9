"""Loads solved per second on one core, beside scipy's brentq in a loop.

Both in one run on the same loads: `python benchmarks/theory_speed.py`.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.optimize import brentq

from modelf.costs import COSTS
from modelf.renewal import perron_root
from modelf.turn_law import survivals
from modelf.workload import STANDARD_WORKLOAD

LOADS = 20_000
LOOPED = 500


def main() -> None:
    """Print both rates, their ratio, and the largest difference of the roots."""
    costs = COSTS["sglang-300k"].turn_costs(STANDARD_WORKLOAD)
    survival = np.array(survivals(STANDARD_WORKLOAD.turns))
    shares = survival * costs / (survival @ costs)
    powers = np.arange(1, len(shares) + 1)
    loads = np.linspace(1.01, 5.0, LOADS)

    start = time.perf_counter()
    roots = perron_root(shares, loads)
    ours = LOADS / (time.perf_counter() - start)

    chosen = np.arange(0, LOADS, LOADS // LOOPED)
    start = time.perf_counter()
    looped = [
        brentq(lambda x, rho=loads[i]: rho * float(shares @ x**powers) - 1.0, 0.0, 1.0, xtol=1e-14) for i in chosen
    ]
    theirs = len(chosen) / (time.perf_counter() - start)

    print(f"vectorised Newton {ours:,.0f} loads/s, brentq in a loop {theirs:,.0f} loads/s")
    print(f"ratio {ours / theirs:.0f}, at least 50 is wanted")
    print(f"largest difference of the roots {np.abs(roots[chosen] - looped).max():.1e}")


if __name__ == "__main__":
    main()
