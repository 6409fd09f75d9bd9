"""What a live engine says of itself: Prometheus text to one `EngineSample`.

Counters only, for whatever is compared over time: SGLang overwrites its
`cache_hit_rate` with every batch, and ratios cannot be added up over engines.
Names are those of vLLM 0.32 and SGLang 0.5.22.

Cached tokens of vLLM are `prompt_tokens_cached_total`, not
`prefix_cache_hits_total`: the first counts a prompt when `prompt_tokens_total`
does, as its prefill ends, and adds what came from other machines' caches; the second counts
hits as requests are admitted. It stands in only where the first is absent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from registry.errors import EngineError

CAP_CHARACTERS = 4_194_304
"""Most text that is read; a busy engine shows about 100,000 characters."""

LINE_CHARACTERS = 32_768
"""Longest line that is read."""

_LARGEST = 2.0**53
_NUMBER = re.compile(r"[0-9]{1,15}")
_RANKS = frozenset({"tp_rank", "pp_rank", "moe_ep_rank", "pid"})


@dataclass(frozen=True)
class EngineSample:
    """One scrape; None where the engine does not show it (absent counters mean unknown, never 0).

    `idle_cached_tokens` are contexts that no request uses and that eviction
    may take. `finished_*` are requests that ended and their prompts' tokens.
    """

    kind: str
    running_requests: int | None = None
    waiting_requests: int | None = None
    running_tokens: int | None = None
    idle_cached_tokens: int | None = None
    prompt_tokens_total: int | None = None
    cached_tokens_total: int | None = None
    output_tokens_total: int | None = None
    preemptions_total: int | None = None
    evicted_tokens_total: int | None = None
    pool_tokens: int | None = None
    block_tokens: int | None = None
    prefix_caching: bool | None = None
    finished_requests_total: int | None = None
    finished_prompt_tokens_total: int | None = None

    @property
    def uncached_prefill_tokens_total(self) -> int | None:
        """Prompt tokens that were computed, not found in the cache."""
        if self.prompt_tokens_total is None or self.cached_tokens_total is None:
            return None
        return max(0, self.prompt_tokens_total - self.cached_tokens_total)


Labels = Mapping[str, str]
Samples = Mapping[str, list[tuple[Labels, float]]]


def parse_metrics(text: str) -> EngineSample:
    """The sample in an engine's `/metrics` answer; `kind` is vllm, sglang or unknown.

    Values that are no finite number from 0 to 2^53 make their field None.
    Raises EngineError for text that is no Prometheus exposition, or too long.
    """
    samples = _samples(text)
    engines = {name.partition(":")[0] for name in samples} & {"vllm", "sglang"}
    if engines == {"vllm"}:
        return _vllm(samples)
    if engines == {"sglang"}:
        return _sglang(samples)
    return EngineSample("unknown")


def _samples(text: str) -> Samples:
    from prometheus_client.parser import text_string_to_metric_families

    if len(text) > CAP_CHARACTERS or max(map(len, text.split("\n"))) > LINE_CHARACTERS:
        raise EngineError("the engine's metrics are longer than any engine's", value=f"{len(text):,} characters")
    found: dict[str, list[tuple[Labels, float]]] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                found.setdefault(sample.name, []).append((sample.labels, float(sample.value)))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        found.clear()
    if not found:
        raise EngineError("the answer is no Prometheus text", remedy="give the engine's own address, without a path")
    return found


def _vllm(samples: Samples) -> EngineSample:
    infos = [labels for labels, _ in samples.get("vllm:cache_config_info", ())]
    # Every engine of a server shows the blocks of all of them together.
    blocks, block = _same(_labelled(infos, "num_gpu_blocks")), _same(_labelled(infos, "block_size"))
    pool = blocks * block if blocks and block else None
    cached = _total(samples, "vllm:prompt_tokens_cached_total")
    return EngineSample(
        kind="vllm",
        running_requests=_total(samples, "vllm:num_requests_running"),
        waiting_requests=_total(samples, "vllm:num_requests_waiting"),
        running_tokens=_share(samples, "vllm:kv_cache_usage_perc", pool),
        prompt_tokens_total=_total(samples, "vllm:prompt_tokens_total"),
        cached_tokens_total=_total(samples, "vllm:prefix_cache_hits_total") if cached is None else cached,
        output_tokens_total=_total(samples, "vllm:generation_tokens_total"),
        preemptions_total=_total(samples, "vllm:num_preemptions_total"),
        pool_tokens=pool,
        block_tokens=block,
        prefix_caching=_switch(infos, "enable_prefix_caching"),
        finished_requests_total=_total(samples, "vllm:request_prompt_tokens_count"),
        finished_prompt_tokens_total=_total(samples, "vllm:request_prompt_tokens_sum"),
    )


def _sglang(samples: Samples) -> EngineSample:
    pool = _total(samples, "sglang:max_total_num_tokens")
    infos = [labels for labels, _ in samples.get("sglang:cache_config_info", ())]
    prompts = _total(samples, "sglang:prompt_tokens_total")
    # Under priority scheduling a queue's total is the one whose priority is empty.
    all_priorities = {
        name: [(labels, value) for labels, value in samples.get(name, ()) if not labels.get("priority")]
        for name in ("sglang:num_running_reqs", "sglang:num_queue_reqs")
    }
    return EngineSample(
        kind="sglang",
        running_requests=_total(all_priorities, "sglang:num_running_reqs"),
        waiting_requests=_total(all_priorities, "sglang:num_queue_reqs"),
        running_tokens=_share(samples, "sglang:token_usage", pool),
        idle_cached_tokens=_total(samples, "sglang:kv_evictable_tokens"),
        prompt_tokens_total=prompts,
        cached_tokens_total=_total(samples, "sglang:cached_tokens_total"),
        output_tokens_total=_total(samples, "sglang:generation_tokens_total"),
        preemptions_total=_total(samples, "sglang:num_retracted_requests_total"),
        evicted_tokens_total=_total(samples, "sglang:evicted_tokens_total"),
        pool_tokens=pool,
        block_tokens=_same(_labelled(infos, "page_size")) or _same(_values(samples, "sglang:page_size")),
        finished_requests_total=_total(samples, "sglang:num_requests_total"),
        finished_prompt_tokens_total=prompts,
    )


def _values(samples: Samples, name: str) -> list[float]:
    """One value for each engine and label; none at all where one is no count.

    Ranks of one engine each show the whole: the largest of them stands for it.
    """
    greatest: dict[tuple[tuple[str, str], ...], float] = {}
    for labels, value in samples.get(name, ()):
        if not 0 <= value <= _LARGEST:
            return []
        key = tuple(sorted((label, text) for label, text in labels.items() if label not in _RANKS))
        greatest[key] = max(value, greatest.get(key, 0.0))
    return list(greatest.values())


def _total(samples: Samples, name: str) -> int | None:
    values = _values(samples, name)
    return round(math.fsum(values)) if values else None


def _share(samples: Samples, name: str, pool: int | None) -> int | None:
    """A used share of the pool in tokens; engines of one server have pools of one size."""
    shares = _values(samples, name)
    if pool is None or not shares or max(shares) > 1:
        return None
    return round(math.fsum(shares) / len(shares) * pool)


def _labelled(infos: Iterable[Labels], label: str) -> list[int]:
    """A label's numbers, one for each engine; none at all where one has none."""
    texts = [labels.get(label, "") for labels in infos]
    return [int(text) for text in texts] if all(map(_NUMBER.fullmatch, texts)) else []


def _same(values: list[int] | list[float]) -> int | None:
    return round(values[0]) if len(set(values)) == 1 else None


def _switch(infos: Iterable[Labels], label: str) -> bool | None:
    said = {labels.get(label) for labels in infos}
    return {"True": True, "False": False}.get(said.pop() or "") if len(said) == 1 else None
