"""How workflows speak while they work; the command line decides how it looks."""

from __future__ import annotations

from typing import Protocol


class Reporter(Protocol):
    """Receives plain sentences, and the progress of long steps."""

    def say(self, text: str) -> None:
        """One sentence about what was done."""

    def step(self, title: str, done: int, total: int) -> None:
        """`done` of `total` parts of the step `title` are finished."""
