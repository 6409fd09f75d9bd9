"""The README.md of a folder of tables and figures, and the tables on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from cli.render.study_tables import text_tables
from cli.render.text_table import TextTable, table_csv, table_latex, table_markdown
from cli.workflows.study_runs import LeftOut, title_of
from cli.workflows.study_tables import StudyTables
from ledger.page.figure import Figure
from registry.plain_text import markdown, plain

TABLES, FIGURES = "tables", "figures"
FORMATS = ("csv", "md", "tex")


def study_index(
    tables: StudyTables, shown: Sequence[TextTable], figures: Sequence[Figure], not_drawn: Sequence[LeftOut]
) -> str:
    """What lies in the folder, what each figure shows in words, and what is missing."""
    lines = [
        f"# {title_of(tables.origin, f'tables and figures of {tables.study}')}",
        "",
        "Written by `trapkit tables --out DIR` from a verification of the study: only runs of which every check is",
        "proven. The same study and run files give the same bytes.",
        "",
        "## Tables",
        "",
    ]
    for table in shown:
        links = ", ".join(f"[{form}]({TABLES}/{table.name}.{form})" for form in FORMATS)
        lines.append(f"- {table.caption} {links}")
    lines += ["", "## Figures", ""]
    for figure in figures:
        name = f"{FIGURES}/{figure.name}"
        lines.append(f"- **{figure.title}** [svg]({name}.svg), [data]({name}.csv). {figure.text}")
    if not figures:
        lines.append("None.")
    lines += ["", "## Left out", ""]
    lines += _reasons(tables.left_out) or ["No registered run."]
    lines += ["", "## Not drawn", ""]
    lines += _reasons(not_drawn) or ["Nothing."]
    return "\n".join([*lines, ""])


def _reasons(found: Sequence[LeftOut]) -> list[str]:
    return [f"- {markdown(one.what)}: {markdown(one.why)}" for one in found]


def printed(tables: StudyTables, form: str) -> str:
    """All tables for a terminal, as `markdown`, `csv` or `latex`, each under a line
    with its caption; and what is left out of them.
    """
    write = {"markdown": table_markdown, "latex": table_latex}.get(form)
    comment = "%" if form == "latex" else "#"
    parts = [write(table) if write else f"# {table.caption}\n{table_csv(table)}" for table in text_tables(tables)]
    if tables.left_out:
        begin = "- " if form == "markdown" else f"{comment} "
        lines = [f"{begin}{plain(one.what)}: {_cell(one.why, form)}" for one in tables.left_out]
        parts.append("\n".join([f"{'' if form == 'markdown' else comment + ' '}Left out of the tables:", "", *lines]))
    return "\n".join(parts).rstrip()


def _cell(text: str, form: str) -> str:
    return markdown(text) if form == "markdown" else plain(text)
