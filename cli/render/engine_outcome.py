"""A real engine's runs over time, beside simulated ones of the same plans."""

from __future__ import annotations

import math

from cli.render.table import table
from cli.workflows.beside import Beside
from verifier.series import Series


def engine_outcome_text(result: Beside) -> str:
    """A table a run: hit fraction and sessions at the engine, bin by bin."""
    registration = result.registration
    calibration = registration.calibration
    assert calibration is not None
    cell, rate = registration.cell, calibration.all_miss_prefill_tokens_per_s
    parts = [
        f"{registration.tag}: {cell.engine} {cell.engine_version} on this machine ({cell.model}, "
        f"pool {cell.pool_tokens:,} tokens), a REAL engine",
        f"  all-miss {rate:,.0f} tokens/s (median of {len(calibration.runs)} runs), "
        f"{calibration.lambda_ref_per_s:.3f} sessions/s",
        f"  simulated: the same plans, SIMULATED with the cell's step costs times {result.costs_times:.3f}",
    ]
    for run, (real, simulated) in result.runs.items():
        parts.append(f"{run.path}{_gate_words('engine', real)}{_gate_words('simulated', simulated)}")
        parts.append(table(_rows(real, simulated)))
    return "\n".join(parts)


def _rows(real: Series, simulated: Series) -> list[list[str]]:
    rows = [["until s", "hits", "simulated", "at engine", "simulated", "at gate", "simulated"]]
    for index, middle_s in enumerate(real.middle_s):
        rows.append(
            [
                f"{middle_s + real.bin_s / 2:.0f}",
                *(_fraction(series.hits[index]) for series in (real, simulated)),
                *(f"{series.outstanding[index]:.0f}" for series in (real, simulated)),
                *(f"{abs(series.at_gate[index]):.0f}" for series in (real, simulated)),
            ]
        )
    return rows


def _fraction(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def _gate_words(whose: str, series: Series) -> str:
    if math.isnan(series.engaged_s):
        return ""
    released = "not released" if math.isnan(series.release_s) else f"released at {series.release_s:.1f} s"
    return f"; {whose}: cap engaged at {series.engaged_s:.0f} s, {released}"
