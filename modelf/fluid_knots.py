"""The knots of a fluid orbit so far, and what completes when.

Times are on the server's clock, on which it does one second of work a second
while anything is pending.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from modelf.fluid_inflow import Entry
from modelf.fluid_inputs import Vector

Places = NDArray[np.intp]


class Knots:
    """`size` knots in arrays with room for more; K turn classes.

    `clock`, `work_joined`, `work_served` (n,): seconds. `origins` (n, K + 1):
    in column g the origin of what joins there after g passes; it is also that
    of what completes there as generation g - 1. `joined`, `served` (n, K):
    mass by turn since the start. The first knot has nothing, not even what
    is pending at the start; the second has that.
    """

    def __init__(self, entry: Entry) -> None:
        self._entry, self.size, self._tail = entry, 0, 0
        turns = len(entry.turn_costs)
        self.clock, self.work_joined, self.work_served = np.empty(0), np.empty(0), np.empty(0)
        self.origins, self.joined, self.served = (np.empty((0, width)) for width in (turns + 1, turns, turns))
        self.add(np.zeros(1), np.zeros((1, turns + 1)), np.zeros(1))
        self.add(np.zeros(1), np.eye(1, turns + 1), np.zeros(1))

    @property
    def last(self) -> int:
        """The place of the last knot."""
        return self.size - 1

    def add(self, clock: Vector, origins: Vector, work_served: Vector | None) -> None:
        """New knots; `work_served` None: all that has joined."""
        first, end = self.size, self.size + len(clock)
        self._make_room(end)
        joined = self._entry.masses(origins[:, :-1])
        work = joined @ self._entry.turn_costs
        if first:
            # Rounding must not unsort the work that later knots look up.
            work = np.maximum.accumulate(np.maximum(work, self.work_joined[first - 1]))
        self.clock[first:end], self.origins[first:end] = clock, origins
        self.joined[first:end], self.served[first:end] = joined, self._entry.masses(origins[:, 1:])
        self.work_joined[first:end] = work
        self.work_served[first:end] = work if work_served is None else work_served
        self.size = end

    def add_busy(self, clock: Vector, entering: Vector, source: Places) -> None:
        """Knots by which all that completes has joined before the first of
        them: at the knot `source` exactly, or, where that is -1, in between
        two knots. `entering`: origins of new sessions there.
        """
        last = self.last
        work = np.maximum(clock - self.clock[last], 0.0)
        served = np.minimum(self.work_served[last] + work, self.work_joined[last])
        earlier = self.work_joined[self._tail : self.size]
        after = np.clip(np.searchsorted(earlier, served, side="right"), 1, len(earlier) - 1)
        low, high = earlier[after - 1], earlier[after]
        share = np.divide(served - low, high - low, out=np.ones_like(served), where=high > low)
        after += self._tail
        known = source >= 0
        after[known], share[known], served[known] = source[known], 1.0, self.work_joined[source[known]]
        before = self.origins[after - 1, :-1]
        origins = np.empty((len(clock), self.origins.shape[1]))
        origins[:, 0] = entering
        origins[:, 1:] = before + share[:, None] * (self.origins[after, :-1] - before)
        self._tail = int(after[-1]) - 1
        self.add(clock, origins, np.maximum.accumulate(served))

    def _make_room(self, end: int) -> None:
        if end <= len(self.clock):
            return
        for name in ("clock", "work_joined", "work_served", "origins", "joined", "served"):
            kept = getattr(self, name)[: self.size]
            wider = np.empty((max(2 * end, 1024), *kept.shape[1:]))
            wider[: self.size] = kept
            setattr(self, name, wider)
