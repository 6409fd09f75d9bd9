"""What a run did over time, in bins: for pictures and tables, never for verdicts.

Pure functions of the records; each bin says what the reading of the same name
says in a window of the bin's bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from verifier.exact_statistics import FloatArray
from verifier.readings import RunFrames, full_hits
from verifier.turn_columns import (
    Spans,
    TurnColumns,
    due_turns,
    engine_spans,
    equal_to,
    float_column,
    gate_spans,
    text_column,
)

MOST_BINS: Final = 150
"""A run's coarse series has no more bins than this."""

_ROUND: Final = (1.0, 2.0, 3.0, 6.0)


@dataclass(frozen=True)
class Series:
    """One run in bins of `bin_s` seconds from its start, the last one cut at
    the horizon; arrays of shape (bins,).

    `middle_s` of each bin; `hits`: follow-up hit fraction by done_s (NaN where
    none finished, or the engine does not say what was cached of one);
    `outstanding`: sessions waiting at or served by the engine, time average;
    `at_gate`: sessions waiting at the gate; `completions_per_s`.
    `engaged_s` and `release_s` of the gate, NaN where it never was.
    """

    bin_s: float
    middle_s: FloatArray
    hits: FloatArray
    outstanding: FloatArray
    at_gate: FloatArray
    completions_per_s: FloatArray
    engaged_s: float
    release_s: float


def coarse_bin_s(horizon_s: float) -> float:
    """The least of 1, 2, 3, 6, 10, 20, 30, 60, 100, ... seconds (and their tenths,
    hundredths ...) with no more than `MOST_BINS` bins up to the horizon.
    """
    decade = 10.0 ** math.floor(math.log10(horizon_s / MOST_BINS))
    widths = [decade * factor for factor in (*_ROUND, 10.0)]
    return next(width for width in widths if horizon_s <= width * MOST_BINS * (1 + 1e-12))


def in_groups(series: Series, name: str, bins: int) -> FloatArray:
    """The mean of an array of a series over each group of `bins` whole bins; what
    is left at the horizon, less than a group, is left out.
    """
    last_is_whole = math.isclose(series.middle_s[-1], (series.middle_s.size - 0.5) * series.bin_s)
    groups = (series.middle_s.size - (not last_is_whole)) // bins
    values: FloatArray = getattr(series, name)[: groups * bins]
    return np.asarray(values.reshape(groups, bins).mean(axis=1))


def series_of(frames: RunFrames, horizon_s: float, bin_s: float, cache_block_tokens: int) -> Series:
    """The series of one run."""
    edges = np.minimum(bin_s * np.arange(math.ceil(horizon_s / bin_s) + 1), horizon_s)
    widths = np.diff(edges)
    turns = frames.turn_columns
    due = due_turns(turns, horizon_s)
    return Series(
        bin_s=bin_s,
        middle_s=(edges[1:] + edges[:-1]) / 2,
        hits=_hits(turns, edges, cache_block_tokens),
        outstanding=_present(engine_spans(turns, horizon_s), edges) / widths,
        at_gate=_present(gate_spans(due), edges) / widths,
        completions_per_s=_completed(frames.sessions, edges) / widths,
        engaged_s=_first(frames.gate, "engaged"),
        release_s=_first(frames.gate, "released"),
    )


def _hits(turns: TurnColumns, edges: FloatArray, block: int) -> FloatArray:
    finished = turns.where(equal_to(turns.outcome, "ok") & (turns.turn >= 2))
    count = _counts(finished.done_s, edges)
    hits = _counts(finished.done_s[full_hits(finished, block)], edges)
    unknown = _counts(finished.done_s[np.isnan(finished.cached_tokens)], edges)
    known = (count > 0) & (unknown == 0)
    fraction: FloatArray = np.divide(hits, count, out=np.full(count.size, np.nan), where=known)
    return fraction


def _completed(sessions: pd.DataFrame, edges: FloatArray) -> FloatArray:
    return _counts(float_column(sessions, "end_s")[equal_to(text_column(sessions, "outcome"), "ok")], edges)


def _counts(times: FloatArray, edges: FloatArray) -> FloatArray:
    """How many of `times` lie in each [edge, next edge)."""
    below = np.searchsorted(np.sort(times), edges, side="left")
    return np.diff(below).astype(np.float64)


def _present(spans: Spans, edges: FloatArray) -> FloatArray:
    """Session-seconds of the spans in each bin."""
    if not spans.known:
        return np.full(edges.size - 1, np.nan)
    return np.diff(_elapsed(spans.begin_s, edges) - _elapsed(spans.end_s[np.isfinite(spans.end_s)], edges))


def _elapsed(since_s: FloatArray, edges: FloatArray) -> FloatArray:
    """Sum over `since_s` of the seconds from each to each edge, none negative."""
    ascending = np.sort(since_s)
    sums = np.concatenate([[0.0], np.cumsum(ascending)])
    before = np.searchsorted(ascending, edges, side="right")
    elapsed: FloatArray = edges * before - sums[before]
    return elapsed


def _first(gate: pd.DataFrame, event: str) -> float:
    times = float_column(gate, "time_s")[equal_to(text_column(gate, "event"), event)]
    return float(times.min()) if times.size else math.nan
