"""What a registration promises, as frozen dataclasses.

Field names are the YAML keys of a rule file. Loading and checking happen in
`registry.draft`; nothing here reads a file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from modelf.cells import Cell
from modelf.workload import Workload


@dataclass(frozen=True)
class Burst:
    """`sessions` extra sessions, uniform within `spread_s` from `start_s`."""

    sessions: int
    start_s: float
    spread_s: float


@dataclass(frozen=True)
class Adaptation:
    """A cap that moves: additive increase, multiplicative decrease.

    Each `interval_s`: the cap falls to the share `decrease` of itself, not
    below `least_cap`, if fewer than `low_hit` of the follow-ups that finished
    were full hits; else it rises by `increase` if anyone waits.
    """

    interval_s: float
    low_hit: float
    decrease: float
    increase: int
    least_cap: int


@dataclass(frozen=True)
class GateSetting:
    """A FIFO gate at the client, engaged at `engage_s`.

    It admits `cap` sessions (at first, where `adaptation` moves it) or, where
    `cap` is None, sessions whose next turns fill the share `pool_share` of the
    KV pool. It comes off once both its queues have been empty for
    `release_after_s` seconds; None keeps it to the horizon.
    """

    cap: int | None
    engage_s: float
    release_after_s: float | None
    adaptation: Adaptation | None = None
    pool_share: float | None = None


ORDERS = ("fcfs", "least-attained-service")
EVICTIONS = ("lru", "longest-wait")


@dataclass(frozen=True)
class EnginePolicy:
    """What an arm changes inside the engine.

    `order` of the waiting queue: `fcfs` or `least-attained-service` (tokens
    computed for the session so far). `eviction`: `lru`, or `longest-wait`, an
    oracle that evicts the context whose tool call ends last. `pin_s`: for how
    long a context is safe from eviction while its session's tool runs.
    """

    order: str = "fcfs"
    eviction: str = "lru"
    pin_s: float = 0.0


@dataclass(frozen=True)
class Shed:
    """New sessions that arrive in [start_s, start_s + duration_s) are refused."""

    start_s: float
    duration_s: float

    def refuses(self, arrival_s: float) -> bool:
        """Whether a session that arrives then is refused."""
        return self.start_s <= arrival_s < self.start_s + self.duration_s


@dataclass(frozen=True)
class Cut:
    """Base arrivals go on at `to_rate` (a multiple of lambda_ref) from `at_s`."""

    at_s: float
    to_rate: float


@dataclass(frozen=True)
class ToolSlowdown:
    """Tool calls that start in [start_s, start_s + duration_s) take `extra_s`
    longer.
    """

    start_s: float
    duration_s: float
    extra_s: float

    def added_s(self, tool_start_s: float) -> float:
        """Seconds added to a tool call that starts then."""
        return self.extra_s if self.start_s <= tool_start_s < self.start_s + self.duration_s else 0.0


@dataclass(frozen=True)
class Arm:
    """One treatment. Arms of a seed share arrivals, turn counts, tool times.

    `population` sessions are kept running instead of open arrivals;
    `caching` False switches the engine's prefix cache off; `pool_tokens` caps
    the cell's KV pool for this arm. No session takes more than `step_cap` turns.
    Its runs end at `horizon_s` where that is sooner than the design's.
    """

    name: str
    burst: Burst | None = None
    gate: GateSetting | None = None
    shed: Shed | None = None
    cut: Cut | None = None
    tool_slowdown: ToolSlowdown | None = None
    population: int | None = None
    caching: bool = True
    pool_tokens: int | None = None
    step_cap: int | None = None
    horizon_s: float | None = None
    engine: EnginePolicy = EnginePolicy()


def cell_under(arm: Arm, cell: Cell) -> Cell:
    """The cell that an arm runs on: its pool capped where the arm says so."""
    return cell if arm.pool_tokens is None else replace(cell, pool_tokens=arm.pool_tokens)


@dataclass(frozen=True)
class Window:
    """The span [start_s, end_s) in which readings are taken."""

    name: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class ReleaseWindow:
    """The span from a run's own release to `end_s`.

    It starts at the first `released` event of the run of arm
    `from_release_of` at the same rate and seed, for every arm of that rate
    and seed; where that cap never comes off it is empty, [end_s, end_s).
    """

    name: str
    from_release_of: str
    end_s: float

    def opened(self, release_s: float) -> Window:
        """The window of a run released then; NaN where it never was."""
        return Window(self.name, release_s if release_s < self.end_s else self.end_s, self.end_s)


@dataclass(frozen=True)
class Seeds:
    """Seed numbers, and what their plans are bound to.

    `binding` is `beacon` (digest and beacon enter the plan key, so no plan
    exists before the registration), `literal` (the seed number alone) or
    `plan_from` (the plans of another registration, made before this one).
    """

    values: tuple[int, ...]
    binding: str


@dataclass(frozen=True)
class Design:
    """Everything that fixes which runs exist and how they are driven."""

    horizon_s: float
    workload: Workload
    rates: tuple[float, ...]
    arms: tuple[Arm, ...]
    windows: tuple[Window | ReleaseWindow, ...]
    seeds: Seeds

    def arm(self, name: str) -> Arm:
        """The arm called `name`; KeyError where there is none."""
        return {arm.name: arm for arm in self.arms}[name]

    def horizon_of(self, arm: Arm) -> float:
        """When the runs of an arm end, seconds from their start."""
        return self.horizon_s if arm.horizon_s is None else arm.horizon_s

    def window(self, name: str) -> Window | ReleaseWindow:
        """The window called `name`; KeyError where there is none."""
        return {window.name: window for window in self.windows}[name]

    @property
    def releasing(self) -> tuple[str, ...]:
        """The arms whose runs' releases open a window."""
        return tuple(dict.fromkeys(w.from_release_of for w in self.windows if isinstance(w, ReleaseWindow)))

    @property
    def judged_rates(self) -> tuple[float | None, ...]:
        """The rates that are judged one by one; (None,) where all is closed."""
        return self.rates or (None,)

    def run_of(self, arm: str, rate: float | None, seed: int) -> RunId:
        """An arm's run that belongs to a rate and seed: a closed population
        runs once a seed, for every rate.
        """
        return RunId(arm, rate if self.arm(arm).population is None else None, seed)

    def run_ids(self) -> tuple[RunId, ...]:
        """Every registered run: arm x rate x seed, in the design's order."""
        return tuple(
            RunId(arm.name, rate, seed)
            for arm in self.arms
            for rate in (self.rates if arm.population is None else (None,))
            for seed in self.seeds.values
        )


@dataclass(frozen=True, order=True)
class RunId:
    """One run of a registration. `rate` is a multiple of lambda_ref; None for
    a closed population, which has no arrival rate.
    """

    arm: str
    rate: float | None
    seed: int

    @property
    def rate_name(self) -> str:
        """The rate as it stands in paths and tables; `closed` where none."""
        return "closed" if self.rate is None else repr(float(self.rate))

    @property
    def path(self) -> str:
        """`<arm>/<rate>/<seed>`, the run's place below its registration."""
        return f"{self.arm}/{self.rate_name}/{self.seed}"
