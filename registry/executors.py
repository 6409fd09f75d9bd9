"""Where runs are executed, as study.yaml says: never part of a registration.

An executor changes where and when an attempt runs, not what it does; what it
did there is in the attempt's own records.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from registry.errors import StudyError


class Executor(StrEnum):
    """What makes runs: this machine's queue, or jobs of a Slurm cluster."""

    LOCAL = "local"
    SLURM = "slurm"


DEFAULT = "default"
"""The Slurm setup of every cell that has none of its own."""


@dataclass(frozen=True)
class LocalQueue:
    """A queue of this machine's own.

    At most `parallel` runs at once (None: a simulated run a core, one real
    engine). `gpus` are handed out, `gpus_per_run` to each run, as the engine's
    CUDA_VISIBLE_DEVICES; no two runs share one.
    """

    parallel: int | None = None
    gpus: tuple[str, ...] = ()
    gpus_per_run: int = 1

    def slots(self, cores: int, *, real: bool) -> int:
        """How many runs go on at once on a machine with so many cores."""
        if not real:
            return self.parallel or cores
        if not self.gpus:
            return self.parallel or 1
        whole = len(self.gpus) // self.gpus_per_run
        return min(self.parallel or whole, whole)

    def devices(self, slot: int) -> str | None:
        """CUDA_VISIBLE_DEVICES of the run in this slot; None where none are named."""
        first = slot * self.gpus_per_run
        return ",".join(self.gpus[first : first + self.gpus_per_run]) or None


@dataclass(frozen=True)
class SlurmSetup:
    """What a job of one cell asks Slurm for; None leaves a choice to the cluster.

    `time_s` is the job's limit and `warn_s` how long before it the attempt is
    asked to end: Slurm may be a minute early (sbatch, --signal). A job makes up
    to `attempts` attempts where Slurm requeues it; `parallel` jobs of an array
    run at once. What a job wrote may show `settle_s` after its end, on a shared
    file system. `modules` are loaded and `python` (words of a command, a
    container's perhaps) starts the Python of the node.
    """

    time_s: int
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    gpus: int = 0
    cpus: int = 1
    memory_gib: int | None = None
    warn_s: int = 90
    attempts: int = 3
    parallel: int = 256
    settle_s: int = 60
    modules: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Executors:
    """The section `executors` of study.yaml; `slurm` by cell."""

    local: LocalQueue = LocalQueue()
    slurm: dict[str, SlurmSetup] = field(default_factory=dict)

    def slurm_for(self, cell: str) -> SlurmSetup:
        """The setup of a cell; StudyError where there is none."""
        setup = self.slurm.get(cell) or self.slurm.get(DEFAULT)
        if setup is None:
            raise StudyError(
                "study.yaml does not say how a Slurm job of this cell is asked for",
                where="study.yaml, executors.slurm",
                value=cell,
                remedy=f"add executors.slurm.{cell} or executors.slurm.{DEFAULT}, see docs/cluster.md",
            )
        return setup

    def settle_s(self, cell: str) -> float:
        """How long after its job's end a run's files may take to show."""
        setup = self.slurm.get(cell) or self.slurm.get(DEFAULT)
        return SlurmSetup(0).settle_s if setup is None else setup.settle_s


def executors_of(value: dict[str, Any], where: str) -> Executors:
    """From study.yaml, which has been held to the schema.

    StudyError where a run needs more GPUs than are named.
    """
    local = value.get(Executor.LOCAL, {})
    queue = LocalQueue(**{**local, "gpus": tuple(map(str, local.get("gpus", ())))})
    if queue.gpus and queue.gpus_per_run > len(queue.gpus):
        raise StudyError(
            "a run needs more GPUs than the queue has",
            where=where,
            value=queue.gpus_per_run,
            remedy=f"gpus names {len(queue.gpus)}",
        )
    return Executors(queue, {name: _slurm(entry) for name, entry in value.get(Executor.SLURM, {}).items()})


def _slurm(value: dict[str, Any]) -> SlurmSetup:
    return SlurmSetup(
        **{
            **value,
            "modules": tuple(value.get("modules", ())),
            "python": tuple(value.get("python", ())),
            "environment": tuple(sorted(value.get("environment", {}).items())),
        }
    )
