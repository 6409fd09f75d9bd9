"""Writes the table of readings in docs/write-a-rule.md from the catalogue.

    python docs/readings_table.py

A test says when the page is behind.
"""

from __future__ import annotations

from pathlib import Path

from registry.reading_catalogue import READING_KINDS

PAGE = Path(__file__).with_name("write-a-rule.md")
BEGIN = "<!-- readings: written by docs/readings_table.py -->"
END = "<!-- end of readings -->"


def table() -> str:
    """The table as Markdown, one row a reading, in the catalogue's order."""
    rows = ["| reading | unit | meaning |", "| --- | --- | --- |"]
    for kind in READING_KINDS.values():
        unit = "no unit" if kind.unit == "1" else kind.unit
        meaning = kind.meaning.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
        rows.append(f"| `{kind.name}` | {unit} | {meaning} |")
    return "\n".join(rows)


def with_table(page: str) -> str:
    """The page with a fresh table between its two markers."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), encoding="utf-8")
