"""One engine life: submissions, completions, and whose turn it is to act.

`next_s` is the next instant at which the engine acts (inf when idle): the loop
calls `complete` there, hands it whatever else happens at that instant, then
calls `schedule`. What a step does is the scheduler's: `prefill_first` or
`mixed`. A piece of n new tokens after m tokens with KV costs
`prefill_token_s` n + `prefill_pair_s` (n m + n^2 / 2), and `prefill_request_s`
once a turn. Times are seconds from the run's start.
"""

from __future__ import annotations

import math

from runners.simulated import blocks, decode, mixed, pool, prefill_first
from runners.simulated.compiled import compiled
from runners.simulated.heap import push
from runners.simulated.state import Run

ARRIVAL_ORDER, LEAST_SERVICE = range(2)
"""Orders of the waiting queue."""

_NEVER = math.inf


@compiled
def submit(run: Run, row: int, now_s: float) -> None:
    """Queue a turn."""
    engine, turn = run.engine[0], run.turns[row]
    key = float(run.sessions[turn.session].attained) if engine.order == LEAST_SERVICE else 0.0
    engine.sequence += 1
    push(run.waiting, key, engine.sequence, row)
    engine.waiting += 1
    # Whoever waits during decode already is blocked until a turn finishes, or has cut the segment.
    if engine.segment_steps and not engine.stepping:
        if run.waiting[1].item == row and head_fits(run, now_s):
            engine.next_s = decode.cut(run, now_s)
    elif not engine.stepping and now_s < engine.next_s:
        engine.next_s = now_s


@compiled
def head_fits(run: Run, now_s: float) -> bool:
    """Whether the scheduler could admit the head of the queue."""
    if engine_pins(run):
        pool.unpin(run, now_s)
    return mixed.head_fits(run) if run.engine[0].mixed else prefill_first.head_fits(run)


@compiled
def engine_pins(run: Run) -> bool:
    """Whether any context is pinned."""
    return run.engine[0].pinned_oldest != pool.NOBODY


@compiled
def complete(run: Run) -> int:
    """Apply the step or segment that ends at `next_s`.

    Returns how many turns finished there; their rows are in `run.slots`.
    """
    engine = run.engine[0]
    if engine.mixed and not engine.stepping:
        mixed.grow(run, engine.segment_steps)
    finished = decode.complete(run, 0) if engine.segment_steps else 0
    if not engine.stepping:
        return finished
    engine.stepping = 0
    engine.uncached_total += engine.step_tokens
    engine.step_tokens = 0
    engine.output_total += engine.prefilled
    for place in range(engine.prefilled):
        row = run.slots[place].prefilled
        turn = run.turns[row]
        turn.generated += 1
        if turn.generated == 1:
            turn.first_token_s = engine.next_s
        if turn.generated == turn.output_tokens:
            run.slots[finished].finished = row
            finished += 1
        else:
            decode.join(run, row)
    engine.prefilled = 0
    return finished


@compiled
def retire(run: Run, row: int, key: float) -> None:
    """A finished turn leaves; its context stays, all but the last token.

    `key` is the context's, see `pool.release`. The last sampled token's KV is
    never written.
    """
    engine, turn = run.engine[0], run.turns[row]
    context = turn.prompt_tokens + turn.output_tokens
    if engine.mixed:
        turn.held_units = pool.units_of(engine, context - 1)
        mixed.forget(run, row)
    keep = (context - 1) // engine.unit_tokens if engine.caching else 0
    if engine.sharing:
        blocks.release(run, row, turn.held_units, keep)
    else:
        pool.release(run, turn.session, turn.held_units, keep, key)
    run.sessions[turn.session].attained += context - turn.cached_tokens
    engine.running -= 1


@compiled
def schedule(run: Run) -> None:
    """Begin the next step or segment at `next_s`, or fall idle."""
    engine = run.engine[0]
    if engine_pins(run):
        pool.unpin(run, engine.next_s)
    stepping = mixed.schedule(run) if engine.mixed else prefill_first.schedule(run)
    if stepping:
        return
    start_s = engine.next_s
    engine.next_s = decode.begin(run, start_s, engine.segment_steps) if engine.decoding else _NEVER
    if engine.waiting and engine_pins(run):
        # The head may be blocked by pins alone: look again when the next one ends.
        ends_s = run.sessions[engine.pinned_oldest].evict_key
        if not engine.decoding:
            engine.next_s = ends_s
        elif ends_s < engine.next_s:
            engine.next_s = decode.cut(run, ends_s)


@compiled
def sample(run: Run, second: int) -> None:
    """Note the gauges at `second`, between the last event and `next_s`.

    Tokens of a prefill step count when it ends, decode tokens step by step.
    """
    engine, gauges = run.engine[0], run.samples[second]
    gauges.running = engine.running
    gauges.waiting = engine.waiting
    gauges.reserved_tokens = engine.reserved_units * engine.unit_tokens
    gauges.idle_tokens = (engine.idle_units + engine.pinned_units) * engine.unit_tokens
    gauges.uncached_total = engine.uncached_total
    gauges.output_total = engine.output_total + decode.sampled_by(run, float(second))
