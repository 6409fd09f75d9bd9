"""Series for the pictures of a reproduction: runs made again, in bins.

Rehearsals keep readings only; a few seeds are simulated once more here.
"""

from __future__ import annotations

from collections.abc import Sequence

from cli.workflows.flows import Flow, fluid_flow
from cli.workflows.rehearse import Rehearsal, provisional, read_cached, simulated
from cli.workflows.reporter import Reporter
from registry.design import RunId
from registry.plan import make_plan, plan_key
from registry.registration import Registration
from runners.local_queue import run_all
from verifier.series import Series, series_of


def run_series(order: tuple[bytes, RunId, float]) -> Series:
    """The series of one literal-seed run; runs in a worker process."""
    data, run, bin_s = order
    registration = read_cached(data)
    block = registration.cell_of(run).cache_block_tokens
    design = registration.draft.design
    return series_of(simulated(registration, run), design.horizon_of(design.arm(run.arm)), bin_s, block)


def all_series(rehearsal: Rehearsal, runs: Sequence[RunId], bin_s: float, reporter: Reporter) -> dict[RunId, Series]:
    """The series of some runs of a rehearsal, in parallel over cores."""
    registration = rehearsal.registration
    data = provisional(registration.draft, registration.calibration)
    found: dict[RunId, Series] = {}
    for (_, run, _), result in run_all(run_series, [(data, run, bin_s) for run in runs]):
        if isinstance(result, Exception):
            raise result
        found[run] = result
        reporter.step(f"series of {registration.draft.id} (simulated)", len(found), len(runs))
    return {run: found[run] for run in runs}


def literal_fluid(registration: Registration, predictor_name: str, run: RunId, bin_s: float) -> Flow:
    """Model F on one literal-seed run's own plan."""
    design = registration.draft.design
    predictor = next(p for p in registration.draft.predictors if p.name == predictor_name)
    key = plan_key("", 0, "", run.seed)
    plan = make_plan(key, design, design.arm(run.arm), registration.lambda_per_s(run), run.rate)
    return fluid_flow(registration, predictor, run, plan, bin_s)
