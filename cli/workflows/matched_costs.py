"""The simulator beside a real engine: the cell's step costs, as fast as the
engine was calibrated.

A cell's costs were measured on one machine; another is faster or slower. One
factor makes the simulated all-miss rate that of the calibration; the costs'
proportions stay the cell's.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from cli.workflows.rehearse import rehearse
from cli.workflows.reporter import Reporter
from modelf.cells import StepCosts
from registry.draft import Draft
from registry.registration import Calibration
from verifier.calibration_checks import quote
from verifier.run_report import RunReport

_SEEDS = 3


@dataclass(frozen=True)
class MatchedDraft:
    """A draft whose cell has its step costs multiplied by `times`."""

    draft: Draft
    times: float


def matched_costs(draft: Draft, source: Draft, calibration: Calibration, reporter: Reporter) -> MatchedDraft:
    """`draft` on a cell as fast as `calibration` says; `source` is the
    calibration's own draft, simulated here over literal seeds.
    """
    result = rehearse(source, None, reporter, seeds=_SEEDS)
    reports = [RunReport(run, "complete", run_sha256="", readings=read) for run, read in result.readings.items()]
    simulated = quote(result.registration, reports)
    times = simulated.all_miss_prefill_tokens_per_s / calibration.all_miss_prefill_tokens_per_s
    costs = draft.cell.step_costs
    assert costs is not None
    seconds = {
        field.name: times * getattr(costs, field.name) for field in fields(costs) if field.name != "chunk_tokens"
    }
    faster = StepCosts(**seconds, chunk_tokens=costs.chunk_tokens)
    return MatchedDraft(replace(draft, cell=replace(draft.cell, step_costs=faster)), times)
