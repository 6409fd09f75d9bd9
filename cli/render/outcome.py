"""E2's outcome beside the paper's printed one."""

from __future__ import annotations

from statistics import mean

from cli.render.table import number, table
from modelf.published import measured_ranges, published, time_scale_ranges
from verifier.report import Proof

_COUNTS = (
    ("BURST", "zero_hits", "zero_hits"),
    ("BURST", "trapped", "trapped_by_rule"),
    ("NOBURST", "good", "noburst_good"),
    ("CAPPED", "recovered", "capped_recovered"),
)
_RANGES = ("mean_prompt_tokens", "completions_over_lambda_ref", "sojourn_slope", "idle_s", "turnover_s")


def outcome_text(proof: Proof) -> str:
    """Counts over both rates, and BURST's readings by rate."""
    registration = proof.registration
    assert registration is not None
    printed = published()["e2"]["cells"][registration.cell.name]
    rows = [["over both rates", "here (simulated)", "paper (GPU)"]]
    for arm, verdict, key in _COUNTS:
        counts = [rate.counts.get(f"{arm}.{verdict}", (0, 0)) for rate in proof.rates]
        here = f"{sum(c[0] for c in counts)}/{sum(c[1] for c in counts)}"
        rows.append([f"{arm} {verdict}", here, str(printed.get(key, "-"))])
    rows.append(["verdict", proof.verdict.words, printed["verdict"]])
    parts = ["E2 on cell sglang-300k, SIMULATED here, beside the paper's GPU runs", table(rows)]
    parts += [_rate_table(proof, rate.rate) for rate in proof.rates if rate.rate]
    parts.append("  idle and turnover: the paper prints ranges over three cells; here means over the judged window")
    return "\n".join(parts)


def _rate_table(proof: Proof, rate: float) -> str:
    assert proof.registration is not None and proof.registration.calibration is not None
    window, reference = proof.registration.draft.judged_window, proof.registration.calibration.lambda_ref_per_s
    rows = [[f"rate {rate:g}", "BURST here", "paper BURST", "NOBURST here", "CAPPED here"]]
    ranges = measured_ranges(proof.registration.cell.name, rate) | time_scale_ranges()
    for name in _RANGES:
        cells = {}
        for arm in ("BURST", "NOBURST", "CAPPED"):
            values = [
                run.readings[window]
                for run in proof.runs
                if (run.run.arm, run.run.rate) == (arm, rate) and run.readings
            ]
            scaled = [
                v["completions_per_s"] / reference if name == "completions_over_lambda_ref" else v[name] for v in values
            ]
            cells[arm] = scaled
        low, high = ranges[name]
        burst = f"{number(min(cells['BURST']))} to {number(max(cells['BURST']))}" if cells["BURST"] else "-"
        others = [number(mean(cells[arm])) if cells[arm] else "-" for arm in ("NOBURST", "CAPPED")]
        rows.append([name, burst, f"{number(low)} to {number(high)}", *others])
    return table(rows)
