"""What drives the fluid server of model F: arrivals, pulses, speed, a start.

Times are seconds on one clock of the caller's choosing; masses are sessions.
Source: the paper's assumptions (F1)-(F6) and its Table 3 (a constant rate, a
burst spread over 60 s, a cut to another rate).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from modelf.turn_law import TurnLaw, mean_turns, survivals

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class PiecewiseConstant:
    """`values[i]` from `changes_s[i - 1]` until `changes_s[i]`, the first from
    ever, the last for ever; one value more than changes.
    """

    values: tuple[float, ...]
    changes_s: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.values) != len(self.changes_s) + 1:
            raise ValueError(f"{len(self.changes_s)} changes need one value more, not {len(self.values)}")
        if not all(math.isfinite(value) and value >= 0 for value in self.values):
            raise ValueError(f"values must be finite and not negative: {self.values}")
        if not all(math.isfinite(change) for change in self.changes_s):
            raise ValueError(f"times of change must be finite: {self.changes_s}")
        if any(later <= earlier for earlier, later in zip(self.changes_s, self.changes_s[1:], strict=False)):
            raise ValueError(f"times of change must ascend: {self.changes_s}")

    def at(self, time_s: Vector) -> Vector:
        """The value from each time on, same shape as `time_s`."""
        return np.asarray(self.values)[np.searchsorted(self.changes_s, time_s, side="right")]

    def integral(self, since_s: float, time_s: Vector) -> Vector:
        """Integral from `since_s` to each time, same shape as `time_s`."""
        edges = np.array([-np.inf, *self.changes_s, np.inf])
        total = np.zeros(np.shape(time_s))
        for value, low, high in zip(self.values, edges, edges[1:], strict=False):
            total += value * (np.clip(time_s, low, high) - min(max(since_s, low), high))
        return total

    def when(self, since_s: float, integral: Vector) -> Vector:
        """The times at which the integral from `since_s` reaches each value of
        `integral`, none negative; every value of the function is positive.
        """
        knots = np.array([since_s, *(change for change in self.changes_s if change > since_s)])
        reached = self.integral(since_s, knots)
        beyond = np.maximum(integral - reached[-1], 0.0) / self.values[-1]
        return np.asarray(np.interp(integral, reached, knots) + beyond)


@dataclass(frozen=True)
class Pulse:
    """`sessions` arriving evenly over [start_s, start_s + spread_s); at once,
    a point mass, where `spread_s` is 0.
    """

    sessions: float
    start_s: float
    spread_s: float = 0.0

    def __post_init__(self) -> None:
        if not all(math.isfinite(value) for value in (self.sessions, self.start_s, self.spread_s)):
            raise ValueError("a pulse needs finite sessions, start and spread")
        if self.sessions < 0 or self.spread_s < 0:
            raise ValueError("a pulse's sessions and spread must not be negative")


@dataclass(frozen=True)
class RatedArrivals:
    """New sessions at `rate` a second, and `pulses` besides; turn counts
    follow the turn law, as fractions of mass.
    """

    rate: PiecewiseConstant
    pulses: tuple[Pulse, ...] = ()


@dataclass(frozen=True)
class SessionArrivals:
    """A run's own sessions, each a unit mass with its own turn count.

    `arrival_us`: ascending integer microseconds, as plans hold them; `turns`:
    one count a session.
    """

    arrival_us: tuple[int, ...]
    turns: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.arrival_us) != len(self.turns):
            raise ValueError(f"{len(self.arrival_us)} arrivals, but {len(self.turns)} turn counts")
        if any(later < earlier for earlier, later in zip(self.arrival_us, self.arrival_us[1:], strict=False)):
            raise ValueError("arrivals must ascend")
        if self.turns and min(self.turns) < 1:
            raise ValueError("every session has at least one turn")


@dataclass(frozen=True)
class Start:
    """The state at `at_s`, from which on every turn misses: `pending[k - 1]`
    sessions wait with turn k, evenly mixed in the queue.

    Arrivals before `at_s` are left out; what is left of them is `pending`.
    """

    at_s: float
    pending: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not math.isfinite(self.at_s):
            raise ValueError("the start needs a finite time")
        if not all(math.isfinite(mass) and mass >= 0 for mass in self.pending):
            raise ValueError("pending masses must be finite and not negative")


def stationary_start(turns: TurnLaw, at_s: float, sessions: float) -> Start:
    """`sessions` present in the stationary turn mix, S_k / E[T] each."""
    return Start(at_s, tuple(sessions * survival / mean_turns(turns) for survival in survivals(turns)))


@dataclass(frozen=True)
class Scenario:
    """Start, arrivals, and the server's speed (1 is the speed at which turn
    costs hold; a slowdown is a smaller one).
    """

    start: Start
    arrivals: RatedArrivals | SessionArrivals
    speed: PiecewiseConstant = field(default=PiecewiseConstant((1.0,)))

    def __post_init__(self) -> None:
        if min(self.speed.values) <= 0:
            raise ValueError("the server's speed must be positive at all times")
