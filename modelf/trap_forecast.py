"""Will a plan trap the engine? A forecast from first principles.

It compares two numbers. How many sessions a *good* engine would hold at most:
every follow-up hits and nobody queues, so a session lasts its service and its
tool calls. And the onset n_on, the fewest sessions at which the all-miss state
can exist. It says "traps" if that peak reaches the onset while arrivals exceed
the all-miss capacity, below which every trap drains. It knows nothing of chance
on the way into the trap: a peak just above the onset may come and go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from modelf.cells import StepCosts
from modelf.closed_population import onset_sessions
from modelf.first_principles import Vector, all_miss_capacity, prefill_costs
from modelf.workload import Workload


@dataclass(frozen=True)
class PlannedSession:
    """When a session arrives, and its tool time after each turn but the last;
    seconds.
    """

    arrival_s: float
    tool_s: tuple[float, ...]


@dataclass(frozen=True)
class TrapForecast:
    """`traps`, and what it rests on: sessions and sessions/s."""

    peak_sessions: int
    onset_sessions: float
    lambda_miss_per_s: float
    arrivals_per_s: float

    @property
    def traps(self) -> bool:
        """The peak reaches the onset, and the trap would not drain."""
        return self.peak_sessions >= self.onset_sessions and self.arrivals_per_s > self.lambda_miss_per_s


def forecast(
    costs: StepCosts,
    workload: Workload,
    pool_tokens: float,
    sessions: Iterable[PlannedSession],
    arrivals_per_s: float,
    slowdown_s: Callable[[float], float] = lambda _: 0.0,
) -> TrapForecast:
    """The forecast for planned sessions; `arrivals_per_s` is what goes on
    arriving at the end, `slowdown_s` the time added to a tool call by its start.
    """
    lambda_miss = all_miss_capacity(costs, workload, pool_tokens)
    onset = onset_sessions(workload, pool_tokens, lambda_miss)
    peak = peak_when_good(good_service_s(costs, workload), sessions, slowdown_s)
    return TrapForecast(peak, onset, lambda_miss, arrivals_per_s)


def good_service_s(costs: StepCosts, workload: Workload) -> Vector:
    """Seconds of turns 1 .. max_turns on an engine with nothing else to do:
    the prefill of a hit and the decode steps, shape (max_turns,).
    """
    prompts = np.asarray(workload.prompts(), dtype=np.float64)
    kv_tokens = prompts + workload.output_tokens / 2
    decode_s = (workload.output_tokens - 1) * (costs.decode_step_s + costs.decode_kv_token_s * kv_tokens)
    return np.asarray(prefill_costs(costs, workload)[1] + decode_s)


def peak_when_good(
    service_s: Vector, sessions: Iterable[PlannedSession], slowdown_s: Callable[[float], float] = lambda _: 0.0
) -> int:
    """The most sessions present at once if each turn takes its good service;
    one that ends as another arrives has gone.
    """
    steps: list[tuple[float, int]] = []
    for session in sessions:
        now_s = session.arrival_s + float(service_s[0])
        for turn, tool_s in enumerate(session.tool_s, 1):
            now_s += tool_s + slowdown_s(now_s) + float(service_s[turn])
        steps += [(session.arrival_s, 1), (now_s, -1)]
    present = np.cumsum([step for _, step in sorted(steps)])
    return int(present.max(initial=0))
