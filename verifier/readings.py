"""Readings recomputed from the raw records of a run, inside one window.

Pure functions of the records; names, units and meanings are those of
`registry.reading_catalogue`. The same records give the same bytes on any
machine, whatever the order of their rows. A reading that the window or the
records leave undefined is NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from registry.design import Window
from registry.reading_catalogue import HIT_BIN_S, READING_KINDS, RECOVERED_HIT, RECOVERY_BIN_S
from verifier.exact_statistics import (
    BoolArray,
    FloatArray,
    mean,
    quotient,
    slope,
    total,
)
from verifier.gate_readings import backlog_slope, gate_readings
from verifier.latency import latency_readings
from verifier.turn_columns import (
    TurnColumns,
    engine_spans,
    equal_to,
    float_column,
    inside,
    text_column,
)


@dataclass(frozen=True)
class RunFrames:
    """The record tables of one run, columns as in `artifacts.records`."""

    turns: pd.DataFrame
    sessions: pd.DataFrame
    gate: pd.DataFrame
    engine: pd.DataFrame

    @cached_property
    def turn_columns(self) -> TurnColumns:
        """The turns as columns, made once for all windows."""
        return TurnColumns.of(self.turns)


def compute_readings(
    frames: RunFrames, window: Window, *, pool_tokens: int, cache_block_tokens: int
) -> dict[str, float]:
    """Every reading of the catalogue, in its order; NaN where undefined.

    `pool_tokens` is the cell's KV pool, `cache_block_tokens` the granularity
    of its prefix cache (1 where it is by token). ValueError for a window
    without finite, ordered bounds or a block below 1.
    """
    if not -math.inf < window.start_s <= window.end_s < math.inf:
        raise ValueError(f"window {window.name!r} needs finite bounds, start before end: {window}")
    if cache_block_tokens < 1:
        raise ValueError(f"cache_block_tokens must be at least 1, not {cache_block_tokens}")
    turns = frames.turn_columns
    finished = turns.finished(window)
    readings = {
        **_hit_readings(finished, window, cache_block_tokens),
        **_load_readings(turns, window, pool_tokens),
        **_throughput_readings(finished, frames.sessions, window),
        **_idle_readings(turns, window),
        **gate_readings(turns, frames.gate, window),
        **latency_readings(turns, window),
    }
    return {name: readings[name] for name in READING_KINDS}


def _hit_readings(finished: TurnColumns, window: Window, block: int) -> dict[str, float]:
    followups = finished.where(finished.turn >= 2)
    prompt_tokens = total(followups.prompt_tokens)
    count = float(followups.turn.size)
    readings = {"followups_finished": count}
    if np.isnan(followups.cached_tokens).any():
        unknown = ("followup_hit_fraction", "reuse_fraction", "max_hit_300s", "recovered_s", "hits")
        return {**readings, **dict.fromkeys(unknown, math.nan)}
    full = full_hits(followups, block)
    hits = float(np.count_nonzero(full))
    return {
        **readings,
        "hits": hits,
        "followup_hit_fraction": quotient(hits, count),
        "reuse_fraction": quotient(total(followups.cached_tokens), prompt_tokens),
        "max_hit_300s": _best_bin(followups.done_s, full, window),
        "recovered_s": _recovered_s(followups.done_s, full, window),
    }


def full_hits(turns: TurnColumns, block: int) -> BoolArray:
    """Where all whole blocks of what could be reused were cached."""
    # The last prompt token is always computed, hence prompt - 1.
    within_reach = np.minimum(turns.reusable_tokens, turns.prompt_tokens - 1)
    hits: BoolArray = turns.cached_tokens >= within_reach // block * block
    return hits


def _best_bin(done_s: FloatArray, full: BoolArray, window: Window) -> float:
    _, share = _binned(done_s, full, window, HIT_BIN_S)
    return float(share.max()) if share.size else math.nan


def _recovered_s(done_s: FloatArray, full: BoolArray, window: Window) -> float:
    start_s, share = _binned(done_s, full, window, RECOVERY_BIN_S)
    below = np.flatnonzero(share < RECOVERED_HIT)
    first = below[-1] + 1 if below.size else 0
    return float(start_s[first]) if first < share.size else math.nan


def _binned(done_s: FloatArray, full: BoolArray, window: Window, bin_s: float) -> tuple[FloatArray, FloatArray]:
    """(start, hit fraction) of the window's bins that have a follow-up."""
    bins = math.ceil((window.end_s - window.start_s) / bin_s)
    edges: FloatArray = window.start_s + bin_s * np.arange(bins + 1, dtype=np.float64)
    place = np.searchsorted(edges, done_s, side="right") - 1
    finished = np.bincount(place, minlength=1)
    hits = np.bincount(place[full], minlength=finished.size)
    seen = np.flatnonzero(finished)
    share: FloatArray = hits[seen] / finished[seen]
    return edges[seen], share


def _load_readings(turns: TurnColumns, window: Window, pool_tokens: int) -> dict[str, float]:
    length_s = window.end_s - window.start_s
    prefilled = turns.where(inside(turns.first_token_s, window))
    uncached_per_s = quotient(total(prefilled.prompt_tokens - prefilled.cached_tokens), length_s)
    written = turns.output_tokens[inside(turns.done_s, window)]
    output_per_s = quotient(total(written), length_s)
    spans = engine_spans(turns, window.end_s)
    present_s = total(spans.overlaps(window.start_s, window.end_s)) if spans.known else math.nan
    return {
        "uncached_prefill_tokens_per_s": uncached_per_s,
        "backlog_slope_per_s": backlog_slope(spans, window),
        "outstanding": quotient(present_s, length_s),
        "turnover_s": quotient(float(pool_tokens), uncached_per_s + output_per_s),
    }


def _throughput_readings(finished: TurnColumns, sessions: pd.DataFrame, window: Window) -> dict[str, float]:
    length_s = window.end_s - window.start_s
    ended = inside(float_column(sessions, "end_s"), window)
    completed = ended & equal_to(text_column(sessions, "outcome"), "ok")
    arrived = inside(float_column(sessions, "arrival_s"), window)
    sojourn_s = finished.done_s - finished.submit_s
    return {
        "completions_per_s": quotient(float(np.count_nonzero(completed)), length_s),
        "turns_per_s": quotient(float(finished.turn.size), length_s),
        "arrivals_per_s": quotient(float(np.count_nonzero(arrived)), length_s),
        "goodput_per_s": quotient(total(finished.output_tokens), length_s),
        "mean_prompt_tokens": mean(finished.prompt_tokens),
        "sojourn_s": mean(sojourn_s),
        "sojourn_slope": slope(finished.done_s, sojourn_s),
    }


def _idle_readings(turns: TurnColumns, window: Window) -> dict[str, float]:
    unsaid = np.isnan(turns.start_s)
    start_s = np.where(unsaid, turns.first_token_s, turns.start_s)
    counted = (turns.turn >= 2) & inside(start_s, window)
    idle_s = start_s - turns.previous_done_s
    return {
        "idle_s": mean(idle_s[counted]),
        "idle_from_first_token": float(np.count_nonzero(counted & unsaid)),
    }
