"""Arrivals as curves over one origin coordinate, for the fluid server.

Every bit of mass keeps the origin it entered with, a number that ascends in
order of entry: [0, 1] for the mass pending at the start; then one a second
and one a point mass (rated arrivals), or one a session (a run's own). Point
masses have length in it, so that curves over it are continuous.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modelf.fluid_inputs import RatedArrivals, SessionArrivals, Vector


@dataclass(frozen=True)
class EntryPath:
    """`time_s`, `origin`: knots of the entry path, shape (n,), both ascending
    (times repeat at point masses); linear between them.

    `entered`: sessions entered by each knot, shape (n,), 0 at the first.
    """

    time_s: Vector
    origin: Vector
    entered: Vector

    def nodes(self, times_s: Vector) -> tuple[Vector, Vector]:
        """Times and origins of the knots and of `times_s`, merged."""
        between = np.setdiff1d(times_s, self.time_s)
        times = np.concatenate([self.time_s, between])
        origins = np.concatenate([self.origin, np.interp(between, self.time_s, self.origin)])
        order = np.lexsort((origins, times))
        return times[order], origins[order]


@dataclass(frozen=True)
class RatedInflow(EntryPath):
    """Turn counts by the law: a fraction `survival[k - 1]` has a turn k."""

    survival: Vector

    def reaching(self, origins: Vector) -> Vector:
        """Sessions entered since the start by `origins[:, k - 1]` that have a
        turn k, for origins of shape (n, K).
        """
        masses = np.interp(origins.ravel(), self.origin, self.entered).reshape(origins.shape)
        masses *= self.survival
        return masses

    def work_entered(self, turn_costs: Vector) -> Vector:
        """All-miss work of all turns of the sessions entered by each knot."""
        return self.entered * float(self.survival @ turn_costs)


@dataclass(frozen=True)
class SessionInflow(EntryPath):
    """Turn counts of a run: `reached[i, k - 1]` of the first i sessions have a
    turn k; the last row stands twice.
    """

    reached: Vector

    def reaching(self, origins: Vector) -> Vector:
        """As `RatedInflow.reaching`."""
        counts = np.clip(origins - 1.0, 0.0, len(self.reached) - 2)
        whole = counts.astype(np.intp)
        columns = np.arange(origins.shape[1])
        before = self.reached[whole, columns]
        counts -= whole
        return before + counts * (self.reached[whole + 1, columns] - before)

    def work_entered(self, turn_costs: Vector) -> Vector:
        """As `RatedInflow.work_entered`."""
        work: Vector = self.reached[self.entered.astype(np.intp)] @ turn_costs
        return work


Inflow = RatedInflow | SessionInflow


class Entry:
    """All mass by origin: what is pending at the start (0 to 1), then the
    inflow. `pending[g, k - 1]`: the start's mass that joins after g passes as
    turn k, shape (K, K).
    """

    def __init__(self, inflow: Inflow, turn_costs: Vector, pending: Vector) -> None:
        self.inflow, self.turn_costs, self._pending = inflow, turn_costs, pending
        self._passed = np.concatenate([np.zeros((1, len(pending))), np.cumsum(pending, axis=0)])
        self._work = inflow.work_entered(turn_costs)

    def masses(self, origins: Vector) -> Vector:
        """Mass by turn, shape (n, K), of what has `origins` at most,
        generation by generation; shape (n, K), ascending down each column.
        """
        found = self.inflow.reaching(origins)
        # Origins fall along a row, so all but a few generations are wholly in or out.
        whole, begun = int(np.sum(origins[0] >= 1)), int(np.sum(origins[-1] > 0))
        found += self._passed[whole]
        for passes in range(whole, begun):
            found += np.clip(origins[:, passes, None], 0.0, 1.0) * self._pending[passes]
        return found

    def sessions(self, origin: Vector) -> Vector:
        """Sessions entered by each origin."""
        arrived = np.interp(origin, self.inflow.origin, self.inflow.entered)
        return np.asarray(arrived + np.clip(origin, 0.0, 1.0) * self._pending[0].sum())

    def work(self, origin: Vector) -> Vector:
        """Work of all turns of the sessions entered by each origin."""
        arrived = np.interp(origin, self.inflow.origin, self._work)
        return np.asarray(arrived + np.clip(origin, 0.0, 1.0) * float(self._passed[-1] @ self.turn_costs))


def rated_inflow(arrivals: RatedArrivals, survival: Vector, start_s: float, until_s: float) -> RatedInflow:
    """The entry path of rated arrivals over [start_s, until_s]."""
    spread = [pulse for pulse in arrivals.pulses if pulse.spread_s > 0]
    edges = {*arrivals.rate.changes_s, *(p.start_s for p in arrivals.pulses), *(p.start_s + p.spread_s for p in spread)}
    times = np.array(sorted({start_s, until_s} | {edge for edge in edges if start_s < edge < until_s}))
    entered = arrivals.rate.integral(start_s, times)
    for pulse in spread:
        share = np.clip((np.append(times, start_s) - pulse.start_s) / pulse.spread_s, 0.0, 1.0)
        entered += pulse.sessions * (share[:-1] - share[-1])
    points = [(p.start_s, p.sessions) for p in arrivals.pulses if p.spread_s == 0 and start_s <= p.start_s < until_s]
    at = np.array([time for time, _ in points], dtype=np.float64)
    mass = np.array([sessions for _, sessions in points], dtype=np.float64)
    order = np.argsort(at, kind="stable")
    at, total = at[order], np.concatenate([[0.0], np.cumsum(mass[order])])
    # Each knot stands once before the point masses of its time, and once after.
    before, after = np.searchsorted(at, times, side="left"), np.searchsorted(at, times, side="right")
    count = np.stack([before, after], axis=1).ravel()
    return RatedInflow(
        time_s=np.repeat(times, 2),
        origin=1.0 + np.repeat(times - start_s, 2) + count,
        entered=np.repeat(entered, 2) + total[count],
        survival=survival,
    )


def session_inflow(arrivals: SessionArrivals, max_turns: int, start_s: float, until_s: float) -> SessionInflow:
    """The entry path of a run's own sessions over [start_s, until_s]."""
    times = np.asarray(arrivals.arrival_us, dtype=np.float64) / 1e6
    turns = np.asarray(arrivals.turns, dtype=np.int64)
    if turns.size and turns.max() > max_turns:
        raise ValueError(f"a session has {turns.max()} turns, the turn law at most {max_turns}")
    kept = (times >= start_s) & (times < until_s)
    times, turns = times[kept], turns[kept]
    reached = np.zeros((len(turns) + 2, max_turns))
    reached[1:-1] = np.cumsum(turns[:, None] > np.arange(max_turns), axis=0)
    reached[-1] = reached[-2]
    counts = np.repeat(np.arange(len(turns) + 1, dtype=np.float64), 2)
    return SessionInflow(
        time_s=np.concatenate([[start_s], np.repeat(times, 2), [until_s]]),
        origin=1.0 + counts,
        entered=counts,
        reached=reached,
    )
