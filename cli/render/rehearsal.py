"""A rehearsal as text or JSON: distributions beside the paper's ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from cli.render.comparison import comparison, comparison_text
from cli.render.registration import replay_lines
from cli.render.table import number, table
from cli.workflows.rehearse import Rehearsal
from modelf.published import measured_ranges
from modelf.workload import STANDARD_WORKLOAD
from verifier.report import dumps, to_json

ENOUGH_SEEDS = 20
SHOWN = (
    "followup_hit_fraction",
    "max_hit_300s",
    "uncached_prefill_tokens_per_s",
    "backlog_slope_per_s",
    "mean_prompt_tokens",
    "completions_per_s",
    "sojourn_slope",
    "idle_s",
    "turnover_s",
    "outstanding",
)


def distributions(result: Rehearsal) -> list[dict[str, Any]]:
    """For every rate, arm and shown reading: median, central 95%, extremes.

    The window is the one that the rule judges. Where the paper printed a measured
    range of this workload, `published` gives it and, with enough seeds, `inside`
    whether it lies in the 95%.
    """
    registration = result.registration
    window = registration.draft.judged_window
    rows = []
    for rate in registration.draft.design.judged_rates:
        for arm in registration.draft.design.arms:
            found = [v for r, v in result.readings.items() if r.arm == arm.name and r.rate in (rate, None)]
            runs = [readings[window] for readings in found]
            of_the_paper = arm.name == "BURST" and registration.draft.design.workload == STANDARD_WORKLOAD
            published = measured_ranges(registration.cell.name, rate) if of_the_paper else {}
            if registration.calibration and rate:
                runs = [_in_print_units(run, registration.calibration.lambda_ref_per_s) for run in runs]
            names = [*SHOWN, *(["completions_over_lambda_ref"] if rate else [])]
            rows += [_row(rate, arm.name, name, [run[name] for run in runs], published.get(name)) for name in names]
    return rows


def _in_print_units(readings: Any, lambda_ref_per_s: float) -> dict[str, float]:
    return {**readings, "completions_over_lambda_ref": readings["completions_per_s"] / lambda_ref_per_s}


def _row(
    rate: float | None, arm: str, name: str, values: list[float], published: tuple[float, float] | None
) -> dict[str, Any]:
    finite = np.asarray([v for v in values if np.isfinite(v)])
    row: dict[str, Any] = {"rate": rate, "arm": arm, "reading": name, "defined": len(finite), "published": published}
    if len(finite):
        low, middle, high = np.quantile(finite, [0.025, 0.5, 0.975])
        row |= {"low_2.5%": low, "median": middle, "high_97.5%": high, "min": finite.min(), "max": finite.max()}
        if published and len(finite) >= ENOUGH_SEEDS:
            row["inside"] = bool(low <= published[0] and published[1] <= high)
    return row


def rehearsal_json(result: Rehearsal, chosen: list[tuple[str, str]]) -> str:
    """The rehearsal as JSON: verdict counts, pass shares, distributions, and the
    arms compared in the chosen (window, reading) pairs.
    """
    value = {
        "schema": "trap-rehearsal-1",
        "statement": "simulated, literal seeds, exploratory: never evidence",
        **result.frozen(),
        "distributions": [
            {k: float(v) if isinstance(v, np.floating) else v for k, v in row.items()} for row in distributions(result)
        ],
        "comparison": comparison(result, chosen),
    }
    return dumps(to_json(value))


def rehearsal_text(result: Rehearsal, chosen: list[tuple[str, str]]) -> str:
    """The rehearsal for people; with chosen readings, the arms compared in them."""
    draft = result.registration.draft
    lines = [
        f"{draft.id} rehearsed on the SIMULATED engine; never evidence",
        f"literal seeds {result.seeds[0]} to {result.seeds[-1]}",
        *replay_lines(result.registration),
    ]
    for rate in draft.design.judged_rates:
        name = "closed" if rate is None else f"rate {rate:g}"
        lines.append(f"\n{name}: the rule would pass {result.pass_share[rate]:.1%} of the time")
        for arm in draft.design.arms:
            counts = ", ".join(f"{n} {t}/{k}" for n, (t, k) in result.counts(rate, arm.name).items())
            lines.append(f"  {arm.name}: {counts}")
        if chosen:
            continue
        rows = [["arm", "reading", "2.5%", "median", "97.5%", "paper's range", "inside the 95%"]]
        for row in distributions(result):
            if row["rate"] == rate and "median" in row:
                printed = row["published"]
                rows.append(
                    [
                        row["arm"],
                        row["reading"],
                        *(number(row[k]) for k in ("low_2.5%", "median", "high_97.5%")),
                        f"{number(printed[0])} to {number(printed[1])}" if printed else "",
                        {True: "yes", False: "no", None: ""}[row.get("inside")],
                    ]
                )
        lines.append(table(rows))
    if chosen:
        lines += ["", comparison_text(result, chosen)]
    return "\n".join(lines)
