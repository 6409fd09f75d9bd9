"""The one clock of a run."""

from __future__ import annotations

import asyncio
import time


class RunClock:
    """Seconds since the run's start on the machine's monotonic clock.

    `zero_s` is that start on `time.monotonic()`, `zero_unix_s` the wall
    clock's word for it.
    """

    def __init__(self, zero_s: float | None = None) -> None:
        self.zero_s = time.monotonic() if zero_s is None else zero_s
        self.zero_unix_s = time.time() - (time.monotonic() - self.zero_s)

    def now_s(self) -> float:
        """Seconds since the run's start."""
        return time.monotonic() - self.zero_s

    async def until(self, time_s: float) -> float:
        """Wait until `time_s` at the earliest; returns the time then."""
        while (now_s := self.now_s()) < time_s:
            await asyncio.sleep(time_s - now_s)
        return now_s
