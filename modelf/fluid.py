"""The FIFO fluid server of model F, on which every turn misses.

Source: the paper's "A Renewal Recursion along FIFO Orbits": what joins at t
completes at t + V(t), V the pending work, and rejoins at once as its next
turn. Hence what joins as turn k + 1 at t' joined as turn k at the t with
t + V(t) = t', and the mass of turn k joined by t' is what entered by the
(k - 1)-fold pull-back of t' and has a turn k.

The scheme carries these pull-backs ("origins", one a generation), not masses.
While the server is busy, the work it has served is known at any time; looked
up in the work joined, it says when what now completes has joined, and so
gives all origins. Everything joined in one cycle completes in the next, so a
whole cycle of times is one array operation. All inputs being piecewise
constant, V and the origins are piecewise linear, with bends at changes of
the inputs and where these complete, cycle after cycle. Bends are knots, hence
linear interpolation is exact, and the step sets only how densely the orbit is
told, with three exceptions, first order in the step: where all work ends
within a step, what is left of that step is told as one line (the time of
emptying is exact); what enters an empty server at a load above 1 waits 1/256
step, which gives the positive work (F6) asks for; at a load of 0.99 to 1 a
cycle shorter than that is taken for empty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from modelf.fluid_inflow import Entry, Inflow, rated_inflow, session_inflow
from modelf.fluid_inputs import RatedArrivals, Scenario, Vector
from modelf.fluid_knots import Knots
from modelf.fluid_queue import FluidQueue, Nodes
from modelf.turn_law import TurnLaw, survivals

MAX_STEPS = 2_000_000
"""More grid steps than this are refused: origins take K floats a step."""


@dataclass(frozen=True)
class FluidOrbit:
    """A run of the fluid server at its knots: every `step_s`, every change of
    the inputs (twice where mass arrives at once: before and after), and more
    where cycles are shorter. n knots, K turn classes; masses in sessions.

    `time_s` (n,): ascending. `gap_s` (n,): V, seconds until what joins now
    completes. `pending_work_s`, `remaining_work_s` (n,): GPU seconds at speed
    1 of the requests queued, and W, of all turns still to come of the
    sessions present. `present`, `entered`, `completed` (n,): sessions, those
    that were present at the start among the entered. `joined`, `served`
    (n, K): turns k joined and served since the start. `joined_at_s` (n,):
    when what completes now joined; now, while nothing is pending.
    """

    time_s: Vector
    gap_s: Vector
    pending_work_s: Vector
    remaining_work_s: Vector
    present: Vector
    entered: Vector
    completed: Vector
    joined: Vector
    served: Vector
    joined_at_s: Vector

    def emptied_at(self, after_s: float) -> float | None:
        """The first time from `after_s` on with nothing pending; None where
        that is never before the end.
        """
        empty = np.flatnonzero((self.pending_work_s <= 0) & (self.time_s >= after_s))
        return float(self.time_s[empty[0]]) if empty.size else None

    def lowest_present(self, after_s: float) -> tuple[float, float]:
        """Time and value of the fewest sessions present from `after_s` on."""
        later = np.flatnonzero(self.time_s >= after_s)
        if not later.size:
            raise ValueError(f"the orbit ends at {self.time_s[-1]:g} s, before {after_s:g} s")
        lowest = later[np.argmin(self.present[later])]
        return float(self.time_s[lowest]), float(self.present[lowest])


def fluid_orbit(
    turns: TurnLaw, turn_costs: Vector, scenario: Scenario, until_s: float, step_s: float = 1.0
) -> FluidOrbit:
    """The orbit from the scenario's start to `until_s`.

    `turn_costs`: c_k, GPU seconds of turn k at speed 1 when it misses, shape
    (max_turns,). ValueError where the inputs do not fit together.
    """
    costs = _checked_costs(turns, turn_costs)
    since_s = scenario.start.at_s
    if not (math.isfinite(until_s) and until_s > since_s):
        raise ValueError(f"the end, {until_s} s, must be finite and after the start, {since_s} s")
    if not (math.isfinite(step_s) and step_s > 0):
        raise ValueError(f"the step must be finite and positive, not {step_s} s")
    if (until_s - since_s) / step_s > MAX_STEPS:
        raise ValueError(f"more than {MAX_STEPS} steps of {step_s} s from {since_s} s to {until_s} s")
    survival = np.asarray(survivals(turns))
    inflow: Inflow
    if isinstance(scenario.arrivals, RatedArrivals):
        inflow = rated_inflow(scenario.arrivals, survival, since_s, until_s)
    else:
        inflow = session_inflow(scenario.arrivals, turns.max_turns, since_s, until_s)
    entry = Entry(inflow, costs, _generations(scenario.start.pending, survival))
    changes = [change for change in scenario.speed.changes_s if since_s < change < until_s]
    times, origins = inflow.nodes(np.concatenate([np.arange(since_s, until_s, step_s), changes]))
    bend = np.isin(times, np.concatenate([inflow.time_s, changes]))
    nodes = Nodes.at(scenario.speed.integral(since_s, times), origins, bend, entry.work(origins))
    return _orbit(FluidQueue(entry, nodes, least=step_s / 256).run(), entry, scenario)


def _checked_costs(turns: TurnLaw, turn_costs: Vector) -> Vector:
    costs = np.asarray(turn_costs, dtype=np.float64)
    if costs.shape != (turns.max_turns,):
        raise ValueError(f"turn costs of shape {costs.shape}, but the turn law has {turns.max_turns} turns")
    if not (np.isfinite(costs).all() and (costs > 0).all()):
        raise ValueError("turn costs must be finite and positive")
    return costs


def _generations(pending: tuple[float, ...], survival: Vector) -> Vector:
    """What the mass pending at the start joins as: row g, column k - 1 after g
    passes as turn k; shape (K, K).
    """
    size = len(survival)
    if len(pending) > size:
        raise ValueError(f"{len(pending)} pending masses, but the turn law has {size} turns")
    rows = np.zeros((size, size))
    rows[0, : len(pending)] = pending
    for passes in range(1, size):
        rows[passes, 1:] = rows[passes - 1, :-1] * (survival[1:] / survival[:-1])
    return rows


def _orbit(knots: Knots, entry: Entry, scenario: Scenario) -> FluidOrbit:
    since_s, speed = scenario.start.at_s, scenario.speed
    kept = slice(1, knots.size)
    clock, origin, joined, served = knots.clock[kept], knots.origins[kept, 0], knots.joined[kept], knots.served[kept]
    work_joined, work_served = knots.work_joined[kept], knots.work_served[kept]
    time_s = speed.when(since_s, clock)
    present = joined.sum(axis=1) - served.sum(axis=1)
    entered = entry.sessions(origin)
    return FluidOrbit(
        time_s=time_s,
        gap_s=speed.when(since_s, clock + work_joined - work_served) - time_s,
        pending_work_s=work_joined - work_served,
        remaining_work_s=entry.work(origin) - work_served,
        present=present,
        entered=entered,
        completed=entered - present,
        joined=joined,
        served=served,
        joined_at_s=np.minimum(np.interp(work_served, work_joined, time_s), time_s),
    )
