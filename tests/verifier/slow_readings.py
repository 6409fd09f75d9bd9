"""Every reading again, slowly: plain loops over rows, exact fractions.

Written from the registered protocol's table of readings, sharing nothing with
the verifier but the names. Rows are dicts of the record tables; None is null.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

Row = dict[str, Any]
Tables = dict[str, list[Row]]
NAN = math.nan


def slow_readings(
    tables: Tables, start: float, end: float, *, pool_tokens: int, cache_block_tokens: int
) -> dict[str, float]:
    """All readings of one window [start, end)."""
    turns = tables["turns"]
    return {
        **_hits(turns, start, end, cache_block_tokens),
        **_load(turns, start, end, pool_tokens),
        **_throughput(turns, tables["sessions"], start, end),
        **_idle(turns, start, end),
        **_log(tables["gate"], end),
        **_waits(turns, start, end),
        **_latencies(turns, start, end),
    }


def _within(time: float | None, start: float, end: float) -> bool:
    return time is not None and start <= time < end


def _finished(turns: list[Row], start: float, end: float) -> list[Row]:
    return [t for t in turns if t["outcome"] == "ok" and _within(t["done_s"], start, end)]


def _ratio(numerator: Fraction | float, denominator: Fraction | float) -> float:
    if isinstance(numerator, float) and math.isnan(numerator):
        return NAN
    return float(Fraction(numerator) / Fraction(denominator)) if denominator else NAN


def _mean(values: Sequence[Fraction | None]) -> float:
    known = [value for value in values if value is not None]
    return _ratio(sum(known, Fraction(0)), len(known)) if len(known) == len(values) else NAN


def _minus(*times: float | None) -> Fraction | None:
    """The first less all the others; None where one is null."""
    if any(time is None for time in times):
        return None
    first, *others = (Fraction(time) for time in times if time is not None)
    return first - sum(others, Fraction(0))


def _slope(points: Sequence[tuple[float, Fraction | int | None]]) -> float:
    if any(y is None for _, y in points) or len({x for x, _ in points}) < 2:
        return NAN
    xs = [Fraction(x) for x, _ in points]
    ys = [Fraction(y) for _, y in points if y is not None]
    n, sum_x, sum_y = len(xs), sum(xs), sum(ys)
    upper = n * sum(x * y for x, y in zip(xs, ys, strict=True)) - sum_x * sum_y
    return float(upper / (n * sum(x * x for x in xs) - sum_x * sum_x))


def _is_full_hit(turn: Row, block: int) -> bool:
    reach = min(turn["reusable_tokens"], turn["prompt_tokens"] - 1)
    return bool(turn["cached_tokens"] >= math.floor(Fraction(reach, block)) * block)


def _hits(turns: list[Row], start: float, end: float, block: int) -> dict[str, float]:
    followups = [t for t in _finished(turns, start, end) if t["turn"] > 1]
    names = ("hits", "followup_hit_fraction", "reuse_fraction", "max_hit_300s", "recovered_s")
    result = {"followups_finished": float(len(followups)), **dict.fromkeys(names, NAN)}
    if any(t["cached_tokens"] is None for t in followups):
        return result
    hits = sum(_is_full_hit(t, block) for t in followups)
    result["hits"] = float(hits)
    result["followup_hit_fraction"] = _ratio(hits, len(followups))
    prompt = sum(t["prompt_tokens"] for t in followups)
    result["reuse_fraction"] = _ratio(sum(t["cached_tokens"] for t in followups), prompt)
    left = start
    while left < end:
        here = [t for t in followups if left <= t["done_s"] < left + 300]
        if here:
            share = _ratio(sum(_is_full_hit(t, block) for t in here), len(here))
            result["max_hit_300s"] = max(share, 0.0 if math.isnan(result["max_hit_300s"]) else result["max_hit_300s"])
        left += 300
    left = start
    while left < end:
        here = [t for t in followups if left <= t["done_s"] < left + 60]
        if here and 2 * sum(_is_full_hit(t, block) for t in here) < len(here):
            result["recovered_s"] = NAN
        elif here and math.isnan(result["recovered_s"]):
            result["recovered_s"] = float(left)
        left += 60
    return result


def _stays(turns: Iterable[Row], begin: str, finish: str, end: float) -> list[tuple[str, float, float]] | None:
    """(session, from, until) of turns that began before `end`; None if untold."""
    stays = []
    for turn in turns:
        since, until = turn[begin], turn[finish]
        if since is None or since >= end:
            continue
        if until is None and turn["outcome"] != "open at horizon":
            return None
        stays.append((turn["session"], since, math.inf if until is None else until))
    return stays


def _sampled_slope(stays: list[tuple[str, float, float]] | None, start: float, end: float) -> float:
    points: list[tuple[float, Fraction | int | None]] = []
    number = 0
    while stays is not None and start + 10 * number < end:
        time = start + 10 * number
        points.append((time, len({who for who, since, until in stays if since <= time < until})))
        number += 1
    return _slope(points)


def _load(turns: list[Row], start: float, end: float, pool: int) -> dict[str, float]:
    length = Fraction(end) - Fraction(start)
    prefilled = [t for t in turns if _within(t["first_token_s"], start, end)]
    told = all(t["cached_tokens"] is not None for t in prefilled)
    uncached = sum(t["prompt_tokens"] - t["cached_tokens"] for t in prefilled) if told else 0
    output = sum(t["output_tokens"] for t in turns if _within(t["done_s"], start, end))
    stays = _stays(turns, "submit_s", "done_s", end)
    present: Fraction | float = NAN
    if stays is not None:
        present = Fraction(0)
        for _, since, until in stays:
            cut = Fraction(min(until, end)) - Fraction(max(since, start))
            present += max(cut, Fraction(0))
    return {
        "uncached_prefill_tokens_per_s": _ratio(uncached, length) if told else NAN,
        "turnover_s": _ratio(pool * length, uncached + output) if told and length else NAN,
        "backlog_slope_per_s": _sampled_slope(stays, start, end),
        "outstanding": _ratio(present, length),
    }


def _throughput(turns: list[Row], sessions: list[Row], start: float, end: float) -> dict[str, float]:
    length = Fraction(end) - Fraction(start)
    finished = _finished(turns, start, end)
    completed = [s for s in sessions if s["outcome"] == "ok" and _within(s["end_s"], start, end)]
    arrived = [s for s in sessions if _within(s["arrival_s"], start, end)]
    sojourns = [(t["done_s"], _minus(t["done_s"], t["submit_s"])) for t in finished]
    return {
        "completions_per_s": _ratio(len(completed), length),
        "turns_per_s": _ratio(len(finished), length),
        "arrivals_per_s": _ratio(len(arrived), length),
        "goodput_per_s": _ratio(sum(t["output_tokens"] for t in finished), length),
        "mean_prompt_tokens": _mean([Fraction(t["prompt_tokens"]) for t in finished]),
        "sojourn_s": _mean([sojourn for _, sojourn in sojourns]),
        "sojourn_slope": _slope(sojourns),
    }


def _idle(turns: list[Row], start: float, end: float) -> dict[str, float]:
    done = {(t["session"], t["turn"]): t["done_s"] for t in turns}
    gaps, stand_ins = [], 0
    for turn in turns:
        begun = turn["first_token_s"] if turn["start_s"] is None else turn["start_s"]
        if turn["turn"] > 1 and _within(begun, start, end):
            gaps.append(_minus(begun, done.get((turn["session"], turn["turn"] - 1))))
            stand_ins += turn["start_s"] is None
    return {"idle_s": _mean(gaps), "idle_from_first_token": float(stand_ins)}


def _log(gate: list[Row], end: float) -> dict[str, float]:
    log = sorted((row for row in gate if row["time_s"] < end), key=lambda row: row["time_s"])
    engaged = [row["time_s"] for row in log if row["event"] == "engaged"]
    released = [row["time_s"] for row in log if row["event"] == "released"]
    return {
        "refused": float(sum(row["event"] == "refused" for row in log)),
        "paused": float(len({row["session"] for row in log if row["event"] == "paused"})),
        "engaged_s": engaged[0] if engaged else NAN,
        "release_s": released[0] if released else NAN,
        "relapses": float(sum(time > released[0] for time in engaged)) if released else 0.0,
    }


def _waits(turns: list[Row], start: float, end: float) -> dict[str, float]:
    queued = [t for t in turns if t["outcome"] != "refused" or t["admitted_s"] is not None]
    stays = _stays(queued, "ready_s", "admitted_s", end)
    slope = _sampled_slope(stays, start, end)
    if stays is None:
        names = ("gate_backlog_slope_per_s", "delayed", "mean_wait_s", "delay_session_h")
        return dict.fromkeys(names, NAN)
    waited: dict[str, Fraction] = {}
    for who, since, until in stays:
        wait = Fraction(min(until, end)) - Fraction(since)
        if wait > 0:
            waited[who] = waited.get(who, Fraction(0)) + wait
    together = sum(waited.values(), Fraction(0))
    return {
        "gate_backlog_slope_per_s": slope,
        "delayed": float(len(waited)),
        "mean_wait_s": _ratio(together, len(waited)),
        "delay_session_h": float(together / 3600),
    }


def _percentile(values: Sequence[Fraction | None], percent: int) -> float:
    """The smallest value with at least `percent` in a hundred at or below it."""
    if not values or None in values:
        return NAN
    known = [value for value in values if value is not None]
    for value in sorted(known):
        if 100 * sum(other <= value for other in known) >= percent * len(known):
            return float(value)
    raise AssertionError("the largest value is at or above every percentile")


def _latencies(turns: list[Row], start: float, end: float) -> dict[str, float]:
    finished = _finished(turns, start, end)
    lists: dict[str, list[Fraction | None]] = {
        stem: [] for stem in ("ttft", "turn_latency", "ttft_with_wait", "turn_latency_with_wait")
    }
    for turn in finished:
        wait = _minus(turn["admitted_s"], turn["ready_s"])
        for stem, moment in (("ttft", "first_token_s"), ("turn_latency", "done_s")):
            whole = _minus(turn[moment], turn["planned_s"])
            lists[f"{stem}_with_wait"].append(whole)
            lists[stem].append(None if whole is None or wait is None else whole - wait)
    lists["itl"] = []
    for turn in finished:
        if turn["output_tokens"] > 1:
            decoding = _minus(turn["done_s"], turn["first_token_s"])
            steps = turn["output_tokens"] - 1
            lists["itl"].append(None if decoding is None else decoding / steps)
    result = {
        f"{stem}_s_p{percent}": _percentile(values, percent)
        for stem, values in lists.items()
        for percent in (50, 90, 99)
    }
    lags: list[Fraction | None] = []
    for turn in turns:
        if _within(turn["submit_s"], start, end):
            woke = _minus(turn["ready_s"], turn["planned_s"])
            sent = _minus(turn["submit_s"], turn["admitted_s"])
            lags.append(None if woke is None or sent is None else woke + sent)
    return {**result, "send_lag_s_p99": _percentile(lags, 99)}
