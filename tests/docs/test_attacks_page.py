"""The table of attacks names real tests, and every test of an attack."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/attacks.md"
OUTCOMES = ("REFUTED", "UNPROVABLE", "void", "registered", "refused", "no effect", "PROVEN")


def rows() -> list[list[str]]:
    """The cells of every line of the tables but their heads."""
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    return [
        cells for line in lines if (cells := [cell.strip() for cell in line.strip("| ").split(" | ")])[-1][0] == "`"
    ]


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name[:5] == "test_")


def named() -> set[tuple[str, str]]:
    return {(path, name) for row in rows() for path, _, name in [row[-1].strip("`").partition("::")]}


def test_every_attack_names_a_test_that_is_there() -> None:
    assert len(rows()) > 75
    assert [f"{path}::{name}" for path, name in sorted(named()) if name not in names_in(path)] == []


def test_every_line_has_an_outcome_and_only_look_alikes_are_proven() -> None:
    attacks, _, alike = PAGE.read_text("utf-8").partition("## What looks like an attack")
    for attack, shown, outcome, test in rows():
        assert attack and shown and outcome.startswith(OUTCOMES)
        assert f"| {outcome} | {test} |" in (alike if outcome == "PROVEN" else attacks)


def test_every_test_of_an_attack_stands_in_the_page() -> None:
    files = sorted((ROOT / "tests/study").glob("test_attacks_*.py"))
    paths = [str(file.relative_to(ROOT)) for file in files]
    missing = [f"{path}::{name}" for path in paths for name in names_in(path) if (path, name) not in named()]
    assert paths and missing == []
