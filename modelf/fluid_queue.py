"""The queue of the fluid server: one orbit, cycle after cycle.

The scheme is told in `modelf.fluid`. All here is on the server's clock, on
which it does one second of work a second while anything is pending.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelf.fluid_inflow import Entry
from modelf.fluid_inputs import Vector
from modelf.fluid_knots import Knots, Places

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
    """The knots so far, and the bends, those of them still to complete at
    which a slope changes. `least`: how long what enters an empty queue at a
    load above 1 waits; and the shortest cycle followed at a load of 0.99 to
    1, where a short queue would else cycle without end: it is taken for empty.
    """

    def __init__(self, entry: Entry, nodes: Nodes, least: float) -> None:
        self._entry, self._nodes, self._least = entry, nodes, least
        self.knots = Knots(entry)
        self._bends: Places = np.array([self.knots.last])

    def run(self) -> Knots:
        """All knots from the first node to the last."""
        nodes, knots = self._nodes, self.knots
        overloaded = np.append(np.flatnonzero(nodes.load > _LEVEL), len(nodes.clock))
        due = 1
        while due < len(nodes.clock):
            load, now = float(nodes.load[due]), float(knots.clock[knots.last])
            pending = float(knots.work_joined[knots.last] - knots.work_served[knots.last])
            ahead = float(nodes.clock[due]) - now
            empty = pending <= (self._least if 0.99 < load <= _LEVEL else _dust(now))
            if empty and ahead > 0 and load <= _LEVEL:
                end = int(overloaded[np.searchsorted(overloaded, due)])
                self._idle(nodes.clock[due:end], nodes.origin[due:end])
                due = end
            elif empty and ahead > 0:
                self._wait(now + min(self._least, ahead / 2))
            elif ahead > pending and self._drain(due, ahead):
                continue
            else:
                due = self._cycle(due, now, pending)
        return knots

    def _entering(self, clock: Vector) -> Vector:
        return np.asarray(np.interp(clock, self._nodes.clock, self._nodes.origin))

    def _idle(self, clock: Vector, entering: Vector) -> None:
        """Nothing waits at these knots: all that entered is served."""
        everywhere = np.repeat(entering[:, None], self.knots.origins.shape[1], axis=1)
        self.knots.add(clock, everywhere, None)
        self._bends = np.array([self.knots.last])

    def _wait(self, until: float) -> None:
        """A knot up to which what enters waits, the server idle."""
        knots, clock = self.knots, np.array([until])
        origins = knots.origins[knots.last : knots.size].copy()
        origins[:, 0] = self._entering(clock)
        knots.add(clock, origins, knots.work_served[knots.last : knots.size])
        self._bends = np.array([knots.last])

    def _drain(self, due: int, ahead: float) -> bool:
        """Whether all work ends before node `due`; if so, a knot there."""
        knots, load = self.knots, float(self._nodes.load[due])
        left = float(self._entry.work(knots.origins[knots.last, :1])[0] - knots.work_served[knots.last])
        if load >= 1 or left > ahead * (1 - load):
            return False
        clock = np.array([knots.clock[knots.last] + max(left, 0.0) / (1 - load)])
        self._idle(clock, self._entering(clock))
        return True

    def _cycle(self, due: int, now: float, pending: float) -> int:
        """Knots at the nodes by which what is pending completes, and where
        the bends among it do; the next node due.
        """
        nodes = self._nodes
        end = max(due, int(np.searchsorted(nodes.clock, now + pending, side="right")))
        if nodes.clock[due] <= now:
            end = max(end, due + 1)
        bends, images = self._images(now, float(nodes.clock[-1]))
        if end == due and not (images > now + _dust(now)).any():
            bends, images = np.array([self.knots.last]), np.array([now + pending])
        clock = np.concatenate([nodes.clock[due:end], images])
        # At a point mass of this very time, what entered before it has done so.
        entered = np.maximum(self._entering(images), self.knots.origins[self.knots.last, 0])
        entering = np.concatenate([nodes.origin[due:end], entered])
        source = np.concatenate([np.full(end - due, -1), bends])
        order = np.lexsort((entering, clock))
        bent = np.concatenate([nodes.bend[due:end], np.ones(len(images), dtype=bool)])[order]
        first = self.knots.size
        self.knots.add_busy(clock[order], entering[order], source[order])
        self._bends = first + np.flatnonzero(bent)
        return end

    def _images(self, now: float, until: float) -> tuple[Places, Vector]:
        """Bends still to complete, and when they do. Of those that complete
        at one time the first and the last: what enters between has no mass.
        """
        images = now + (self.knots.work_joined[self._bends] - self.knots.work_served[self.knots.last])
        apart = np.ones(len(images) + 1, dtype=bool)
        apart[1:-1] = images[1:] - images[:-1] > _dust(now)
        kept = (apart[:-1] | apart[1:]) & (images < until)
        return self._bends[kept], images[kept]
