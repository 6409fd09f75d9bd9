"""The decode batch of the simulated engine, advanced in closed form.

All running turns past their prefill decode together, one token a step. A
step costs `decode_step_s` + `decode_kv_token_s` times the KV tokens the batch
holds when it begins; each step adds one token a turn. A segment is a span of
constant batch: from KV tokens K and batch b, n steps take
n * decode_step_s + decode_kv_token_s * (n K + b n (n - 1) / 2).
Finishes are kept as counts on one decode-step counter for the whole engine, so
a segment costs the same whatever the batch. Only IEEE basic operations and the
square root decide anything.
"""

from __future__ import annotations

import math

from runners.simulated.compiled import compiled
from runners.simulated.heap import pop, push
from runners.simulated.state import Run


@compiled
def join(run: Run, row: int) -> None:
    """Add a turn that has `generated` tokens and wants more.

    Those that finish at one step leave in order of their sessions' arrival or,
    under the mixed scheduler, in the order in which they joined.
    """
    engine, turn = run.engine[0], run.turns[row]
    turn.last_step = engine.steps_done + turn.output_tokens - turn.generated
    rank = turn.session
    if engine.mixed:
        engine.sequence += 1
        rank = engine.sequence
    push(run.finishing, float(turn.last_step), rank, row)
    engine.decoding += 1
    held = turn.prompt_tokens + turn.generated - 1
    engine.decode_kv += held
    run.slots[(held - engine.steps_done) % engine.unit_tokens].crossings += 1


@compiled
def leave(run: Run, row: int, kv_tokens: int) -> None:
    """Take out a turn that holds the KV of `kv_tokens` tokens."""
    engine = run.engine[0]
    engine.decoding -= 1
    engine.decode_kv -= kv_tokens
    run.slots[(kv_tokens - engine.steps_done) % engine.unit_tokens].crossings -= 1


@compiled
def steps_to_finish(run: Run) -> int:
    """Steps to the next finish."""
    return int(run.finishing[1].key) - run.engine[0].steps_done


@compiled
def begin(run: Run, start_s: float, steps: int) -> float:
    """Begin a segment of `steps` steps; returns its end."""
    engine = run.engine[0]
    engine.segment_start_s = start_s
    engine.segment_steps = steps
    return start_s + duration_s(run, steps)


@compiled
def cut(run: Run, time_s: float) -> float:
    """End the segment at its first boundary at or after `time_s`: when."""
    engine = run.engine[0]
    steps = min(steps_to_reach(run, time_s), engine.segment_steps)
    engine.segment_steps = steps
    return engine.segment_start_s + duration_s(run, steps)


@compiled
def complete(run: Run, finished: int) -> int:
    """End the segment; who finished goes to `run.slots` from `finished` on.

    Returns the new count there.
    """
    engine, finishing = run.engine[0], run.finishing
    sampled = engine.segment_steps * engine.decoding
    engine.steps_done += engine.segment_steps
    engine.segment_steps = 0
    engine.decode_kv += sampled
    engine.output_total += sampled
    while finishing[0].item and finishing[1].key == engine.steps_done:
        row = pop(finishing)
        turn = run.turns[row]
        leave(run, row, turn.prompt_tokens + turn.output_tokens - 1)
        run.slots[finished].finished = row
        finished += 1
    return finished


@compiled
def sampled_by(run: Run, time_s: float) -> int:
    """Tokens of the current decode segment's steps over by `time_s`."""
    engine = run.engine[0]
    if not engine.segment_steps or engine.stepping:
        return 0
    steps = steps_to_reach(run, time_s)
    if engine.segment_start_s + duration_s(run, steps) > time_s:
        steps -= 1
    return steps * engine.decoding


@compiled
def duration_s(run: Run, steps: int) -> float:
    """Duration of the segment's first `steps` steps."""
    engine, costs = run.engine[0], run.costs[0]
    kv_tokens = steps * engine.decode_kv + engine.decoding * (steps * (steps - 1) // 2)
    return steps * costs.decode_step_s + costs.decode_kv_token_s * kv_tokens


@compiled
def steps_to_reach(run: Run, time_s: float) -> int:
    """Fewest steps (at least 1) whose boundary is at or after `time_s`.

    The quadratic's root is a first guess; the boundaries decide.
    """
    engine, costs = run.engine[0], run.costs[0]
    start_s = engine.segment_start_s
    span_s = time_s - start_s
    curve = costs.decode_kv_token_s * engine.decoding / 2
    slope = costs.decode_step_s + costs.decode_kv_token_s * engine.decode_kv - curve
    steps = 1 + int(2 * span_s / (slope + math.sqrt(slope * slope + 4 * curve * span_s)))
    while start_s + duration_s(run, steps) < time_s:
        steps += 1
    while steps > 1 and start_s + duration_s(run, steps - 1) >= time_s:
        steps -= 1
    return steps
