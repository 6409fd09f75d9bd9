"""How far runs on a real engine are, while they last."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from artifacts.attempt import PROGRESS_FILE
from cli.workflows.reporter import Reporter

_LOOK_S = 2.0
_TAIL_BYTES = 400


@contextmanager
def progress_shown(under_way: Callable[[], dict[str, tuple[Path, float]]], reporter: Reporter) -> Iterator[None]:
    """Report the seconds of each run under way; `under_way` gives a run's
    attempt folder and its horizon (seconds) by its title.
    """
    ended = threading.Event()

    def look() -> None:
        shown: dict[str, int] = {}
        while not ended.wait(_LOOK_S):
            for title, (folder, horizon_s) in under_way().items():
                now = min(seconds_of(folder / PROGRESS_FILE), int(horizon_s))
                for second in range(shown.get(title, 0) + 1, now + 1):
                    reporter.step(f"{title}, seconds", second, int(horizon_s))
                shown[title] = max(now, shown.get(title, 0))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def seconds_of(path: Path) -> int:
    """Whole seconds in the last complete line of a progress file; 0 where
    there is none.
    """
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            lines = file.read().split(b"\n")[:-1]
        return int(json.loads(lines[-1])["time_s"])
    except (OSError, ValueError, IndexError, KeyError, TypeError):
        return 0
