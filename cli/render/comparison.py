"""Arms beside each other in readings of one's choice, from a rehearsal."""

from __future__ import annotations

from typing import Any

import numpy as np

from cli.render.table import number, table
from cli.workflows.rehearse import Rehearsal
from registry.draft import Draft
from registry.errors import StudyError
from registry.reading_catalogue import READING_KINDS


def chosen_readings(names: list[str], draft: Draft) -> list[tuple[str, str]]:
    """(window, reading) of each `<window>.<reading>`; StudyError for others."""
    windows = [window.name for window in draft.design.windows]
    chosen = []
    for name in names:
        window, _, reading = name.partition(".")
        if window not in windows or reading not in READING_KINDS:
            raise StudyError(
                "no such reading in this rule file",
                value=name,
                remedy=f"WINDOW.READING: a window of {', '.join(windows)}, a reading of docs/write-a-rule.md",
            )
        chosen.append((window, reading))
    return chosen


def comparison(result: Rehearsal, chosen: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """For every rate, arm and chosen reading: in how many runs it is defined,
    and there its median and central 95%.
    """
    design = result.registration.draft.design
    rows = []
    for rate in design.judged_rates:
        for arm in design.arms:
            runs = [v for run, v in result.readings.items() if run.arm == arm.name and run.rate in (rate, None)]
            for window, reading in chosen:
                finite = [x for x in (readings[window][reading] for readings in runs) if np.isfinite(x)]
                row = {"rate": rate, "arm": arm.name, "window": window, "reading": reading}
                row |= {"runs": len(runs), "defined": len(finite)}
                if finite:
                    shares = map(float, np.quantile(finite, [0.025, 0.5, 0.975]))
                    row |= dict(zip(("low_2.5%", "median", "high_97.5%"), shares, strict=True))
                rows.append(row)
    return rows


def comparison_text(result: Rehearsal, chosen: list[tuple[str, str]]) -> str:
    """The comparison for people: a line an arm, a column a reading."""
    rows = comparison(result, chosen)
    lines = ["median [2.5%, 97.5%] over the seeds, SIMULATED; (k/n): defined in k of n runs"]
    for rate in dict.fromkeys(row["rate"] for row in rows):
        here = [row for row in rows if row["rate"] == rate]
        cells = [["closed" if rate is None else f"rate {rate:g}", *(".".join(pair) for pair in chosen)]]
        for arm in dict.fromkeys(row["arm"] for row in here):
            cells.append([arm, *(_cell(row) for row in here if row["arm"] == arm)])
        lines.append(table(cells))
    return "\n".join(lines)


def _cell(row: dict[str, Any]) -> str:
    if not row["defined"]:
        return "undefined"
    low, middle, high = (number(row[name]) for name in ("low_2.5%", "median", "high_97.5%"))
    share = "" if row["defined"] == row["runs"] else f" ({row['defined']}/{row['runs']})"
    return f"{middle} [{low}, {high}]{share}"
