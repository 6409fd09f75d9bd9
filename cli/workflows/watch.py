"""Two samples of a live engine, what they show, and what to do about it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from cli.workflows.advise import advise_named, named, tokens_of
from modelf.advice import Advice
from modelf.hardware import GPUS, MODELS
from modelf.workload import WORKLOADS
from registry.errors import EngineError, TrapError
from runners.engines.metrics import EngineSample
from runners.engines.scrape import metrics_url, scrape
from runners.engines.trap_state import INTERVAL_S, TrapState, judge

LONGEST_INTERVAL_S = 3600.0

EXIT_CODES = {"good": 0, "trapped": 1, "unknown": 3}

LONG_OVER_TRAPPED = 2.0
"""Mean prompt while a rescue drains over that of a trapped engine's requests: a
trap keeps long sessions. Model F at 1.5 times the all-miss capacity gives 1.95
for the standard workload (1.7 to 2.2 at 1.1 to 2 times), 1.4 for the mirror's."""

Sleep = Callable[[float], object]
Clock = Callable[[], float]
Scrape = Callable[[str], EngineSample]


@dataclass(frozen=True)
class Question:
    """What the operator said: the engine's model and GPU for advice, if at all."""

    model: str | None = None
    gpu: str | None = None
    pool: str | None = None
    workload: str = "standard"
    rate_per_s: float | None = None

    def check(self) -> None:
        """Raise TrapError now for names that advice could not use later."""
        if (self.model is None) != (self.gpu is None):
            raise TrapError("advice needs both the model and the GPU", remedy="give --model and --gpu")
        named("workload", self.workload, WORKLOADS)
        if self.model is not None and self.gpu is not None:
            named("model", self.model, MODELS)
            named("GPU", self.gpu, GPUS)
        if self.pool is not None:
            tokens_of(self.pool)
        if self.rate_per_s is not None and not 0 < self.rate_per_s < math.inf:
            raise TrapError("an arrival rate must be positive", value=self.rate_per_s, remedy="sessions/s, 0.1 say")


@dataclass(frozen=True)
class Observation:
    """The state of one engine, with what to do where that can be said.

    `session_cap` is an estimate from the pool and the prompts seen, given of
    a trapped engine; `advice_problem` says why there is no `advice`.
    """

    url: str
    state: TrapState
    kind: str = "unknown"
    pool_tokens: int | None = None
    block_tokens: int | None = None
    session_cap: int | None = None
    advice: Advice | None = None
    advice_problem: str | None = None


def observations(
    url: str,
    interval_s: float,
    question: Question,
    expected_hit_fraction: float | None = None,
    *,
    ask: Scrape = scrape,
    sleep: Sleep = time.sleep,
    clock: Clock = time.monotonic,
) -> Iterator[Observation]:
    """Observations of an engine, one an interval, without end; the first is all
    that a single look needs. An engine that does not answer is in an unknown state.

    Raises TrapError at once for an address, a name or a number that cannot be right.
    """
    if not INTERVAL_S <= interval_s <= LONGEST_INTERVAL_S:
        raise TrapError("the samples must be 10 s to 1 h apart", value=interval_s, remedy="--interval-s 10, say")
    if expected_hit_fraction is not None and not 0 <= expected_hit_fraction <= 1:
        raise TrapError("a hit fraction lies between 0 and 1", value=expected_hit_fraction, remedy="0.8, say")
    question.check()
    return _observations(metrics_url(url), interval_s, question, expected_hit_fraction, ask, sleep, clock)


def _observations(
    url: str, interval_s: float, question: Question, expected: float | None, ask: Scrape, sleep: Sleep, clock: Clock
) -> Iterator[Observation]:
    def look() -> tuple[EngineSample | TrapState, float]:
        try:
            return ask(url), clock()
        except EngineError as error:
            words = error.what if error.remedy is None else f"{error.what} ({error.remedy})"
            return TrapState("unknown", words, 0.0), clock()

    before, since = look()
    while True:
        if isinstance(before, TrapState):
            yield Observation(url, before)
        sleep(interval_s)
        after, now = look()
        if isinstance(before, EngineSample) and isinstance(after, EngineSample):
            state = judge(before, after, now - since, expected)
            yield _advised(Observation(url, state, after.kind, after.pool_tokens, after.block_tokens), question)
        before, since = after, now


def _advised(seen: Observation, question: Question) -> Observation:
    """The observation with what to do: model F's advice where model and GPU are known."""
    pool = tokens_of(question.pool) if question.pool is not None else seen.pool_tokens
    seen = replace(seen, pool_tokens=pool, session_cap=session_cap(seen.state, pool))
    if question.model is None or question.gpu is None:
        return seen
    if pool is None:
        return replace(seen, advice_problem="the engine does not show its KV pool: give --pool")
    state = seen.state
    present = None if state.running is None or state.waiting is None else state.running + state.waiting
    try:
        advice = advise_named(
            question.model, question.gpu, str(pool), question.workload, backlog=present, rate_per_s=question.rate_per_s
        )
    except TrapError as error:
        return replace(seen, advice_problem=f"{error.what}: {error.remedy}")
    return replace(seen, advice=advice)


def session_cap(state: TrapState, pool_tokens: int | None) -> int | None:
    """Sessions whose contexts fit the pool while a rescue drains, at least 1.

    The pool over `LONG_OVER_TRAPPED` mean prompts; None unless the engine is
    trapped and shows both.
    """
    if state.name != "trapped" or not pool_tokens or not state.mean_prompt_tokens:
        return None
    return max(1, math.floor(pool_tokens / (LONG_OVER_TRAPPED * state.mean_prompt_tokens)))
