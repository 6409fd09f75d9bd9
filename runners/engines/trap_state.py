"""Good or trapped, from two samples of an engine's counters.

Trapped means: prompts are being processed, almost nothing of them is found in
the cache, and requests wait. The counters cannot see sessions, so traffic that
shares no prefixes (single turns) looks the same; whoever knows the traffic says
what fraction of its prompt tokens the cache should give
(`expected_hit_fraction`). A prefix that all sessions share, a system prompt
say, is found even in a trap: there too the expectation is needed.

Requests have to wait because model F's trap above the all-miss capacity has a
backlog that grows; below that capacity the queue empties by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from registry.errors import EngineError
from runners.engines.metrics import EngineSample

INTERVAL_S = 10.0
"""Least time between two samples: counters move by whole prompts."""

MIN_PROMPT_TOKENS = 5_000
"""Fewer prompt tokens are a handful of prompts, of which one may decide."""

TRAPPED_BELOW = 0.1
"""Hit fraction below which a trap is told without an expectation. Traps of the
paper's traffic give 0 to 0.01; its good state 0.8 to 0.95. A tenth leaves
room for a short prefix in common."""

GOOD_FROM = 0.5
"""Hit fraction from which the state is good without an expectation."""

LEAST_EXPECTATION = 0.05
"""Traffic expected to hit less than this looks alike in both states."""


@dataclass(frozen=True)
class TrapState:
    """What two samples show: `name` is good, trapped or unknown, `reason` says why.

    Rates are over the `seconds` between the samples, None where these are too few; `hit_fraction` is cached
    over prompt tokens; `running` and `waiting` are requests at the second
    sample, `waiting_change` since the first; `mean_prompt_tokens` is that of
    the requests that ended; None where the engine does not show it.
    """

    name: str
    reason: str
    seconds: float
    hit_fraction: float | None = None
    prompt_tokens_per_s: float | None = None
    uncached_prefill_tokens_per_s: float | None = None
    output_tokens_per_s: float | None = None
    running: int | None = None
    waiting: int | None = None
    waiting_change: int | None = None
    preemptions: int | None = None
    mean_prompt_tokens: float | None = None


@dataclass(frozen=True)
class _Gained:
    """What the counters gained; None where one is not shown or fell."""

    prompts: int | None
    cached: int | None
    output: int | None
    preemptions: int | None
    finished: int | None
    finished_prompts: int | None

    @property
    def hit_fraction(self) -> float | None:
        """At most 1: fallback counters of hits run ahead of those of prompts."""
        return min(1.0, self.cached / self.prompts) if self.prompts and self.cached is not None else None


def judge(
    before: EngineSample, after: EngineSample, seconds: float, expected_hit_fraction: float | None = None
) -> TrapState:
    """The state over the `seconds` between two samples of one engine.

    Raises EngineError for an expectation outside 0 to 1.
    """
    if expected_hit_fraction is not None and not 0 <= expected_hit_fraction <= 1:
        raise EngineError("a hit fraction lies between 0 and 1", value=expected_hit_fraction, remedy="0.8, say")
    gained = _gains(before, after)
    unusable = _unusable(before, after, seconds, gained)
    if unusable or gained.hit_fraction is None:
        name, reason = "unknown", unusable or "the counters cannot be compared"
    else:
        waiting = (before.waiting_requests, after.waiting_requests)
        name, reason = _verdict(gained.hit_fraction, waiting, expected_hit_fraction)
    if gained.preemptions and after.kind == "sglang":
        reason += f"; {gained.preemptions:,} retractions make SGLang's cached tokens look too many"
    return _state(name, reason, before, after, seconds, gained)


def _unusable(before: EngineSample, after: EngineSample, seconds: float, gained: _Gained) -> str | None:
    """Why two samples cannot be compared, in words; None where they can."""
    if not INTERVAL_S <= seconds < math.inf:
        return f"the samples are not at least {INTERVAL_S:g} s apart"
    if "unknown" in (before.kind, after.kind):
        return "the metrics are neither vLLM's nor SGLang's (SGLang shows them with --enable-metrics)"
    if (before.kind, before.pool_tokens) != (after.kind, after.pool_tokens):
        return "the two samples are of different engines"
    if before.prefix_caching is False or after.prefix_caching is False:
        return "the engine's prefix cache is switched off, so no prompt can be found in it"
    for name, words in (("prompt_tokens_total", "prompt tokens"), ("cached_tokens_total", "cached prompt tokens")):
        first, last = getattr(before, name), getattr(after, name)
        if first is None or last is None:
            later = " (SGLang does so from the first one on)" if after.kind == "sglang" else ""
            return f"the engine does not count {words}{later}"
        if last < first:
            return f"the count of {words} fell: the engine was started anew between the samples"
    if (gained.prompts or 0) < MIN_PROMPT_TOKENS:
        return f"only {gained.prompts:,} prompt tokens were processed, too few to tell (from {MIN_PROMPT_TOKENS:,} on)"
    return None


def _verdict(hit: float, waiting: tuple[int | None, int | None], expected: float | None) -> tuple[str, str]:
    """Name and reason, where the counters can be compared."""
    found = f"{hit:.1%} of the prompt tokens came from the cache"
    below, good_from = (TRAPPED_BELOW, GOOD_FROM) if expected is None else (expected / 2, expected / 2)
    tellable = expected is None or expected >= LEAST_EXPECTATION
    if tellable and hit >= good_from:
        return "good", found
    if None in waiting:
        return "unknown", f"{found}, but the engine does not show how many requests wait"
    if waiting == (0, 0):
        return "good", f"{found}, but nothing waits: the engine keeps up with what arrives"
    if not tellable:
        return "unknown", f"{found} and requests wait, but traffic that shares so little looks alike in both states"
    if hit >= below:
        return "unknown", (
            f"{found} and requests wait: a trap that begins or ends, or traffic that shares this much; "
            "say what is expected with --expected-hit-fraction"
        )
    if 0 in waiting:
        return "unknown", f"{found}, but requests waited at one of the two samples only: look again"
    told = f"{found} and {waiting[1]:,} requests wait"
    if expected is None:
        return "trapped", f"{told}; traffic without shared prefixes (single turns) would look the same"
    return "trapped", f"{told}, where {expected:.0%} was expected"


def _state(
    name: str, reason: str, before: EngineSample, after: EngineSample, seconds: float, gained: _Gained
) -> TrapState:
    """The state with what was measured."""
    uncached = None if gained.prompts is None or gained.cached is None else max(0, gained.prompts - gained.cached)
    return TrapState(
        name=name,
        reason=reason,
        seconds=seconds,
        hit_fraction=gained.hit_fraction,
        prompt_tokens_per_s=_rate(gained.prompts, seconds),
        uncached_prefill_tokens_per_s=_rate(uncached, seconds),
        output_tokens_per_s=_rate(gained.output, seconds),
        running=after.running_requests,
        waiting=after.waiting_requests,
        waiting_change=_change(before.waiting_requests, after.waiting_requests),
        preemptions=gained.preemptions,
        mean_prompt_tokens=_mean(gained.finished_prompts, gained.finished),
    )


def _gains(before: EngineSample, after: EngineSample) -> _Gained:
    def gain(name: str) -> int | None:
        change = _change(getattr(before, name), getattr(after, name))
        return None if change is None or change < 0 else change

    return _Gained(
        prompts=gain("prompt_tokens_total"),
        cached=gain("cached_tokens_total"),
        output=gain("output_tokens_total"),
        preemptions=gain("preemptions_total"),
        finished=gain("finished_requests_total"),
        finished_prompts=gain("finished_prompt_tokens_total"),
    )


def _change(first: int | None, last: int | None) -> int | None:
    return None if first is None or last is None else last - first


def _rate(gained: int | None, seconds: float) -> float | None:
    return gained / seconds if gained is not None and INTERVAL_S <= seconds < math.inf else None


def _mean(total: int | None, count: int | None) -> float | None:
    return total / count if total and count else None
