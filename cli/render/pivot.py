"""A table of a sweep as Markdown, CSV or LaTeX; each says what it is."""

from __future__ import annotations

import csv
import io
import math

from cli.render.table import number
from cli.workflows.sweep_axes import AXES, shown
from cli.workflows.sweep_tables import COUNT, SHARE, Pivot

_ESCAPED = str.maketrans({"_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "$": r"\$"})


def caption(table: Pivot) -> str:
    """What the numbers are, over how many runs, and what they are not."""
    draft = table.sweep.registration.draft
    what = f"share of runs with {table.value}" if table.statistic == SHARE else f"{table.statistic} of {table.value}"
    fixed = "".join(f", {axis} {shown(value)}" for axis, value in table.where.items())
    over = " x ".join(f"{count} of {axis}" for axis, count in table.pooled.items())
    runs = f"{table.runs:,} runs" if table.runs == table.expected else f"{table.runs:,} of {table.expected:,} runs"
    return (
        f"SIMULATED, exploratory: {what}; rule file {draft.id}, arm {table.sweep.arm.name}, cell {draft.cell.name}"
        f"{fixed}; {runs}{f', over {over}' if over else ''}"
    )


def pivot_markdown(table: Pivot) -> str:
    """The caption, then a table in Markdown."""
    head, *body = _rows(table, exact=False)
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *body]
    return "\n".join([caption(table), "", *(f"| {' | '.join(line)} |" for line in lines)])


def pivot_csv(table: Pivot) -> str:
    """A comment line, then comma-separated values to the last digit."""
    text = io.StringIO()
    text.write(f"# {caption(table)}\n")
    csv.writer(text, lineterminator="\n").writerows(_rows(table, exact=True))
    return text.getvalue().rstrip("\n")


def pivot_latex(table: Pivot) -> str:
    """A tabular without packages, the caption as its last row."""
    head, *body = _rows(table, exact=False)
    rows = [" & ".join(cell.translate(_ESCAPED) for cell in row) + r" \\" for row in (head, *body)]
    note = rf"\multicolumn{{{len(head)}}}{{l}}{{\footnotesize {caption(table).translate(_ESCAPED)}}} \\"
    columns = "l" + "r" * (len(head) - 1)
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\hline", rows[0], r"\hline", *rows[1:], r"\hline", note]
    return "\n".join([*lines, r"\end{tabular}"])


def _rows(table: Pivot, exact: bool) -> list[list[str]]:
    corner = f"{table.rows} by {table.columns}"
    head = [corner, *(shown(value) for value in table.column_values)]
    return [head] + [
        [shown(value), *(_cell(cell, table.statistic, exact) for cell in cells)]
        for value, cells in zip(table.row_values, table.cells.tolist(), strict=True)
    ]


def _cell(value: float, statistic: str, exact: bool) -> str:
    if exact:
        return "" if math.isnan(value) else repr(value)
    if statistic == COUNT:
        return f"{value:.0f}"
    return f"{value:.2f}" if statistic == SHARE and not math.isnan(value) else number(value)


def axis_label(axis: str) -> str:
    """An axis in words with its unit, for figures."""
    return AXES[axis].label.replace("lambda_ref", r"$\lambda_{ref}$")
