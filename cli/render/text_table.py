"""One table as CSV, Markdown and LaTeX; whatever a study wrote stays plain text."""

from __future__ import annotations

import csv
import io
import math
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from registry.plain_text import markdown, plain

Value = str | float | int | bool | None


class Quoted(str):
    """Words that a study wrote: no markup may be read in them."""

    __slots__ = ()


@dataclass(frozen=True)
class TextTable:
    """`rows` for people, `data` to the last digit with units in the columns' names;
    each row by its columns, the same in every row. `wide` columns hold sentences.
    """

    name: str
    caption: str
    rows: list[Mapping[str, str]]
    data: list[Mapping[str, Value]]
    wide: frozenset[str] = field(default_factory=frozenset)


def table_csv(table: TextTable) -> str:
    """Comma-separated values, undefined ones empty, the columns' names first."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.data[0])
    writer.writerows([_exact(value) for value in row.values()] for row in table.data)
    return text.getvalue()


def _exact(value: Value) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, str):
        # A spreadsheet would take such a cell for a formula.
        formula = isinstance(value, Quoted) and value[:1] in ("=", "+", "-", "@")
        return f"'{plain(value)}" if formula else plain(value)
    return repr(float(value)) if isinstance(value, float) else str(value)


def table_markdown(table: TextTable) -> str:
    """The caption, then a table."""
    head = list(table.rows[0])
    lines = [head, ["---"] * len(head), *(row.values() for row in table.rows)]
    shown = ["| " + " | ".join(_in_markdown(cell) for cell in line) + " |" for line in lines]
    return "\n".join([f"**{table.caption}**", "", *shown, ""])


def _in_markdown(cell: str) -> str:
    return markdown(cell) if isinstance(cell, Quoted) else plain(cell).replace("|", "\\|")


def table_latex(table: TextTable) -> str:
    """A table that needs no package."""
    head = list(table.rows[0])
    wide = rf"p{{{0.45 / max(1, len(table.wide)):.2f}\linewidth}}"
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex(table.caption)}}}",
        r"\small",
        rf"\begin{{tabular}}{{{''.join(wide if name in table.wide else 'l' for name in head)}}}",
        r"\hline",
        _latex_row(head),
        r"\hline",
        *(_latex_row(row.values()) for row in table.rows),
        r"\hline",
        r"\end{tabular}",
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)


def _latex_row(cells: Iterable[str]) -> str:
    # Braces, since a row that began with [ or * would be read as part of the \\ before it.
    return "{}" + " & ".join(latex(cell) for cell in cells) + r" \\"


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    '"': r"\char34{}",
    "`": r"\char96{}",
    **{character: f"\\{character}" for character in "{}$&#%_"},
    **{character: f"${character}$" for character in "<>|"},
    "\u2013": "--",
    "\u2014": "---",
    "\u2019": "'",
}
_ACCENTS = {
    "\u0300": r"\`",
    "\u0301": r"\'",
    "\u0302": r"\^",
    "\u0303": r"\~",
    "\u0308": r"\"",
    "\u030a": r"\r",
    "\u030c": r"\v",
    "\u0327": r"\c",
}
_FORMULAS = {
    r"lambda\_ref": r"$\lambda_{\mathrm{ref}}$",
    r"lambda\_miss": r"$\lambda_{\mathrm{miss}}$",
}


def latex(text: str) -> str:
    """Plain text in LaTeX that any engine compiles: ASCII only, accents as commands,
    other characters as their code point. The names of our rates become formulas.
    """
    escaped = "".join(_latex_character(character) for character in plain(text))
    for word, formula in _FORMULAS.items():
        escaped = escaped.replace(word, formula)
    return escaped


def _latex_character(character: str) -> str:
    if character in _SPECIAL or character.isascii():
        return _SPECIAL.get(character, character)
    parts = unicodedata.normalize("NFD", character)
    if len(parts) == 2 and parts[0].isascii() and parts[0].isalpha() and parts[1] in _ACCENTS:
        return f"{_ACCENTS[parts[1]]}{{{parts[0]}}}"
    return f"U+{ord(character):04X}"
