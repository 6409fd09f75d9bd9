"""The phase diagram of a sweep: a statistic as colour over two axes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cli.render.pictures import SUFFIXES, drawing, save_as
from cli.render.pivot import axis_label
from cli.workflows.sweep_axes import Value, shown
from cli.workflows.sweep_tables import SHARE, Pivot
from registry.errors import TrapError
from registry.reading_catalogue import READING_KINDS

_COLOURS, _UNDEFINED = "viridis", "#d9d9d9"
_MOST_TICKS = 13
_MOST_NUMBERS = 120
"""More cells than this bear no numbers."""


def draw_pivot(table: Pivot, file: Path) -> Path:
    """Write the table as a heat map, `.svg` or `.png`."""
    if file.suffix not in SUFFIXES:
        raise TrapError("unknown kind of picture", where=str(file), remedy="name it .svg or .png")
    with drawing() as pyplot:
        return save_as(draw_phase(pyplot, table), file)


def draw_phase(pyplot: Any, table: Pivot) -> Any:
    """Cells in the order of the axes' values, the first row at the bottom."""
    figure, axis = pyplot.subplots(figsize=(7.4, 5.2), layout="constrained")
    share = table.statistic == SHARE
    bounds = {"vmin": 0.0, "vmax": 1.0} if share else {}
    colours = pyplot.get_cmap(_COLOURS).with_extremes(bad=_UNDEFINED)
    # As vectors, each cell would be a path of its own, with seams between them.
    mesh = axis.pcolormesh(np.ma.masked_invalid(table.cells), cmap=colours, rasterized=True, **bounds)
    _ticks(axis.xaxis, table.column_values)
    _ticks(axis.yaxis, table.row_values)
    axis.grid(visible=False)
    axis.tick_params(length=2.5)
    axis.set(xlabel=axis_label(table.columns), ylabel=axis_label(table.rows))
    if share and min(table.cells.shape) > 1 and not np.isnan(table.cells).any():
        _half(axis, table.cells)
    if table.cells.size <= _MOST_NUMBERS:
        _numbers(axis, table, mesh)
    bar = figure.colorbar(mesh, ax=axis, label=_label(table), pad=0.02)
    bar.outline.set_visible(False)
    if share:
        bar.set_ticks([0.0, 0.25, 0.5, 0.75, 1.0])
    figure.suptitle(f"SIMULATED, exploratory: {_subject(table)}", weight="bold")
    axis.set_title(_under_title(table), fontsize=8.5, color="#444444")
    return figure


def _ticks(axis: Any, values: Sequence[Value]) -> None:
    """The cells' middles, every second or third where there are many."""
    step = -(-len(values) // _MOST_TICKS)
    places = range(0, len(values), step)
    axis.set_ticks([place + 0.5 for place in places], [shown(values[place]) for place in places])


def _half(axis: Any, cells: Any) -> None:
    """The line on which half of the runs hold, between the cells' middles."""
    if cells.min() < 0.5 < cells.max():
        middles = [np.arange(size) + 0.5 for size in reversed(cells.shape)]
        axis.contour(*middles, cells, levels=[0.5], colors="white", linewidths=1.4)


def _numbers(axis: Any, table: Pivot, mesh: Any) -> None:
    for (row, column), value in np.ndenumerate(table.cells):
        if not np.isnan(value):
            red, green, blue, _ = mesh.cmap(mesh.norm(value))
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            text = f"{value:.2f}" if table.statistic == SHARE else f"{value:.3g}"
            axis.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=7.5,
                      color="white" if dark else "black")  # fmt: skip


def _subject(table: Pivot) -> str:
    return table.value if table.statistic == SHARE else f"{table.statistic} of {table.value}"


def _label(table: Pivot) -> str:
    if table.statistic == SHARE:
        return f"share of runs with {table.value}"
    kind = READING_KINDS.get(table.value.partition(".")[2])
    unit = f", {kind.unit}" if kind and kind.unit != "1" and table.statistic != "count" else ""
    return f"{table.statistic} of {table.value}{unit}"


def _under_title(table: Pivot) -> str:
    draft = table.sweep.registration.draft
    parts = [f"rule file {draft.id}", f"cell {draft.cell.name}"]
    parts += [f"{axis} {shown(value)}" for axis, value in table.where.items()]
    parts += [f"over {count} values of {axis}" for axis, count in table.pooled.items()]
    missing = "" if table.runs == table.expected else f" of {table.expected:,}"
    return ", ".join([*parts, f"{table.runs:,}{missing} runs"])
