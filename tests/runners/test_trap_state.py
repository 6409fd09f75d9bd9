"""Good, trapped or unknown: real samples, the edges, and what always holds."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import EngineError
from runners.engines.metrics import EngineSample, parse_metrics
from runners.engines.trap_state import INTERVAL_S, MIN_PROMPT_TOKENS, TrapState, judge

DATA = Path(__file__).parent / "data"


def real(name: str) -> EngineSample:
    return parse_metrics((DATA / f"{name}.prom").read_text("utf-8"))


def pair(
    hit: float, waited: int | None = 20, waits: int | None = 30, kind: str = "vllm", prompts: int = 200_000
) -> tuple[EngineSample, EngineSample]:
    """Two samples ten seconds apart, with this fraction of `prompts` tokens cached."""
    before = EngineSample(
        kind=kind,
        running_requests=8,
        waiting_requests=waited,
        prompt_tokens_total=1_000_000,
        cached_tokens_total=900_000,
        output_tokens_total=10_000,
        preemptions_total=0,
        pool_tokens=30_000,
        finished_requests_total=900,
        finished_prompt_tokens_total=990_000,
    )
    after = replace(
        before,
        waiting_requests=waits,
        prompt_tokens_total=1_000_000 + prompts,
        cached_tokens_total=900_000 + round(hit * prompts),
        output_tokens_total=12_000,
        finished_requests_total=1_000,
        finished_prompt_tokens_total=1_150_000,
    )
    return before, after


def test_a_real_engine_with_three_sessions_is_good() -> None:
    state = judge(real("vllm-good-before"), real("vllm-good-after"), 10.04)
    assert (state.name, state.reason) == ("good", "91.9% of the prompt tokens came from the cache")
    assert state.hit_fraction == pytest.approx((76_352 - 18_304) / (85_760 - 22_590))


def test_a_real_engine_with_ten_times_what_its_pool_holds_is_trapped() -> None:
    state = judge(real("vllm-trapped-before"), real("vllm-trapped-after"), 11.51)
    assert state.name == "trapped" and state.hit_fraction == 0
    assert "0.0% of the prompt tokens" in state.reason and "13 requests wait" in state.reason
    assert "single turns" in state.reason
    assert state.uncached_prefill_tokens_per_s == state.prompt_tokens_per_s == pytest.approx(22_500, rel=0.05)
    assert state.mean_prompt_tokens == pytest.approx((1_328_415 - 1_069_180) / (1_848 - 1_559))
    assert judge(real("vllm-trapped-before"), real("vllm-trapped-after"), 11.51, 0.8).name == "trapped"


def test_figures_are_those_of_the_interval() -> None:
    state = judge(*pair(0.02), 20.0)
    assert state == TrapState(
        name="trapped",
        reason=state.reason,
        seconds=20.0,
        hit_fraction=0.02,
        prompt_tokens_per_s=10_000,
        uncached_prefill_tokens_per_s=9_800,
        output_tokens_per_s=100,
        running=8,
        waiting=30,
        waiting_change=10,
        preemptions=0,
        mean_prompt_tokens=1_600,
    )


@pytest.mark.parametrize(
    ("hit", "waited", "waits", "expected", "name", "word"),
    [
        (0.00, 20, 30, None, "trapped", "single turns"),
        (0.09, 1, 1, None, "trapped", "single turns"),
        (0.11, 20, 30, None, "unknown", "--expected-hit-fraction"),
        (0.49, 20, 30, None, "unknown", "begins or ends"),
        (0.51, 20, 30, None, "good", "51.0%"),
        (0.00, 0, 0, None, "good", "nothing waits"),
        (0.30, 0, 0, None, "good", "nothing waits"),
        (0.00, 0, 30, None, "unknown", "look again"),
        (0.00, 30, 0, None, "unknown", "look again"),
        (0.00, None, 30, None, "unknown", "how many requests wait"),
        (0.00, 30, None, None, "unknown", "how many requests wait"),
        (0.90, None, None, None, "good", "90.0%"),
        # A system prompt that all share is found in a trap too: only the expectation tells.
        (0.39, 20, 30, 0.8, "trapped", "80% was expected"),
        (0.41, 20, 30, 0.8, "good", "41.0%"),
        (0.12, 20, 30, 0.2, "good", "12.0%"),
        (0.00, 20, 30, 0.0, "unknown", "looks alike"),
        (0.00, 20, 30, 0.04, "unknown", "looks alike"),
        (0.00, 0, 0, 0.0, "good", "nothing waits"),
    ],
)
def test_the_verdict(
    hit: float, waited: int | None, waits: int | None, expected: float | None, name: str, word: str
) -> None:
    state = judge(*pair(hit, waited, waits), INTERVAL_S, expected)
    assert state.name == name and word in state.reason, state.reason


@pytest.mark.parametrize("seconds", [0.0, -5.0, 9.99, math.nan, math.inf])
def test_samples_too_close_together_tell_nothing(seconds: float) -> None:
    state = judge(*pair(0.0), seconds)
    assert state.name == "unknown" and "10 s apart" in state.reason


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ({"prompt_tokens_total": None}, {}, "does not count prompt tokens"),
        ({}, {"cached_tokens_total": None}, "does not count cached prompt tokens"),
        ({"prompt_tokens_total": 9_000_000}, {}, "started anew"),
        ({"cached_tokens_total": 9_000_000}, {}, "started anew"),
        ({"prefix_caching": False}, {"prefix_caching": False}, "switched off"),
        ({"kind": "sglang"}, {}, "different engines"),
        ({"pool_tokens": 60_000}, {}, "different engines"),
        ({"kind": "unknown"}, {"kind": "unknown"}, "neither vLLM's nor SGLang's"),
        ({}, {"prompt_tokens_total": 1_000_000 + MIN_PROMPT_TOKENS - 1}, "only 4,999 prompt tokens"),
        ({}, {"prompt_tokens_total": 1_000_000, "cached_tokens_total": 900_000}, "only 0 prompt tokens"),
    ],
)
def test_samples_that_cannot_be_compared_say_why(before: dict[str, int], after: dict[str, int], word: str) -> None:
    first, last = pair(0.0)
    state = judge(replace(first, **before), replace(last, **after), 10.0)  # type: ignore[arg-type]
    assert state.name == "unknown" and word in state.reason, state.reason


def test_sglangs_retractions_are_said_because_they_make_hits_look_too_many() -> None:
    first, last = pair(0.6, kind="sglang")
    assert "retractions" not in judge(first, last, 10.0).reason
    assert "4 retractions" in judge(first, replace(last, preemptions_total=4), 10.0).reason


@pytest.mark.parametrize("expected", [-0.1, 1.01, math.nan])
def test_an_expectation_is_a_fraction(expected: float) -> None:
    with pytest.raises(EngineError, match="between 0 and 1"):
        judge(*pair(0.0), 10.0, expected)


COUNT = st.none() | st.integers(0, 2_000_000)
SAMPLES = st.builds(
    EngineSample,
    kind=st.sampled_from(["vllm", "vllm", "sglang", "unknown"]),
    waiting_requests=st.none() | st.integers(0, 3),
    prompt_tokens_total=COUNT,
    cached_tokens_total=COUNT,
    output_tokens_total=COUNT,
    preemptions_total=COUNT,
    finished_requests_total=COUNT,
    finished_prompt_tokens_total=COUNT,
    prefix_caching=st.sampled_from([None, True, False]),
)
EXPECTED = st.none() | st.floats(0, 1)


@given(SAMPLES, SAMPLES, st.floats(), EXPECTED)
def test_every_pair_is_judged_with_a_reason_and_finite_figures(
    before: EngineSample, after: EngineSample, seconds: float, expected: float | None
) -> None:
    state = judge(before, after, seconds, expected)
    assert state.name in ("good", "trapped", "unknown") and state.reason
    values = [getattr(state, field.name) for field in fields(state) if field.name not in ("name", "reason", "seconds")]
    assert all(value is None or math.isfinite(value) for value in values)
    if state.name == "trapped":
        assert state.waiting and before.waiting_requests and state.hit_fraction is not None and state.hit_fraction < 0.5
    if state.name != "unknown":
        assert seconds >= INTERVAL_S and None not in (before.prompt_tokens_total, after.cached_tokens_total)


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 50), st.integers(0, 50), EXPECTED)
def test_more_hits_never_make_it_worse(
    less: float, more: float, waited: int, waits: int, expected: float | None
) -> None:
    order = ("trapped", "unknown", "good")
    less, more = sorted((less, more))
    worse, better = (judge(*pair(hit, waited, waits), 10.0, expected).name for hit in (less, more))
    assert order.index(worse) <= order.index(better)


@given(st.floats(0, 1), st.integers(1, 50), st.integers(1, 1_000_000_000), EXPECTED)
def test_what_was_counted_before_does_not_matter(hit: float, waits: int, earlier: int, expected: float | None) -> None:
    first, last = pair(hit, waits, waits)
    names = ("prompt_tokens_total", "cached_tokens_total", "output_tokens_total")
    moved = [replace(s, **{n: getattr(s, n) + earlier for n in names}) for s in (first, last)]
    assert judge(*moved, 10.0, expected) == judge(first, last, 10.0, expected)  # type: ignore[misc]
