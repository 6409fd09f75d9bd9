"""What a scheduler asks of the pool: of sessions' contexts, or of shared blocks in a scripted run."""

from __future__ import annotations

from runners.simulated import blocks, pool
from runners.simulated.compiled import compiled
from runners.simulated.state import Run


@compiled
def fits(run: Run, row: int, units: int) -> bool:
    """Whether the waiting turn can hold `units` in all, idle ones evicted."""
    if run.engine[0].sharing:
        return blocks.fits(run, row, units)
    return pool.fits(run, run.turns[row].session, units)


@compiled
def take_context(run: Run, row: int) -> int:
    """Take the session's context for the turn, or refer to shared blocks: the
    units present. Shared ones count as reserved from here on, a context not yet.
    """
    if run.engine[0].sharing:
        return blocks.take(run, row)
    return pool.take(run, run.turns[row].session)


@compiled
def computed(run: Run, row: int) -> None:
    """Prompt tokens of the turn are being computed: their whole blocks can be found."""
    engine, turn = run.engine[0], run.turns[row]
    if engine.sharing and engine.caching:
        done = min(turn.prompt_tokens, turn.prompt_tokens + turn.generated - turn.to_prefill)
        blocks.register(run, row, min(done // engine.unit_tokens, run.script_turns[turn.script].blocks))


@compiled
def release(run: Run, row: int, units: int, keep_units: int, key: float) -> None:
    """End the turn's hold of `units`, leaving `keep_units`; `key` as in `pool.release`."""
    if run.engine[0].sharing:
        blocks.release(run, row, units, keep_units)
    else:
        pool.release(run, run.turns[row].session, units, keep_units, key)
