"""Exits tried on the simulator: one trapped engine, one arm an exit, some seeds.

SIMULATED, on literal seeds. Each arm is one plain form of a policy, untuned.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cli.workflows.playground_runs import BURST, FREED_HIT, SEED, RunOrder
from registry.design import Adaptation, Arm, Cut, EnginePolicy, GateSetting, Shed

CELL, WORKLOAD, LOAD = "sglang-300k", "standard", 1.65
SEEDS = (SEED, SEED + 1, SEED + 2)
_FROM_S = 1800.0


@dataclass(frozen=True)
class Trial:
    """One exit: what is done, and to whom it costs what, in words."""

    name: str
    words: str
    arm: Arm
    pool_factor: int = 1

    def orders(self) -> tuple[RunOrder, ...]:
        """One run a seed."""
        return tuple(RunOrder(CELL, WORKLOAD, LOAD, self.arm, seed, self.pool_factor) for seed in SEEDS)


def _gated(name: str, gate: GateSetting) -> Arm:
    return Arm(name, burst=BURST, gate=gate)


_ADAPTING = Adaptation(interval_s=10, low_hit=0.5, decrease=0.5, increase=2, least_cap=4)

TRIALS = (
    Trial("Left alone", "nothing is done", Arm("ALONE", burst=BURST)),
    Trial("Session cap", "at most 20 sessions admitted from 1800 s, the rest wait at the client",
          _gated("CAP", GateSetting(20, _FROM_S, None))),
    Trial("Cap that adapts", "a cap from 1800 s that halves at low hits and grows by 2",
          _gated("AIMD", GateSetting(64, _FROM_S, None, _ADAPTING))),
    Trial("Gate on the pool", "from 1800 s, sessions admitted while their next turns fill 0.9 of the pool",
          _gated("CAPACITY", GateSetting(None, _FROM_S, None, pool_share=0.9))),
    Trial("Arrivals refused, 600 s", "no new session from 1800 to 2400 s",
          Arm("STOP600", burst=BURST, shed=Shed(_FROM_S, 600))),
    Trial("Arrivals refused, 3600 s", "no new session from 1800 to 5400 s",
          Arm("STOP3600", burst=BURST, shed=Shed(_FROM_S, 3600))),
    Trial("Arrivals cut to 1.1", "below what the trap completes, above its all-miss capacity, from 1800 s",
          Arm("CUT", burst=BURST, cut=Cut(_FROM_S, 1.1))),
    Trial("Arrivals cut to 0.5", "half of lambda_ref from 1800 s",
          Arm("CUT_DEEP", burst=BURST, cut=Cut(_FROM_S, 0.5))),
    Trial("Pool twice as large", "600,000 tokens from the start", Arm("POOL2", burst=BURST), 2),
    Trial("Pool six times as large", "1,800,000 tokens from the start", Arm("POOL6", burst=BURST), 6),
    Trial("Contexts pinned for 10 s", "none is evicted in the first 10 s of its tool call",
          Arm("PINNED", burst=BURST, engine=EnginePolicy(pin_s=10))),
    Trial("Least served first", "the queue's order is least attained service",
          Arm("LEAST_SERVICE", burst=BURST, engine=EnginePolicy(order="least-attained-service"))),
    Trial("Longest wait evicted", "an oracle that knows each tool call's end",
          Arm("ORACLE", burst=BURST, engine=EnginePolicy(eviction="longest-wait"))),
)  # fmt: skip


def evidence_row(trial: Trial, readings: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The row of one exit: of how many seeds freed, lowest and highest hit fraction and
    sessions at the engine over the last 600 s, sessions refused.
    """
    found = list(readings)
    hits = [row["followup_hit_fraction"] for row in found]
    outstanding = [row["outstanding"] for row in found]
    refused = [row["refused"] for row in found]
    return {
        "name": trial.name,
        "words": trial.words,
        "freed": sum(hit is not None and hit >= FREED_HIT for hit in hits),
        "seeds": len(found),
        "hits": _range([hit for hit in hits if hit is not None]),
        "outstanding": _range(outstanding),
        "refused": _range(refused),
    }


def _range(values: list[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:,.3g}" if low == high else f"{low:,.3g} to {high:,.3g}"
