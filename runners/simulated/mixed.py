"""The vLLM-like scheduler: prefill chunks and decode share each step.

A step has a budget of `chunk_tokens`. Every decoding turn takes one token of
it; then the turn whose prefill is under way goes on, then waiting turns are
admitted from the head, as long as budget is left and all that the head has to
prefill would fit (vLLM's `scheduler_reserve_full_isl`, its default). Memory is
taken as it is needed, in the same order: a chunk takes its units when it is
scheduled, a decoding turn one more whenever its KV crosses a unit's end. Where
none is left, the turn admitted last is preempted: its whole units become its
session's context, unless caching is off, and it goes to the front of the queue.
Admitted again, it computes what it has lost of its prompt and output and pays
`prefill_request_s` again; its hit stays that of its first admission. No turn is
admitted in a step that preempted. Turns that finish in one step leave in order
of admission.

The weights are read once a step: a mixed step takes the larger of its prefill
time and `decode_step_s`, plus `decode_kv_token_s` times the KV tokens of the
decoding turns. Steps without prefill are advanced in closed form, as long as
units are left for them.
"""

from __future__ import annotations

from runners.simulated import blocks, decode, pool
from runners.simulated.compiled import Record, compiled
from runners.simulated.heap import discard, pop, push
from runners.simulated.pool import NOBODY
from runners.simulated.prefill_first import advance, piece_s
from runners.simulated.state import Run


@compiled
def head_fits(run: Run) -> bool:
    """Whether the head of the queue can be admitted in the coming step."""
    return admissible(run, run.costs[0].chunk_tokens - run.engine[0].decoding)


@compiled
def admissible(run: Run, budget: int) -> bool:
    """Whether budget is left and all of the head's prefill has room."""
    engine = run.engine[0]
    if budget <= 0 or not engine.waiting:
        return False
    row = run.waiting[1].item
    turn = run.turns[row]
    units = pool.units_of(engine, turn.prompt_tokens + turn.generated)
    return blocks.fits(run, row, units) if engine.sharing else pool.fits(run, turn.session, units)


@compiled
def take_hit(run: Run, row: int) -> int:
    """Take what is cached of the turn, in blocks, and hold it: tokens."""
    engine, turn = run.engine[0], run.turns[row]
    kept = blocks.take(run, row) if engine.sharing else pool.take(run, turn.session)
    cached = min(kept * engine.unit_tokens, turn.prompt_tokens + turn.generated - 1)
    cached -= cached % engine.block_tokens
    turn.held_units = cached // engine.unit_tokens
    if not engine.sharing:
        pool.reserve(run, turn.held_units)
    return cached


@compiled
def schedule(run: Run) -> bool:
    """Begin a step with prefill and say True, or name the decode segment."""
    engine = run.engine[0]
    preempted = make_room(run)
    budget = run.costs[0].chunk_tokens - engine.decoding
    continues = engine.partial != NOBODY and budget > 0
    if continues and extend_room(run, budget):
        preempted, continues = True, False
    if continues or (not preempted and admissible(run, budget)):
        step(run, budget, not preempted)
        return True
    engine.segment_steps = 0
    if engine.decoding:
        # What was preempted may be admitted again after one step.
        engine.segment_steps = 1 if preempted else segment(run)
    return False


@compiled
def make_room(run: Run) -> bool:
    """Preempt until one decode step has the units that it needs."""
    engine = run.engine[0]
    preempted = False
    while not pool.has_room(run, crossing_at(run, engine.steps_done)):
        preempt(run)
        preempted = True
    return preempted


@compiled
def extend_room(run: Run, budget: int) -> bool:
    """Whether the turn under prefill had to be preempted for want of room."""
    if pool.has_room(run, crossing_at(run, run.engine[0].steps_done) + partial_units(run, budget)):
        return False
    preempt(run)
    return True


@compiled
def partial_units(run: Run, budget: int) -> int:
    """Units more that the turn under prefill needs for its next chunk."""
    engine = run.engine[0]
    turn = run.turns[engine.partial]
    done = turn.prompt_tokens + turn.generated - turn.to_prefill
    return pool.units_of(engine, done + min(turn.to_prefill, budget)) - turn.held_units


