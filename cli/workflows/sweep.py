"""Sweeps: a grid of simulated runs, exploratory, in shards that can be resumed.

Nothing is registered and nothing is pushed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from cli.workflows.explore import load_rule_file, simulated_calibration
from cli.workflows.rehearse import provisional
from cli.workflows.reporter import Reporter
from cli.workflows.sweep_axes import AXES, Value, values_of
from cli.workflows.sweep_folder import alone, known_scripts, prepare
from cli.workflows.sweep_frozen import SWEEP_FILE, Sweep, freeze_sweep, read_sweep
from cli.workflows.sweep_grid import check_grid, grid_of
from cli.workflows.sweep_jobs import submit_shards
from cli.workflows.sweep_shards import make_shard, missing_shards, remove_leftovers
from cli.workflows.trace_scripts import scripts_from
from registry.design import Arm
from registry.draft import Draft
from registry.draft_workload import ScriptsFor
from registry.errors import StudyError
from registry.executors import Executor
from registry.registration import read_registration
from runners.local_queue import Queue, cores, run_all
from runners.run_one import check_can_run

BIN_S = 60.0
MOST_BINS = 10_000
MOST_SHARD_RUNS, SHARDS = 500, 64
"""A shard has so many runs at most; small sweeps have about so many shards."""


@dataclass(frozen=True)
class Request:
    """What a sweep is asked for: `axes` by name as typed, an arm or the first
    that the rule judges, bins of `bin_s`, `shard_runs` runs a file or ours.
    """

    axes: Mapping[str, str] = field(default_factory=dict)
    arm: str | None = None
    bin_s: float = BIN_S
    shard_runs: int | None = None
    records: bool = False


@dataclass(frozen=True)
class Outcome:
    """A sweep's runs and shards, and the shards made now; `jobs` where they
    were handed to a scheduler.
    """

    runs: int
    shards: int
    made: int
    jobs: tuple[str, ...] = ()


def make_sweep(
    file: Path,
    out: Path,
    request: Request,
    reporter: Reporter,
    workers: int | None = None,
    executor: Executor = Executor.LOCAL,
) -> Outcome:
    """Make what is missing of a sweep in folder `out`, new or begun before.

    StudyError where the folder holds something else, or another sweep; DraftError
    where its session scripts are missing, or others.
    """
    data = frozen_sweep(file, request, reporter, known_scripts(out, file))
    sweep = read_sweep(data, str(out / SWEEP_FILE))
    prepare(out, sweep, data)
    missing = missing_shards(out, sweep)
    what = f"{sweep.grid.runs:,} simulated runs of {sweep.arm.name}, exploratory"
    reporter.say(f"{what}: {sweep.shards} shards, {sweep.shards * len(sweep.tables)} files, {len(missing)} missing")
    if executor == Executor.SLURM:
        return Outcome(
            sweep.grid.runs, sweep.shards, 0, tuple(submit_shards(out, sweep.registration.cell.name, missing))
        )
    with alone(out):
        remove_leftovers(out, sweep)
        _make(out, sweep, missing, reporter, workers)
    return Outcome(sweep.grid.runs, sweep.shards, len(missing))


def _make(out: Path, sweep: Sweep, missing: list[int], reporter: Reporter, workers: int | None) -> None:
    if not missing:
        return
    title = f"sweeping {sweep.registration.id} (simulated), shards of {sweep.shard_runs} runs"
    orders = [(str(out.resolve()), shard) for shard in missing]
    with closing(run_all(make_shard, orders, Queue(workers or cores()))) as ended:
        for done, (_, result) in enumerate(ended, 1 + sweep.shards - len(missing)):
            if isinstance(result, Exception):
                raise result
            reporter.step(title, done, sweep.shards)


def frozen_sweep(file: Path, request: Request, reporter: Reporter, scripts_for: ScriptsFor | None = None) -> bytes:
    """sweep.json for a rule file and a request, bundled with the session scripts
    of its workload if that is a trace: all is checked here. `scripts_for` None:
    they are made from the trace.
    """
    scripts_for = scripts_for or scripts_from(file.resolve().parent.parent)
    draft = load_rule_file(file, scripts_for)
    arm = _arm(draft, request.arm)
    given: dict[str, tuple[Value, ...]] = {name: values_of(AXES[name], text) for name, text in request.axes.items()}
    horizon_s = draft.design.horizon_of(arm)
    if not horizon_s / MOST_BINS <= request.bin_s <= horizon_s:
        remedy = f"from {horizon_s / MOST_BINS:g} to {horizon_s:g} s"
        raise StudyError("bins of this width do not fit a run", where="--bin-s", value=request.bin_s, remedy=remedy)
    grid = grid_of(draft.design, arm, draft.cell, given)
    frozen = provisional(draft, simulated_calibration(draft, file.parent, reporter, scripts_for))
    registration = read_registration(frozen, str(file))
    check_can_run(registration)
    check_grid(registration, arm, grid, given)
    shard_runs = request.shard_runs or max(1, min(MOST_SHARD_RUNS, -(-grid.runs // SHARDS)))
    return freeze_sweep(
        file.read_bytes(), frozen, arm.name, grid.axes,
        bin_s=request.bin_s, shard_runs=shard_runs, records=request.records,
    )  # fmt: skip


def _arm(draft: Draft, name: str | None) -> Arm:
    try:
        return draft.design.arm(name or draft.rule.runs[0].arm)
    except KeyError:
        known = ", ".join(arm.name for arm in draft.design.arms)
        raise StudyError("the design has no such arm", where="--arm", value=name, remedy=f"one of: {known}") from None
