"""Tables as CSV, Markdown and LaTeX: exact values, and nobody's markup."""

from __future__ import annotations

import csv
import io
import math
import re

import pytest

from cli.render.text_table import Quoted, TextTable, latex, table_csv, table_latex, table_markdown

HOSTILE = Quoted("=cmd()|<b>*x*</b> $\\input{x}$ 100% #_^~ a&b | \u202e caf\u00e9 \u6f22")
TABLE = TextTable(
    "t",
    "SIMULATED: a caption at 1.35 lambda_ref",
    [{"[name": HOSTILE, "value": "1 to 2"}],
    [{"name": HOSTILE, "value_s": 0.1 + 0.2, "none": math.nan, "count": 3, "unknown": None}],
    frozenset({"[name"}),
)


def test_csv_keeps_every_digit_and_no_formula() -> None:
    head, row = list(csv.reader(io.StringIO(table_csv(TABLE))))
    assert head == ["name", "value_s", "none", "count", "unknown"]
    assert float(row[1]) == 0.1 + 0.2
    assert row[2:] == ["", "3", ""]
    assert row[0].startswith("'=cmd")
    assert "U+202E" in row[0]


def test_markdown_shows_the_words_and_no_markup() -> None:
    caption, _, head, rule, row = table_markdown(TABLE).rstrip().split("\n")
    assert caption == f"**{TABLE.caption}**"
    assert (head, rule) == ("| [name | value |", "| --- | --- |")
    assert len(re.findall(r"(?<!\\)\|", row)) == 3
    assert "<b>" not in row
    assert r"\*x\*" in row
    assert r"\$" in row


def test_latex_is_ascii_balanced_and_has_no_command_of_the_study() -> None:
    text = table_latex(TABLE)
    assert text.isascii()
    assert r"\textbackslash{}input\{x\}" in text
    assert r"\input" not in text
    assert r"caf\'{e} U+6F22" in text
    assert r"1.35 $\lambda_{\mathrm{ref}}$" in text
    plain = re.sub(r"\\[\\{}$&#%_]", "", text)
    assert plain.count("{") == plain.count("}")
    assert plain.count("$") % 2 == 0
    assert not set("#%~") & set(plain)
    rows = [line for line in text.splitlines() if line.endswith(r" \\")]
    # A row that began with [ would be an argument of the line end before it.
    assert all(row.startswith("{}") for row in rows)
    assert [len(re.findall(r"(?<!\\)&", row)) for row in rows] == [1, 1]


@pytest.mark.parametrize("character", [chr(code) for code in range(32, 127)])
def test_every_ascii_character_stays_itself_or_is_escaped(character: str) -> None:
    shown = latex(f"a{character}b")
    assert shown[0] == "a"
    assert shown[-1] == "b"
    if character in '\\{}$&#%_^~<>|"`':
        assert shown != f"a{character}b"
    else:
        assert shown == f"a{character}b"
