"""The records that the simulator's core works on, and how they are made.

Compiled, a table is a structured array; interpreted, a list of objects with
the same fields. Both are read and written as `table[row].field`. Times are
seconds from the run's start, NaN until they come; sizes are tokens, or blocks
of `block_tokens` where a name ends in `units`.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from runners.simulated.compiled import INTERPRETED


def _dtype(floats: str, integers: str) -> np.dtype[Any]:
    fields = [(name, "f8") for name in floats.split()] + [(name, "i8") for name in integers.split()]
    return np.dtype(fields)


SESSION = _dtype(
    "arrival_s end_s evict_key",
    "turns first_tool turns_done row outcome closed attained"
    " kept_units context older newer"
    " started holds weight next_waiting",
)
"""A session. `row`: its current turn's row; `closed`: of a population;
`attained`: tokens computed for it; `kept_units` of its context lie in the list
`context` (see pool) between `older` and `newer`; in a scripted run `kept_units` is
the number of blocks that its running turn refers to; the last four are the gate's."""

TURN = _dtype(
    "planned_s admitted_s start_s first_token_s done_s",
    "session turn prompt_tokens output_tokens cached_tokens outcome retractions"
    " to_prefill generated held_units last_step",
)
"""A turn that became due. `to_prefill`: tokens without KV yet; `generated`:
output tokens so far, not counting the decode batch's current stay; `held_units`
of the pool while it runs; `last_step`: when its decode ends."""

GATE = _dtype(
    "engage_s release_after_s empty_since_s low_hit decrease interval_s",
    "engaged released limit least increase unit_tokens held holders"
    " paused_first paused_last new_first new_last events followups hits",
)
"""The gate; see `runners.gate_rules`."""

GATE_EVENT = _dtype("time_s", "event session")
"""One line of the gate's log."""

ENGINE = _dtype(
    "next_s segment_start_s pin_s",
    "mixed caching eviction order"
    " running waiting uncached_total output_total"
    " partial prefilled step_tokens decoding steps_done decode_kv segment_steps stepping"
    " block_tokens unit_tokens size_units reserved_units idle_units pinned_units"
    " idle_oldest idle_newest pinned_oldest pinned_newest contexts sequence running_count"
    " sharing shared_blocks made_blocks bucket_mask free_block block_oldest block_newest",
)
"""The engine: what it is doing, its decode batch, its pool; the last seven are
of a scripted run (`sharing`), see `runners.simulated.blocks`."""

COSTS = _dtype(
    "prefill_request_s prefill_token_s prefill_pair_s decode_step_s decode_kv_token_s",
    "chunk_tokens",
)
"""`modelf.cells.StepCosts`."""

LOOP = _dtype(
    "horizon_s shed_start_s shed_end_s slow_start_s slow_end_s slow_extra_s next_tick_s",
    "gated rows sessions planned arrived sequence next_sample hungry output_tokens",
)
"""The loop: `rows` of turns and `sessions` so far; `arrived`: of the planned
ones; `hungry`: stopped because a population needs more drawn sessions."""

HEAP = _dtype("key", "rank item")
"""One entry of a heap; see `runners.simulated.heap`."""

SLOT = _dtype(
    "",
    "finished prefilled running crossings prompt_tokens output_tokens reusable_tokens first_block blocks",
)
"""Short lists side by side, each from slot 0 on: rows of the turns that finish
at this instant, that complete their prefill with this step, and that run, in
order of admission; decoding turns by where in a unit their KV ends; prompt
tokens by turns done before or, in a scripted run, the scripts' turns: `blocks` ids
each, from `first_block` on in the list `tool_us`, where ids come after all times."""

CONTEXT = _dtype("key", "name references older newer following chain rank item")
"""A heap's entry, for the oracle's victims; or, in a scripted run, a block of its cache
with its key as `name`. `following`: in its chain, or the next free row; `chain`: where
the chain of the keys that hash to this row begins."""

SAMPLE = _dtype("", "running waiting reserved_tokens idle_tokens uncached_total output_total")
"""The engine's gauges at one whole second."""


class Run(NamedTuple):
    """Everything one run works on; single records are tables of one row."""

    loop: Any
    engine: Any
    costs: Any
    gate: Any
    sessions: Any
    turns: Any
    tool_us: Any
    slots: Any
    events: Any
    waiting: Any
    finishing: Any
    contexts: Any
    samples: Any
    gate_log: Any


def table(dtype: np.dtype[Any], rows: int, **values: float) -> Any:
    """`rows` records, zero but for `values`."""
    if INTERPRETED:
        zeros = {name: 0.0 if dtype[name].kind == "f" else 0 for name in dtype.names or ()}
        return [SimpleNamespace(**{**zeros, **values}) for _ in range(rows)]
    made = np.zeros(rows, dtype)
    for name, value in values.items():
        made[name] = value
    return made.view(np.recarray)


def filled(records: Any, **columns: Any) -> None:
    """Write whole columns, arrays of a value a record."""
    for name, values in columns.items():
        if isinstance(records, np.ndarray):
            records[name] = values
        else:
            for record, value in zip(records, values.tolist(), strict=True):
                setattr(record, name, value)


def grown(records: Any, dtype: np.dtype[Any]) -> Any:
    """Twice as many records, the first ones as they were."""
    larger = table(dtype, 2 * len(records))
    larger[: len(records)] = records
    return larger


def column(records: Any, dtype: np.dtype[Any], name: str, count: int) -> Any:
    """Field `name` of the first `count` records, an array."""
    if isinstance(records, np.ndarray):
        return records[name][:count]
    return np.array([getattr(record, name) for record in records[:count]], dtype[name])


def numbers(values: Any) -> Any:
    """An int64 array, or a list of int where interpreted."""
    array = np.asarray(values, dtype=np.int64)
    return array.tolist() if INTERPRETED else array
