"""The engine's own gauges, once a second, kept raw while the run lasts."""

from __future__ import annotations

import zlib

from runners.engines.errands import Errands, sample_of
from runners.load.clock import RunClock
from runners.load.records import EngineRow

EVERY_S = 1.0
_OURS = (b"vllm:", b"sglang:")


class Sampler:
    """Asks for metrics each second; reads them when the run is over, so that
    the reading costs the generator no time.
    """

    def __init__(self, errands: Errands, clock: RunClock) -> None:
        self._errands = errands
        self._clock = clock
        self._kept: list[tuple[float, bytes | None]] = []

    async def sample(self) -> None:
        """For ever."""
        second = 0
        while True:
            time_s = await self._clock.until(second * EVERY_S)
            text = await self._errands.metrics()
            self._kept.append((time_s, None if text is None else zlib.compress(_wanted(text), 1)))
            second = max(second + 1, int(self._clock.now_s() / EVERY_S) + 1)

    def rows(self, horizon_s: float) -> list[EngineRow]:
        """A row a sample before the horizon; nulls where the engine was silent."""
        return [_row(time_s, kept) for time_s, kept in self._kept if time_s < horizon_s]


def _wanted(text: bytes) -> bytes:
    """Without histograms and comments: a tenth of the text."""
    lines = [line for line in text.splitlines() if line.startswith(_OURS) and b"_bucket" not in line]
    return b"\n".join(lines) + b"\n"


def _row(time_s: float, kept: bytes | None) -> EngineRow:
    sample = sample_of(zlib.decompress(kept)) if kept is not None else None
    if sample is None:
        return EngineRow(time_s)
    return EngineRow(
        time_s,
        sample.running_requests,
        sample.waiting_requests,
        sample.running_tokens,
        sample.idle_cached_tokens,
        sample.uncached_prefill_tokens_total,
        sample.output_tokens_total,
    )
