"""Real vLLM text, SGLang's by its source's names, and text that is hostile."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import EngineError
from runners.engines import metrics
from runners.engines.metrics import EngineSample, parse_metrics

DATA = Path(__file__).parent / "data"


def text_of(name: str) -> str:
    return (DATA / f"{name}.prom").read_text("utf-8")


def sample_of(name: str) -> EngineSample:
    return parse_metrics(text_of(name))


def test_vllm_that_just_started_counts_from_zero() -> None:
    assert sample_of("vllm-idle") == EngineSample(
        kind="vllm",
        running_requests=0,
        waiting_requests=0,
        running_tokens=0,
        prompt_tokens_total=0,
        cached_tokens_total=0,
        output_tokens_total=0,
        preemptions_total=0,
        pool_tokens=6_400,
        block_tokens=32,
        prefix_caching=True,
        finished_requests_total=0,
        finished_prompt_tokens_total=0,
    )


def test_vllm_at_work() -> None:
    sample = sample_of("vllm-trapped-after")
    assert (sample.running_requests, sample.waiting_requests) == (4, 13)
    assert sample.running_tokens == round(0.6783919597989949 * 6_400)
    assert (sample.prompt_tokens_total, sample.cached_tokens_total) == (1_330_640, 134_304)
    assert sample.uncached_prefill_tokens_total == 1_196_336
    assert (sample.output_tokens_total, sample.preemptions_total) == (18_491, 4)
    assert (sample.finished_requests_total, sample.finished_prompt_tokens_total) == (1_848, 1_328_415)


def test_vllms_own_breakdown_agrees_with_what_is_taken_for_uncached() -> None:
    text = text_of("vllm-trapped-after")
    computed = re.search(r'prompt_tokens_by_source_total\{.*source="local_compute"\} (\S+)', text)
    assert computed and parse_metrics(text).uncached_prefill_tokens_total == float(computed[1])


def test_vllm_without_a_prefix_cache_says_so() -> None:
    sample = sample_of("vllm-caching-off")
    assert sample.prefix_caching is False
    assert sample.cached_tokens_total == 0 and (sample.prompt_tokens_total or 0) > 10_000


def test_hits_stand_in_only_where_vllm_does_not_count_cached_prompt_tokens() -> None:
    text = text_of("vllm-good-after").replace(
        'vllm:prefix_cache_hits_total{engine="0",model_name="m"} 76352.0',
        'vllm:prefix_cache_hits_total{engine="0",model_name="m"} 5.0',
    )
    assert parse_metrics(text).cached_tokens_total == 76_352
    older = re.sub(r"^vllm:prompt_tokens_cached.*\n", "", text, flags=re.MULTILINE)
    assert parse_metrics(older).cached_tokens_total == 5


def test_sglang_sums_engines_and_sources_but_not_the_ranks_of_one_engine() -> None:
    assert sample_of("sglang") == EngineSample(
        kind="sglang",
        running_requests=21,
        waiting_requests=41,
        running_tokens=160_000,
        idle_cached_tokens=38_000,
        prompt_tokens_total=1_000_000,
        cached_tokens_total=750_000,
        output_tokens_total=10_000,
        preemptions_total=3,
        evicted_tokens_total=250_000,
        pool_tokens=200_000,
        block_tokens=1,
        prefix_caching=None,
        finished_requests_total=1_000,
        finished_prompt_tokens_total=1_000_000,
    )


def test_sglangs_page_size_as_a_label() -> None:
    info = 'sglang:cache_config_info{page_size="64",num_pages="100"} 1\n'
    assert parse_metrics(info).block_tokens == 64


def test_engines_of_one_vllm_server_are_summed_but_each_shows_the_blocks_of_all() -> None:
    one = text_of("vllm-trapped-after")
    lines = [line for line in one.splitlines() if not line.startswith("#")]
    both = one + "\n".join(line.replace('engine="0"', 'engine="1"') for line in lines if "engine=" in line) + "\n"
    single, double = parse_metrics(one), parse_metrics(both)
    for name in ("running_requests", "waiting_requests", "prompt_tokens_total", "cached_tokens_total"):
        assert getattr(double, name) == 2 * getattr(single, name), name
    for name in ("pool_tokens", "block_tokens", "prefix_caching", "running_tokens"):
        assert getattr(double, name) == getattr(single, name), name
    unlike = both.replace('num_gpu_blocks="200"', 'num_gpu_blocks="400"', 1)
    assert parse_metrics(unlike).pool_tokens is None


@pytest.mark.parametrize("name", ["vllm-trapped-after", "sglang"])
def test_what_is_not_shown_is_unknown_and_never_zero(name: str) -> None:
    assert parse_metrics(f"{name.partition('-')[0]}:other 1\n") == EngineSample(name.partition("-")[0])


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-1", "1e300", "9007199254740994"])
def test_a_value_that_is_no_count_makes_its_field_unknown_and_no_other(value: str) -> None:
    good = sample_of("sglang")
    text = re.sub(r"^(sglang:num_queue_reqs.*) \S+$", rf"\1 {value}", text_of("sglang"), count=1, flags=re.MULTILINE)
    bad = parse_metrics(text)
    assert bad.waiting_requests is None
    assert {f.name for f in fields(bad) if getattr(bad, f.name) != getattr(good, f.name)} == {"waiting_requests"}


def test_a_usage_over_one_and_labels_that_are_no_numbers_are_unknown() -> None:
    text = text_of("vllm-trapped-after")
    assert parse_metrics(re.sub(r"(usage_perc\{.*) \S+", r"\1 1.5", text)).running_tokens is None
    odd = parse_metrics(text.replace('num_gpu_blocks="200"', 'num_gpu_blocks="None"'))
    assert (odd.pool_tokens, odd.running_tokens, odd.block_tokens) == (None, None, 32)
    assert parse_metrics(text.replace('caching="True"', 'caching="maybe"')).prefix_caching is None


def test_text_of_another_program_or_of_two_engines_is_of_an_unknown_kind() -> None:
    assert parse_metrics("node_load1 0.5\n") == EngineSample("unknown")
    assert parse_metrics(text_of("sglang") + text_of("vllm-idle")).kind == "unknown"


@pytest.mark.parametrize(
    "text", ["", "\n\n", "<html><body>hello</body></html>", "# only a remark\n", '{"a": 1}', "vllm:x"]
)
def test_text_that_is_no_exposition_is_refused(text: str) -> None:
    with pytest.raises(EngineError, match="no Prometheus text") as caught:
        parse_metrics(text)
    assert caught.value.remedy


def test_text_over_the_caps_is_refused() -> None:
    with pytest.raises(EngineError, match="longer"):
        parse_metrics("vllm:x 1\n" * (metrics.CAP_CHARACTERS // 9 + 1))
    with pytest.raises(EngineError, match="longer"):
        parse_metrics(f'vllm:x{{a="{"b" * metrics.LINE_CHARACTERS}"}} 1\n')


PIECES = st.sampled_from(
    ["vllm:", "sglang:", "prompt_tokens_total", "{", "}", '"', "=", ",", "\\", " ", "1", "#", "\n", "\0", "é"]
)


@given(st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=25).map("".join)))
def test_hostile_text_gives_a_sample_or_an_error_in_words(text: str) -> None:
    try:
        assert parse_metrics(text).kind in ("vllm", "sglang", "unknown")
    except EngineError as error:
        assert error.remedy


@given(st.dictionaries(st.sampled_from(["prompt", "generation", "cached"]), st.integers(0, 2**40), min_size=1))
def test_counters_come_back_as_they_were_shown(shown: dict[str, int]) -> None:
    sample = parse_metrics("".join(f'sglang:{name}_tokens_total{{model_name="m"}} {n}\n' for name, n in shown.items()))
    read = (sample.prompt_tokens_total, sample.output_tokens_total, sample.cached_tokens_total)
    assert read == (shown.get("prompt"), shown.get("generation"), shown.get("cached"))
