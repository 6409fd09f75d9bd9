"""Every reading a rule may name, with its unit and plausible bounds.

A rule reads `run.<window>.<reading>`. The names live here because rules are
checked where they are registered, and recomputed a floor above, in
`verifier.readings`. The bounds serve one purpose: a rule that keeps one value
over all of them is constant and decides nothing. They judge no measurement.

"Finished" is a turn of outcome ok whose `done_s` lies in the window; windows
are half-open, [start_s, end_s). A reading undefined in its window is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

READINGS_VERSION: Final = 1
"""Goes up whenever any reading's value may change for the same records."""

SAMPLE_S: Final = 10.0
"""Spacing of the backlog samples, seconds."""

HIT_BIN_S: Final = 300.0
"""Width of the bins of `max_hit_300s`, seconds."""

RECOVERY_BIN_S: Final = 60.0
"""Width of the bins of `recovered_s`, seconds."""

RECOVERED_HIT: Final = 0.5
"""The hit fraction that bins of `recovered_s` must reach."""

PERCENTILES: Final = (50, 90, 99)


@dataclass(frozen=True)
class ReadingKind:
    """One reading: its name, unit, finite plausible bounds and meaning."""

    name: str
    unit: str
    low: float
    high: float
    meaning: str


def _fraction(name: str, meaning: str) -> ReadingKind:
    return ReadingKind(name, "1", 0.0, 1.0, meaning)


def _rate(name: str, unit: str, meaning: str) -> ReadingKind:
    return ReadingKind(name, unit, 0.0, 1e6, meaning)


def _slope(name: str, unit: str, meaning: str) -> ReadingKind:
    return ReadingKind(name, unit, -1e3, 1e3, meaning)


def _seconds(name: str, meaning: str) -> ReadingKind:
    return ReadingKind(name, "s", 0.0, 1e6, meaning)


def _count(name: str, meaning: str) -> ReadingKind:
    return ReadingKind(name, "count", 0.0, 1e6, meaning)


def _percentiles(stem: str, meaning: str) -> tuple[ReadingKind, ...]:
    return tuple(
        _seconds(f"{stem}_s_p{percent}", f"{meaning}; percentile {percent}, nearest rank") for percent in PERCENTILES
    )


_HITS = (
    _fraction("followup_hit_fraction", "full hits over follow-ups finished"),
    _fraction("reuse_fraction", "cached over prompt tokens of follow-ups finished"),
    _fraction(
        "max_hit_300s",
        "highest followup_hit_fraction over consecutive 300 s bins from the window's start, the"
        " last one cut at its end; bins without a follow-up are passed over",
    ),
    _seconds(
        "recovered_s",
        "start, from the run's start, of the first of consecutive 60 s bins from the window's start from which on"
        " followup_hit_fraction is at least 0.5 in every bin; bins without a follow-up are passed over; undefined"
        " where the last bin is below",
    ),
    _count("followups_finished", "turns 2 and later finished"),
    _count(
        "hits",
        "full hits: follow-ups finished with cached >= floor(min(reusable, prompt - 1) / block) * block",
    ),
)

_LOAD = (
    _rate(
        "uncached_prefill_tokens_per_s",
        "tokens/s",
        "sum(prompt - cached) of turns, any outcome, by first_token_s",
    ),
    _slope(
        "backlog_slope_per_s",
        "sessions/s",
        "least-squares slope of sessions waiting at or served by the engine"
        " (submit_s <= t < done_s), sampled each 10 s from the window's start",
    ),
    _slope(
        "gate_backlog_slope_per_s",
        "sessions/s",
        "the same slope of sessions waiting at the gate (ready_s <= t < admitted_s)",
    ),
    _count("outstanding", "exact time average of sessions waiting at or served by the engine"),
    _seconds(
        "turnover_s",
        "pool_tokens over (uncached prompt tokens by first_token_s + output tokens by done_s, any outcome) per second",
    ),
    _rate("completions_per_s", "sessions/s", "sessions of outcome ok, by end_s"),
    _rate("turns_per_s", "turns/s", "turns finished"),
    _rate("arrivals_per_s", "sessions/s", "sessions arrived, refused ones too"),
    _rate("goodput_per_s", "tokens/s", "output tokens of the turns finished; no latency limit"),
    ReadingKind("mean_prompt_tokens", "tokens", 0.0, 1e6, "mean prompt of the turns finished"),
)

_TIMES = (
    _seconds("sojourn_s", "submit_s to done_s, mean of the turns finished"),
    _slope("sojourn_slope", "1", "least-squares slope of sojourn on done_s, turns finished"),
    _seconds(
        "idle_s",
        "mean of start_s (first_token_s where that is null) less the previous turn's done_s, of"
        " follow-ups, any outcome, that start in the window",
    ),
    _count("idle_from_first_token", "how many follow-ups of idle_s had no start_s"),
)

_GATE = (
    _count("refused", "gate events `refused` from the run's start to the window's end"),
    _count("paused", "distinct sessions paused from the run's start to the window's end"),
    _count("delayed", "distinct sessions that waited at the gate before the window's end"),
    _seconds("mean_wait_s", "waiting before the window's end per session delayed"),
    ReadingKind(
        "delay_session_h",
        "h",
        0.0,
        1e6,
        "waiting at the gate from the run's start to the window's end, all sessions together",
    ),
    _seconds("engaged_s", "first `engaged` before the window's end, from the run's start"),
    _seconds("release_s", "first `released` before the window's end, from the run's start"),
    _count("relapses", "`engaged` events after the first `released`, before the window's end"),
)

_LATENCIES = (
    *_percentiles("ttft", "planned_s to first_token_s less the gate's wait, turns finished"),
    *_percentiles("ttft_with_wait", "planned_s to first_token_s, turns finished"),
    *_percentiles("itl", "(done_s - first_token_s) / (output - 1), turns finished with output of 2 or more"),
    *_percentiles("turn_latency", "planned_s to done_s less the gate's wait, turns finished"),
    *_percentiles("turn_latency_with_wait", "planned_s to done_s, turns finished"),
    ReadingKind(
        "send_lag_s_p99",
        "s",
        0.0,
        1e6,
        "(ready_s - planned_s) + (submit_s - admitted_s) of turns, any outcome, by submit_s;"
        " percentile 99, nearest rank",
    ),
)

READING_KINDS: Final[dict[str, ReadingKind]] = {
    kind.name: kind for kind in (*_HITS, *_LOAD, *_TIMES, *_GATE, *_LATENCIES)
}
"""By name, in the order in which reports list them."""
