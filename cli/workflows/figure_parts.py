"""What every figure of a study is made of: picture, words, and the data drawn."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from typing import Any

from cli.render.pictures import svg_text, without_formulas
from cli.workflows.study_runs import ShownRuns
from ledger.page.figure import Figure
from registry.design import RunId

MOST_SEEDS, MOST_RATES, MOST_ARMS, MOST_LINES = 10, 6, 16, 240
"""More than these are not drawn over time: lines would hide lines."""

_MADE = {"simulated": "Simulated", "real": "Measured on a real engine", "mixed": "Simulated and measured"}

Cell = str | float | int | None


def csv_text(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Comma-separated values to the last digit; nothing where undefined."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([_shown(value) for value in row] for row in rows)
    return text.getvalue()


def _shown(value: Cell) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return repr(float(value)) if isinstance(value, float) else str(value)


def made(origin: str) -> str:
    """How the runs of a figure were made, to begin its text."""
    return _MADE[origin]


def finished(
    pyplot: Any, picture: Any, name: str, head: str, text: str, data: str, of: ShownRuns | None = None
) -> Figure:
    """The figure of a registration (`of`), or of the whole study; a failed proof
    is said in its text.
    """
    if of is not None and of.proof.failed:
        text += f" The proof of {of.proof.tag} FAILED: see the verification."
    svg = svg_text(picture)
    pyplot.close(picture)
    full = f"{of.stem}-{name}" if of else name
    return Figure(full, without_formulas(head), text, svg, data, of.proof.tag if of else None)


def first_seeds(runs: ShownRuns) -> list[RunId]:
    """The runs of open arrivals that are drawn over time: those of the first seeds,
    rates and arms, as many as can be told apart.
    """
    open_arms = [arm.name for arm in runs.design.arms if arm.population is None][:MOST_ARMS]
    rates = runs.design.rates[:MOST_RATES]
    most = max(1, min(MOST_SEEDS, MOST_LINES // max(1, len(open_arms) * len(rates))))
    seeds = runs.design.seeds.values[:most]
    return [run for run in runs.series if run.arm in open_arms and run.rate in rates and run.seed in seeds]
