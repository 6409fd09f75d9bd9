"""Latencies as serving people read them, in seconds.

They run from `planned_s`, when the client meant to send, so that a client
that lags does not hide waiting; the gate's own wait is taken off, or kept in
the `_with_wait` variants. Turns finished in the window; nearest-rank
percentiles.
"""

from __future__ import annotations

from registry.design import Window
from registry.reading_catalogue import PERCENTILES
from verifier.exact_statistics import FloatArray, nearest_ranks
from verifier.turn_columns import TurnColumns, inside


def latency_readings(turns: TurnColumns, window: Window) -> dict[str, float]:
    """ttft, itl, turn latency (p50, p90, p99 each) and the send lag's p99."""
    finished = turns.finished(window)
    wait_s = finished.admitted_s - finished.ready_s
    to_first_s = finished.first_token_s - finished.planned_s
    to_done_s = finished.done_s - finished.planned_s
    return {
        **_percentiles("ttft", to_first_s - wait_s),
        **_percentiles("ttft_with_wait", to_first_s),
        **_percentiles("itl", _inter_token_s(finished)),
        **_percentiles("turn_latency", to_done_s - wait_s),
        **_percentiles("turn_latency_with_wait", to_done_s),
        "send_lag_s_p99": nearest_ranks(_send_lag_s(turns, window), (99,))[0],
    }


def _percentiles(stem: str, values: FloatArray) -> dict[str, float]:
    names = [f"{stem}_s_p{percent}" for percent in PERCENTILES]
    return dict(zip(names, nearest_ranks(values, PERCENTILES), strict=True))


def _inter_token_s(finished: TurnColumns) -> FloatArray:
    several = finished.where(finished.output_tokens >= 2)
    gaps: FloatArray = (several.done_s - several.first_token_s) / (several.output_tokens - 1)
    return gaps


def _send_lag_s(turns: TurnColumns, window: Window) -> FloatArray:
    sent = turns.where(inside(turns.submit_s, window))
    lag: FloatArray = (sent.ready_s - sent.planned_s) + (sent.submit_s - sent.admitted_s)
    return lag
