"""How every picture looks, and how it is written: the same values, the same bytes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from registry.plain_text import plain

SUFFIXES = (".svg", ".png")
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#d55e00",
    "#cc79a7",
    "#56b4e9",
    "#555555",
)
"""Okabe and Ito's palette, told apart by colour-blind eyes."""

_STYLE: Any = {
    "svg.hashsalt": "trapkit",
    "svg.fonttype": "path",
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "figure.dpi": 100.0,
    "savefig.dpi": 150.0,
}
_NO_DATE = {".svg": {"Date": None, "Creator": None, "Type": None, "Format": None}, ".png": {"Software": None}}


@contextmanager
def drawing(*, letters: bool = False) -> Iterator[Any]:
    """Matplotlib's pyplot in our style, drawing to files only. With `letters` the
    text of an SVG stays text, in the reader's font: smaller, and it can be searched.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with matplotlib.rc_context({**_STYLE, "svg.fonttype": "none"} if letters else _STYLE):
        yield pyplot
        pyplot.close("all")


def save(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as SVG and PNG, undated; the files' paths."""
    return [save_as(figure, folder / f"{name}{suffix}") for suffix in SUFFIXES]


def save_as(figure: Any, file: Path) -> Path:
    """Write a figure as what the file's suffix says, undated; its path."""
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata=_NO_DATE[file.suffix])
    return file


def svg_text(figure: Any) -> str:
    """A figure as the text of its SVG file, undated."""
    file = io.BytesIO()
    figure.savefig(file, format="svg", metadata=_NO_DATE[".svg"])
    return file.getvalue().decode("utf-8")


def words(text: object) -> str:
    """A study's own words as matplotlib shows them plainly, never as formulas."""
    return plain(text, 120).replace("$", r"\$")


LAMBDA_REF = "$\\lambda_{ref}$"
"""The reference rate, as a formula in pictures."""


def without_formulas(text: str) -> str:
    """A picture's words where formulas are not shown."""
    return text.replace(LAMBDA_REF, "lambda_ref")


def legend_below(figure: Any, handles: Any, most: int = 6) -> None:
    """A legend under the axes, in as many columns as fit the figure's width."""
    entries = list(handles)
    longest_in = 0.065 * max((len(str(handle.get_label())) for handle in entries), default=0) + 0.6
    columns = max(1, min(most, len(entries), int(figure.get_figwidth() / longest_in)))
    figure.legend(handles=entries, loc="outside lower center", ncols=columns)
