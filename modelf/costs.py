"""GPU time of a turn that misses, by cell: what model F is built on.

c_k is fitted in units of the cell's mean all-miss turn cost, with p in units
of 10^4 tokens: c_k / cbar = A + u (p/1e4) + v (p/1e4)^2, and lambda_ref /
lambda_miss = r. All of it is reconstructed from printed predictions, not the
paper's own numbers; the printed parts are named in `origin`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from modelf.turn_law import mean_turns, survivals
from modelf.workload import STANDARD_WORKLOAD, Workload

Vector = NDArray[np.float64]

PRINTED_LAMBDA_REF_PER_S = 0.0720
"""About 0.0720 sessions/s on sglang-300k: 846 arrivals at 1.35 over 8700 s."""

PRINTED_MIRROR_CAPACITY = 1.046
"""MIRROR's stated lambda_miss, in multiples of the 300k cell's lambda_ref."""


@dataclass(frozen=True)
class MissCosts:
    """c_k in units of `cbar_s` seconds: constant + linear x + quadratic x^2,
    x = p / 10^4 tokens.

    `reference` is r = lambda_ref / lambda_miss for the standard workload;
    `cbar_s` is None where the absolute scale is not known: then all times are
    in units of cbar.
    """

    cell: str
    constant: float
    linear: float
    quadratic: float
    reference: float
    cbar_s: float | None
    origin: str

    def turn_costs(self, workload: Workload) -> Vector:
        """c_k for turns 1 .. max_turns, shape (max_turns,), seconds (or
        units of cbar where the scale is not known).
        """
        x = np.asarray(workload.prompts(), dtype=np.float64) / 1e4
        return (self.cbar_s or 1.0) * (self.constant + self.linear * x + self.quadratic * x * x)

    def lambda_miss(self, workload: Workload) -> float:
        """All-miss capacity 1 / sum_k S_k c_k, sessions per unit of time."""
        return 1.0 / session_cost(workload, self.turn_costs(workload))

    def lambda_ref(self) -> float:
        """The reference rate: r times the standard workload's lambda_miss."""
        return self.reference * self.lambda_miss(STANDARD_WORKLOAD)

    def with_capacity(self, workload: Workload, lambda_miss: float) -> MissCosts:
        """The same prefill costs with the decode share (the constant) set so
        that the workload's all-miss capacity is `lambda_miss`.
        """
        short = 1.0 / lambda_miss - session_cost(workload, self.turn_costs(workload))
        constant = self.constant + short / mean_turns(workload.turns) / (self.cbar_s or 1.0)
        return replace(self, constant=constant)


def session_cost(workload: Workload, turn_costs: Vector) -> float:
    """sum_k S_k c_k: all-miss GPU time of a session, expected."""
    return float(np.dot(survivals(workload.turns), turn_costs))


_CBAR_300K_S = 0.99584 / (PRINTED_LAMBDA_REF_PER_S * mean_turns(STANDARD_WORKLOAD.turns))
_FITTED = "fitted to the paper's printed model-F predictions"

COSTS: dict[str, MissCosts] = {
    cell: MissCosts(cell, constant, linear, quadratic, reference, cbar_s, origin)
    for cell, linear, quadratic, constant, reference, cbar_s, origin in (
        ("sglang-300k", 0.66538, 0.12152, 0.09285, 0.99584, _CBAR_300K_S,
         f"{_FITTED}; scale from lambda_ref of about 0.0720/s (printed arrivals)"),
        ("sglang-native", 0.66538, 0.12152, 0.06756, 0.97441, _CBAR_300K_S,
         f"{_FITTED}; in the 300k cell's scale, only the decode share differs"),
        ("vllm-300k", 0.64508, 0.13399, 0.09248, 0.97958, None, f"{_FITTED}; no absolute scale"),
        ("h200-600k", 0.70130, 0.11551, 0.06566, 0.96569, None, f"{_FITTED}; no absolute scale"),
        ("llama-300k", 0.60615, 0.13711, 0.12783, 0.98580, None, f"{_FITTED}; no absolute scale"),
    )
}  # fmt: skip


def mirror_costs() -> MissCosts:
    """The 300k cell's costs with MIRROR's stated all-miss capacity."""
    from modelf.workload import MIRROR_WORKLOAD

    costs = COSTS["sglang-300k"]
    return costs.with_capacity(MIRROR_WORKLOAD, PRINTED_MIRROR_CAPACITY * costs.lambda_ref())
