"""Aligned plain-text tables."""

from __future__ import annotations

import math
from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]], indent: str = "  ") -> str:
    """Rows (the first is the head) in aligned columns, two spaces apart."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(indent + line.rstrip() for line in lines)


def number(value: float | None) -> str:
    """A reading for people: about four digits, `-` where undefined."""
    if value is None or not math.isfinite(value):
        return "-"
    if value == 0 or 0.001 <= abs(value) < 100:
        return f"{value:.4g}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2e}"
