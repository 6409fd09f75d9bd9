"""The queue of the fluid server: knots of one orbit, cycle after cycle.

The scheme is told in `modelf.fluid`. All here is on the server's clock, on
which it does one second of work a second while anything is pending.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelf.fluid_inflow import Inflow
from modelf.fluid_inputs import Vector

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Nodes:
    """Where knots are wanted: clock times, ascending, and the origin of what
    enters there; shape (n,). `bend`: whether a rate changes there. `load[i]`:
    the work that enters between nodes i - 1 and i, with all turns to come,
    per second; inf at a point mass.
    """

    clock: Vector
    origin: Vector
    bend: Flags
    load: Vector

    @classmethod
    def at(cls, clock: Vector, origin: Vector, bend: Flags, work_entered: Vector) -> Nodes:
        """Nodes with the loads that follow from the work entered by each."""
        gaps, work = np.diff(clock), np.diff(work_entered)
        load = np.divide(work, gaps, out=np.where(work > 0, np.inf, 0.0), where=gaps > 0)
        return cls(clock, origin, bend, np.concatenate([[0.0], load]))


_LEVEL = 1 + 1e-12


def _dust(now: float) -> float:
    """Seconds too few to matter beside the rounding of the clock."""
    return 1e-11 + 64 * float(np.spacing(now))


class FluidQueue:
    """Knots (clock, origins by generation, work joined, work served) so far,
    and the bends, those of them still to complete at which a slope changes.

    `origins[i, g]`: the origin of what joins at knot i after g passes; what
    completes there as generation g is `origins[i, g + 1]`. `pending[g, k]`:
    the start's mass that joins after g passes as turn k + 1; its origins are
    0 to 1.
    """

    def __init__(self, inflow: Inflow, turn_costs: Vector, pending: Vector) -> None:
        self._inflow, self._costs = inflow, turn_costs
        self._pending, self._pending_mass = pending, pending.sum(axis=1)
        self._pending_work = float(pending.sum(axis=0) @ turn_costs)
        self._entry_work = inflow.work_entered(turn_costs)
        self._size = self._tail = 0
        self._bends = np.array([1])
        self._clock, self._joined, self._served = np.empty(0), np.empty(0), np.empty(0)
        self._origins = np.empty((0, len(turn_costs) + 1))

    def joined(self, origins: Vector) -> Vector:
        """Mass joined by turn, shape (n, K), for the origins of what has
        joined after 0 .. K - 1 passes.
        """
        masses = self._inflow.reaching(origins)
        if self._pending_mass[0]:
            masses += np.clip(origins, 0.0, 1.0) @ self._pending
        return masses

    def entered(self, origin: Vector) -> Vector:
        """Sessions entered by each origin, those of the start among them."""
        return self._curve(origin, self._inflow.entered, self._pending_mass[0])

    def work_entered(self, origin: Vector) -> Vector:
        """Work of all turns of the sessions entered by each origin."""
        return self._curve(origin, self._entry_work, self._pending_work)

    def knots(self) -> tuple[Vector, Vector, Vector, Vector]:
        """Clock (n,), origins (n, K + 1), work joined and work served (n,)."""
        kept = slice(1, self._size)
        return self._clock[kept], self._origins[kept], self._joined[kept], self._served[kept]

    def run(self, nodes: Nodes, least: float) -> None:
        """All knots from the first node to the last. `least`: how long what
        enters an empty queue at a load above 1 waits; and the shortest cycle
        followed at a load of 0.99 to 1, where a short queue would else cycle
        without end: it is taken for empty.
        """
        turns = len(self._costs)
        self._append(np.zeros(1), np.zeros((1, turns + 1)), np.zeros(1))
        self._append(np.zeros(1), np.eye(1, turns + 1), np.zeros(1))
        overloaded = np.flatnonzero(nodes.load > _LEVEL)
        due = 1
        while due < len(nodes.clock):
            last, load = self._size - 1, float(nodes.load[due])
            now, pending = float(self._clock[last]), float(self._joined[last] - self._served[last])
            ahead = float(nodes.clock[due]) - now
            empty = pending <= (least if 0.99 < load <= _LEVEL else _dust(now))
            if empty and ahead > 0 and load <= _LEVEL:
                place = int(np.searchsorted(overloaded, due))
                end = int(overloaded[place]) if place < len(overloaded) else len(nodes.clock)
                self._idle(nodes.clock[due:end], nodes.origin[due:end])
                due = end
            elif empty and ahead > 0:
                self._wait(nodes, now + min(least, ahead / 2))
            elif ahead > pending and self._drain(nodes, due):
                continue
            else:
                due = self._cycle(nodes, due, now, pending)

    def _curve(self, origin: Vector, arrived: Vector, pending: float) -> Vector:
        mass = np.interp(origin, self._inflow.origin, arrived)
        return np.asarray(mass + np.clip(origin, 0.0, 1.0) * pending)

    def _wait(self, nodes: Nodes, until: float) -> None:
        clock = np.array([until])
        self._busy(clock, np.interp(clock, nodes.clock, nodes.origin), still=True)
        self._bends = np.array([self._size - 1])

    def _drain(self, nodes: Nodes, due: int) -> bool:
        """Whether all work ends before node `due`; if so, a knot there."""
        last, load = self._size - 1, float(nodes.load[due])
        now = float(self._clock[last])
        left = float(self.work_entered(self._origins[last, :1])[0] - self._served[last])
        if load >= 1 or left > (float(nodes.clock[due]) - now) * (1 - load):
            return False
        clock = np.array([now + max(left, 0.0) / (1 - load)])
        self._idle(clock, np.interp(clock, nodes.clock, nodes.origin))
        return True

    def _cycle(self, nodes: Nodes, due: int, now: float, pending: float) -> int:
        """Knots at the nodes by which what is pending completes, and where
        the bends among it do; the next node due.
        """
        end = max(due, int(np.searchsorted(nodes.clock, now + pending, side="right")))
        if nodes.clock[due] <= now:
            end = max(end, due + 1)
        images = now + self._joined[self._bends] - self._served[self._size - 1]
        images = images[(np.diff(images, prepend=now) > _dust(now)) & (images < nodes.clock[-1])]
        if end == due and not images.size:
            images = np.array([now + pending])
        clock = np.concatenate([nodes.clock[due:end], images])
        entering = np.interp(images, nodes.clock, nodes.origin)
        origin = np.concatenate([nodes.origin[due:end], entering])
        bend = np.concatenate([nodes.bend[due:end], np.ones(len(images), dtype=bool)])
        order = np.lexsort((origin, clock))
        first = self._size
        self._busy(clock[order], origin[order])
        self._bends = first + np.flatnonzero(bend[order])
        return end

    def _idle(self, clock: Vector, origin: Vector) -> None:
        """Nothing waits at these knots: all that entered is served."""
        everywhere = np.repeat(origin[:, None], len(self._costs) + 1, axis=1)
        self._append(clock, everywhere, None)
        self._bends = np.array([self._size - 1])

    def _busy(self, clock: Vector, origin: Vector, still: bool = False) -> None:
        """Knots of one cycle: what completes by them has joined before;
        `still`: the server does not work meanwhile.
        """
        last = self._size - 1
        work = np.zeros_like(clock) if still else np.maximum(clock - self._clock[last], 0.0)
        served = np.minimum(self._served[last] + work, self._joined[last])
        joined = self._joined[self._tail : self._size]
        after = np.clip(np.searchsorted(joined, served, side="right"), 1, len(joined) - 1)
        low, high = joined[after - 1], joined[after]
        share = np.divide(served - low, high - low, out=np.ones_like(served), where=high > low)
        after += self._tail
        before = self._origins[after - 1, :-1]
        origins = np.empty((len(clock), len(self._costs) + 1))
        origins[:, 0] = origin
        origins[:, 1:] = before + share[:, None] * (self._origins[after, :-1] - before)
        self._tail = int(after[-1]) - 1
        self._append(clock, origins, served)

    def _append(self, clock: Vector, origins: Vector, served: Vector | None) -> None:
        """New knots; served None: all that has joined."""
        end = self._size + len(clock)
        if end > len(self._clock):
            room = max(2 * end, 1024)
            self._clock, self._joined, self._served = (
                np.concatenate([kept[: self._size], np.empty(room - self._size)])
                for kept in (self._clock, self._joined, self._served)
            )
            self._origins = np.concatenate(
                [self._origins[: self._size], np.empty((room - self._size, origins.shape[1]))]
            )
        joined = self.joined(origins[:, :-1]) @ self._costs
        if self._size:
            # Rounding must not unsort the work that later knots look up.
            joined = np.maximum.accumulate(np.maximum(joined, self._joined[self._size - 1]))
        new = slice(self._size, end)
        self._clock[new], self._origins[new], self._joined[new] = clock, origins, joined
        self._served[new] = joined if served is None else served
        self._size = end