@compiled
def crossing_at(run: Run, steps_done: int) -> int:
    """Decoding turns that need a new unit in the step after `steps_done`."""
    return run.slots[-steps_done % run.engine[0].unit_tokens].crossings


@compiled
def segment(run: Run) -> int:
    """Steps of decode alone: to the next finish, or as far as units last.

    At least one, for which `make_room` has seen.
    """
    engine = run.engine[0]
    limit = decode.steps_to_finish(run)
    steps, needed = 1, crossing_at(run, engine.steps_done)
    while steps < limit:
        more = crossing_at(run, engine.steps_done + steps)
        if not pool.has_room(run, needed + more):
            break
        needed += more
        steps += 1
    return steps


@compiled
def step(run: Run, budget: int, admits: bool) -> None:
    """One step with prefill within `budget`; `next_s` becomes its end."""
    engine, costs = run.engine[0], run.costs[0]
    decoding_s = costs.decode_kv_token_s * engine.decode_kv if engine.decoding else 0.0
    grow(run, 1)
    start = budget
    cost_s = 0.0
    while budget > 0:
        row = engine.partial
        if row == NOBODY:
            if not admits or not admissible(run, budget):
                break
            row = admit(run)
            cost_s += costs.prefill_request_s
        turn = run.turns[row]
        left = turn.to_prefill
        new = left if left < budget else budget
        done = turn.prompt_tokens + turn.generated - left
        take_units(run, turn, pool.units_of(engine, done + new))
        cost_s += piece_s(costs, new, done)
        budget -= new
        if not advance(run, row, new):
            break
    engine.step_tokens = start - budget
    engine.segment_steps = 1 if engine.decoding else 0
    engine.stepping = 1
    engine.next_s += max(cost_s, costs.decode_step_s) + decoding_s


@compiled
def grow(run: Run, steps: int) -> None:
    """Take the units that the batch needs for its next `steps` steps."""
    engine = run.engine[0]
    needed = 0
    for done in range(steps):
        needed += crossing_at(run, engine.steps_done + done)
    if needed:
        pool.reserve(run, needed)


@compiled
def take_units(run: Run, turn: Record, units: int) -> None:
    """Hold `units` in all for a turn under prefill."""
    if units > turn.held_units:
        pool.reserve(run, units - turn.held_units)
        turn.held_units = units


@compiled
def admit(run: Run) -> int:
    """Take the head into the running set; its prefill must have room."""
    engine = run.engine[0]
    row = pop(run.waiting)
    engine.waiting -= 1
    turn = run.turns[row]
    cached = take_hit(run, row)
    turn.to_prefill = turn.prompt_tokens + turn.generated - cached
    if turn.start_s != turn.start_s:
        turn.start_s = engine.next_s
        turn.cached_tokens = cached
    run.slots[engine.running_count].running = row
    engine.running_count += 1
    engine.running += 1
    return row


@compiled
def preempt(run: Run) -> None:
    """Put the turn admitted last back to the front of the queue."""
    engine = run.engine[0]
    engine.running_count -= 1
    row = run.slots[engine.running_count].running
    turn = run.turns[row]
    if row == engine.partial:
        engine.partial = NOBODY
        done = turn.prompt_tokens + turn.generated - turn.to_prefill
    else:
        turn.generated = turn.output_tokens - (turn.last_step - engine.steps_done)
        done = turn.prompt_tokens + turn.generated - 1
        decode.leave(run, row, done)
        discard(run.finishing, row)
        turn.held_units = pool.units_of(engine, done)
    keep = done // engine.unit_tokens if engine.caching else 0
    if engine.sharing:
        blocks.release(run, row, turn.held_units, keep)
    else:
        pool.release(run, turn.session, turn.held_units, keep, -engine.next_s)
    turn.held_units = 0
    turn.retractions += 1
    engine.running -= 1
    engine.waiting += 1
    engine.sequence += 1
    push(run.waiting, -1.0, -engine.sequence, row)


@compiled
def forget(run: Run, row: int) -> None:
    """Take a finished turn out of the list of running ones."""
    engine, slots = run.engine[0], run.slots
    place = engine.running_count - 1
    while slots[place].running != row:
        place -= 1
    engine.running_count -= 1
    while place < engine.running_count:
        slots[place].running = slots[place + 1].running
        place += 1
