"""The SGLang-like scheduler: prefill before decode, reservations in full.

A prefill step has a budget of `chunk_tokens`. It continues the turn cut off by
the last step's budget, then admits waiting turns from the head while budget is
left and prompt + output of the head fit beside the running reservations; a
head that does not fit blocks those behind it. It runs without decode and
yields the first token of each prefill that it completes. Otherwise the batch
decodes, up to the next finish of a running turn or the first step boundary at
or after a submission that the scheduler can act on, whichever comes first.
"""

from __future__ import annotations

from runners.simulated import blocks, decode, pool
from runners.simulated.compiled import Record, compiled
from runners.simulated.heap import pop
from runners.simulated.pool import NOBODY
from runners.simulated.state import Run


@compiled
def head_fits(run: Run) -> bool:
    """Whether the head's prompt and output fit beside the reservations."""
    if not run.engine[0].waiting:
        return False
    engine, row = run.engine[0], run.waiting[1].item
    turn = run.turns[row]
    units = pool.units_of(engine, turn.prompt_tokens + turn.output_tokens)
    return blocks.fits(run, row, units) if engine.sharing else pool.fits(run, turn.session, units)


@compiled
def schedule(run: Run) -> bool:
    """Begin a prefill step and say True, or name the decode segment's length."""
    engine = run.engine[0]
    if engine.partial != NOBODY or head_fits(run):
        prefill(run)
        return True
    engine.segment_steps = decode.steps_to_finish(run) if engine.decoding else 0
    return False


@compiled
def prefill(run: Run) -> None:
    """Fill one step's budget; `next_s` becomes its end."""
    engine, costs = run.engine[0], run.costs[0]
    budget = costs.chunk_tokens
    cost_s = 0.0
    while True:
        row = engine.partial
        if row == NOBODY:
            row = admit(run)
            cost_s += costs.prefill_request_s
        turn = run.turns[row]
        left = turn.to_prefill
        new = left if left < budget else budget
        cost_s += piece_s(costs, new, turn.prompt_tokens - left)
        budget -= new
        if not advance(run, row, new) or not budget or not head_fits(run):
            break
    engine.step_tokens = costs.chunk_tokens - budget
    engine.stepping = 1
    engine.next_s += cost_s


@compiled
def advance(run: Run, row: int, new: int) -> bool:
    """Count `new` tokens as prefilled in this step: whether the turn has all.

    If not, its prefill goes on in the next step.
    """
    engine, turn = run.engine[0], run.turns[row]
    turn.to_prefill -= new
    if engine.sharing:
        blocks.computed(run, row)
    if turn.to_prefill:
        engine.partial = row
        return False
    engine.partial = NOBODY
    run.slots[engine.prefilled].prefilled = row
    engine.prefilled += 1
    return True


@compiled
def piece_s(costs: Record, new: int, held: int) -> float:
    """Seconds that prefilling `new` tokens after `held` ones takes."""
    pairs = new * held + new * new / 2
    return costs.prefill_token_s * new + costs.prefill_pair_s * pairs


@compiled
def admit(run: Run) -> int:
    """Take the head into the running set; its kept prefix is its hit."""
    engine = run.engine[0]
    row = pop(run.waiting)
    engine.waiting -= 1
    turn = run.turns[row]
    kept = blocks.take(run, row) if engine.sharing else pool.take(run, turn.session)
    turn.held_units = pool.units_of(engine, turn.prompt_tokens + turn.output_tokens)
    pool.reserve(run, turn.held_units - (kept if engine.sharing else 0))
    cached = min(kept * engine.unit_tokens, turn.prompt_tokens - 1)
    turn.cached_tokens = cached - cached % engine.block_tokens
    turn.to_prefill = turn.prompt_tokens - turn.cached_tokens
    turn.start_s = engine.next_s
    engine.running += 1
    return row
