"""SGLang 0.5.22: `/generate` with token ids. Written from its source and
documentation, and held against a stub of its fields; not run here on a GPU.
"""

from __future__ import annotations

import re
from typing import Any

from registry.errors import EngineError
from runners.engines.adapter import SERVED_MODEL, EngineOrder, Reply
from runners.engines.stream import count, events, shown, token_ids

_TOKEN = re.compile(rb'"output_ids"\s*:\s*\[\s*\d')


class SGLangAdapter:
    """`POST /generate`, streamed: each event holds everything so far."""

    name = "sglang"
    path = "/generate"
    flush_path: str | None = "/flush_cache?timeout=60"
    version_path: str | None = "/server_info"
    resolved_path: str | None = "/server_info"

    def command(self, order: EngineOrder, port: int) -> list[str]:
        """Everything that SGLang would choose by the machine is pinned."""
        cell, setup = order.cell, order.setup
        return [
            *("--model-path", order.model, "--served-model-name", SERVED_MODEL),
            *("--host", "127.0.0.1", "--port", str(port)),
            *("--context-length", str(order.longest_turn_tokens)),
            *("--max-total-tokens", str(cell.pool_tokens)),
            *("--page-size", str(cell.cache_block_tokens)),
            *("--chunked-prefill-size", str(setup.chunk_tokens)),
            *("--max-running-requests", str(setup.batch_requests)),
            *("--schedule-policy", "fcfs", "--radix-eviction-policy", "lru"),
            *("--random-seed", str(order.seed % 2**31)),
            *([] if order.caching else ["--disable-radix-cache"]),
            *("--enable-metrics", "--enable-cache-report", "--skip-tokenizer-init"),
        ]

    def body(self, model: str, prompt: bytes, output_tokens: int) -> bytes:
        """Exactly `output_tokens` tokens, greedy. SGLang takes unknown keys in
        silence, so nothing here comes from a file.
        """
        return (
            b'{"input_ids":[%b],"sampling_params":{"max_new_tokens":%d,"ignore_eos":true,"temperature":0},"stream":true}'
            % (prompt, output_tokens)
        )

    def shows_token(self, data: bytes) -> bool:
        """Whether an event with an output token has begun."""
        return _TOKEN.search(data) is not None

    def reply(self, stream: bytes) -> Reply:
        """The last event's; after a retraction its queue time misleads."""
        found = events(stream)
        last = found[-1] if found else {}
        meta = last.get("meta_info")
        if not isinstance(meta, dict):
            raise EngineError("the engine returned no meta_info", value=shown(str(last).encode()))
        retractions = meta.get("num_retractions")
        retracted = 0 if retractions is None else count(retractions, "num_retractions")
        cached = meta.get("cached_tokens")
        return Reply(
            tuple(token_ids(last.get("output_ids"))),
            count(meta.get("prompt_tokens"), "prompt_tokens"),
            None if cached is None else count(cached, "cached_tokens"),
            retracted,
            None if retracted else _seconds(meta.get("queue_time")),
        )

    def check_flushed(self, status: int, body: bytes) -> bool:
        """SGLang answers 400 while requests run."""
        if status not in (200, 400):
            raise EngineError("SGLang does not empty its cache", value=f"status {status}: {shown(body)}")
        return status == 200


def _seconds(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        return None
    return float(value)
