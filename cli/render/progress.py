"""Progress: a bar on a terminal, a plain log elsewhere. On standard error."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from registry.plain_text import plain

_LOG_PARTS = 4


class Console:
    """The reporter of the command line; a context manager."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._progress: Any = None
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Console:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress:
            self._progress.stop()

    def say(self, text: str) -> None:
        """Print one sentence."""
        line = plain(text)
        if self._progress:
            self._progress.console.print(line, markup=False, highlight=False)
        else:
            print(line, file=sys.stderr, flush=True)

    def step(self, title: str, done: int, total: int) -> None:
        """Move a bar, or log each quarter."""
        if self._terminal:
            self._move_bar(title, done, total)
        elif done == total or (done * _LOG_PARTS) // total > ((done - 1) * _LOG_PARTS) // total:
            self.say(f"{title}: {done} of {total}")

    def _move_bar(self, title: str, done: int, total: int) -> None:
        if not self._progress:
            from rich.console import Console as RichConsole
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
            )
            self._progress = Progress(*columns, console=RichConsole(stderr=True))
            self._progress.start()
        if title not in self._tasks:
            self._tasks[title] = self._progress.add_task(title, total=total)
        self._progress.update(self._tasks[title], completed=done)
