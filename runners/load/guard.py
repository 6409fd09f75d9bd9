"""When a run is given up: the engine exited, hangs, or fails every turn."""

from __future__ import annotations

import asyncio

from registry.errors import EngineError
from runners.engines.process import EngineProcess
from runners.load.clock import RunClock
from runners.load.sender import Sender

LOST_AFTER_TURNS = 20
"""So many turns failed one after the other: the engine is lost."""

_LOOK_S = 0.5


async def watch_over(sender: Sender, process: EngineProcess | None, clock: RunClock, hang_timeout_s: float) -> None:
    """For ever, or until the run is not worth going on: EngineError."""
    while True:
        await asyncio.sleep(_LOOK_S)
        await check_serves(sender, process)
        silent_s = clock.now_s() - sender.last_byte_s
        if sender.open_turns and silent_s > hang_timeout_s:
            raise EngineError(f"the engine hangs: {sender.open_turns} turns wait, no byte for {silent_s:.0f} s")


async def check_serves(sender: Sender, process: EngineProcess | None) -> None:
    """EngineError where the engine is gone, or answers no turn."""
    lost = sender.failed_in_a_row >= LOST_AFTER_TURNS
    if lost and process:
        # Turns fail before the engine's keeper has seen it die.
        await asyncio.sleep(_LOOK_S)
    if process and (code := process.exit_code()) is not None:
        raise EngineError(f"the engine exited with {code} during the run", value=process.tail())
    if lost:
        raise EngineError(
            f"the engine is lost: {sender.failed_in_a_row} turns failed one after the other",
            value=sender.last_failure,
        )
