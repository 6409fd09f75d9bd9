"""Readings of the gate: who waited, for how long, when it came and went.

All of them look from the run's start to the window's end, because a gate that
engaged and came off before a window still explains what the window shows.
Source: the gate's log and the turns' waits (`artifacts.records`).
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from registry.design import Window
from registry.reading_catalogue import SAMPLE_S
from verifier.exact_statistics import FloatArray, quotient, slope, total
from verifier.turn_columns import (
    Spans,
    TurnColumns,
    due_turns,
    equal_to,
    float_column,
    gate_spans,
    text_column,
)


def gate_readings(turns: TurnColumns, gate: pd.DataFrame, window: Window) -> dict[str, float]:
    """Every reading that comes from the gate's log or the waits of turns."""
    due = due_turns(turns, window.end_s)
    spans = gate_spans(due)
    return {
        "gate_backlog_slope_per_s": backlog_slope(spans, window),
        **_log_readings(gate, window.end_s),
        **_wait_readings(due, spans, window.end_s),
    }


def backlog_slope(spans: Spans, window: Window) -> float:
    """Slope of the number of spans present, sampled each 10 s; sessions/s."""
    samples = math.ceil((window.end_s - window.start_s) / SAMPLE_S)
    times = window.start_s + SAMPLE_S * np.arange(samples, dtype=np.float64)
    times = times[times < window.end_s]
    return slope(times, spans.present_at(times)) if spans.known else math.nan


def _log_readings(gate: pd.DataFrame, end_s: float) -> dict[str, float]:
    time_s, event = float_column(gate, "time_s"), text_column(gate, "event")
    session = text_column(gate, "session")
    before = time_s < end_s
    engaged_s = time_s[before & equal_to(event, "engaged")]
    release_s = _first(time_s[before & equal_to(event, "released")])
    return {
        "refused": float(np.count_nonzero(before & equal_to(event, "refused"))),
        "paused": float(len(set(session[before & equal_to(event, "paused")]))),
        "engaged_s": _first(engaged_s),
        "release_s": release_s,
        "relapses": float(np.count_nonzero(engaged_s > release_s)),
    }


def _wait_readings(due: TurnColumns, spans: Spans, end_s: float) -> dict[str, float]:
    if not spans.known:
        return dict.fromkeys(("delayed", "mean_wait_s", "delay_session_h"), math.nan)
    waits_s = spans.overlaps(-math.inf, end_s)
    delayed, waited_s = float(len(set(due.session[waits_s > 0]))), total(waits_s)
    return {
        "delayed": delayed,
        "mean_wait_s": quotient(waited_s, delayed),
        "delay_session_h": waited_s / 3600.0,
    }


def _first(times: FloatArray) -> float:
    return float(times.min()) if times.size else math.nan
