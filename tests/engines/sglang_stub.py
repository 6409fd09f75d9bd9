"""A stub of SGLang 0.5.22's HTTP server, after its published source; never held against a running one.

`python -m tests.engines.sglang_stub --port P [SGLang's arguments] [--stub-...]`, as vllm_stub.
Tokens are ids in and out, as with --skip-tokenizer-init.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from tests.engines.faults import Fault
from tests.engines.program import main
from tests.engines.stub import DONE, EVENT_STREAM, EngineStub, StubSettings, StubTurn, event_of, metrics_text

FLUSHED = (
    "Cache flushed.\nPlease check backend logs for more details. "
    "(When there are running or waiting requests, the operation will not be performed.)\n"
)


SAMPLING_KEYS = frozenset(
    {"max_new_tokens", "min_new_tokens", "ignore_eos", "temperature", "top_k", "top_p", "stop", "sampling_seed"}
)
"""Some of those that the real one knows; another one is refused in its words."""


class SGLangStub(EngineStub):
    """`/generate`, `/flush_cache`, `/server_info`, `/health`, `/metrics`."""

    version = "0.5.22"

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/generate", self.generate),
            web.get("/flush_cache", self.flush_cache),
            web.post("/flush_cache", self.flush_cache),
            web.get("/server_info", self.server_info),
            web.get("/health", self.health),
            web.get("/metrics", self.metrics),
        ]

    async def generate(self, request: web.Request) -> web.StreamResponse:
        """Unknown keys are taken in silence, but for those of sampling_params, which are refused."""
        try:
            body = json.loads(await request.read())
            sampling = body.get("sampling_params", {})
            if unknown := sorted(set(sampling) - SAMPLING_KEYS):
                return web.json_response({"error": f"unknown field `{unknown[0]}`"}, status=400)
            prompt, asked = body["input_ids"], int(sampling.get("max_new_tokens", 128))
            assert prompt and all(type(token) is int for token in prompt)
        except (ValueError, KeyError, TypeError, AttributeError, AssertionError):
            return web.json_response({"error": {"message": "invalid request"}}, status=400)
        if len(prompt) + asked > self.settings.longest_context_tokens:
            return self.too_long(bool(body.get("stream")))
        turn = self.add_turn(request, body, prompt, asked)
        error = {"message": "stub's error", "type": "invalid_request_error", "code": 400, "retryable": False}
        if body.get("stream"):
            return await self.answer(request, turn, self.events(turn), error)
        if Fault.HTTP_500 in turn.faults:
            return web.json_response({"error": error}, status=500)
        tokens = [token async for token in self.tokens(turn)]
        return web.json_response({"output_ids": tokens, "meta_info": self.meta_info(turn)})

    def too_long(self, streamed: bool) -> web.Response:
        """Status 400; within a stream status 200, and the error is an event."""
        error = {"message": "The input is too long.", "type": "invalid_request_error", "code": 400, "retryable": False}
        if not streamed:
            return web.json_response({"error": error}, status=400)
        return web.Response(body=event_of({"error": error}) + DONE, headers=EVENT_STREAM)

    def meta_info(self, turn: StubTurn) -> dict[str, Any]:
        """The keys with --enable-metrics; e2e_latency at the end alone."""
        meta = {
            "id": self.identity(turn),
            "finish_reason": {"type": "length", "length": turn.output_tokens} if turn.finished else None,
            "prompt_tokens": self.told_prompt_tokens(turn),
            "weight_version": "default",
            "num_retractions": 0,
            "queue_time": turn.queue_s,
            "reasoning_tokens": 0,
            "completion_tokens": len(turn.output),
            "cached_tokens": turn.cached_tokens,
        }
        if Fault.NO_CACHED_TOKENS in turn.faults or Fault.NULL_DETAILS in turn.faults:
            del meta["cached_tokens"]
        if turn.finished:
            meta["e2e_latency"] = time.monotonic() - turn.received_s
        return meta

    async def events(self, turn: StubTurn) -> AsyncIterator[bytes]:
        """One event a token; each holds all of the output so far."""
        async for _ in self.tokens(turn):
            yield event_of({"output_ids": turn.output, "meta_info": self.meta_info(turn)})
        yield DONE

    async def flush_cache(self, request: web.Request) -> web.Response:
        """400 while busy; with `?timeout=` seconds it waits for idleness first."""
        until_s = time.monotonic() + float(request.query.get("timeout", "0"))
        while self.busy and time.monotonic() < until_s and not self._stopping.is_set():
            await asyncio.sleep(0.005)
        if self.busy or Fault.NEVER_FLUSHED in self.shown_faults():
            waited = "Timed out waiting for idle state." if "timeout" in request.query else "Flush cache failed.\n"
            return web.Response(text=waited, status=400)
        self.cache.clear()
        self.flushes += 1
        return web.Response(text=FLUSHED)

    async def server_info(self, _: web.Request) -> web.Response:
        settings = self.settings
        return web.json_response(
            {
                "served_model_name": settings.served_model,
                "page_size": settings.block_tokens,
                "disable_radix_cache": not settings.caching,
                "context_length": settings.longest_context_tokens,
                "max_running_requests": settings.most_running,
                "max_total_num_tokens": settings.pool_tokens,
                "internal_states": [{}],
                "version": self.version,
                "frontend": "python",
            }
        )

    async def health(self, _: web.Request) -> web.Response:
        """The real one generates a token for it."""
        self.health_checks += 1
        return web.Response()

    async def metrics(self, _: web.Request) -> web.Response:
        """Counters appear with their first count; prompts count when a turn has finished."""
        labels = {"engine_type": "unified", "model_name": self.settings.served_model, "tp_rank": "0"}
        samples: list[tuple[str, str, dict[str, str], float]] = [
            ("sglang:num_running_reqs", "gauge", labels, self.running),
            ("sglang:num_queue_reqs", "gauge", labels, self.waiting),
            ("sglang:token_usage", "gauge", labels, self.cache.kept_tokens / self.settings.pool_tokens),
            ("sglang:max_total_num_tokens", "gauge", labels, self.settings.pool_tokens),
        ]
        finished = [turn for turn in self.turns if turn.finished]
        counted = {
            "prompt_tokens": ("is_streaming", "true", sum(len(turn.prompt) for turn in finished)),
            "generation_tokens": ("is_streaming", "true", sum(len(turn.output) for turn in finished)),
            "cached_tokens": ("cache_source", "device", sum(turn.cached_tokens for turn in finished)),
            "evicted_tokens": ("tp_rank", "0", self.cache.evicted_tokens),
        }
        for name, (label, text, value) in counted.items():
            if value and Fault.NO_COUNTERS not in self.shown_faults():
                samples.append((f"sglang:{name}_total", "counter", {**labels, label: text}, value))
        if Fault.NO_COUNTERS not in self.shown_faults():
            samples.append(("sglang:num_retracted_requests_total", "counter", labels, 0))
        return metrics_text(samples)


def settings_of(arguments: list[str]) -> StubSettings:
    """What SGLang's own arguments make of it."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--served-model-name", default="m")
    parser.add_argument("--page-size", type=int, default=1)
    parser.add_argument("--max-total-tokens", type=int, default=30_000)
    parser.add_argument("--context-length", type=int, default=65_536)
    parser.add_argument("--max-running-requests", type=int, default=256)
    parser.add_argument("--disable-radix-cache", action="store_true")
    known = parser.parse_known_args(arguments)[0]
    return StubSettings(
        served_model=known.served_model_name,
        block_tokens=known.page_size,
        pool_tokens=known.max_total_tokens,
        caching=not known.disable_radix_cache,
        longest_context_tokens=known.context_length,
        most_running=known.max_running_requests,
    )


if __name__ == "__main__":
    main(SGLangStub, settings_of)
