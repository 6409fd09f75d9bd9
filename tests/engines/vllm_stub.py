"""A stub of vLLM 0.32.0's API server: the fields that a real one sent (recorded_vllm.json).

`python -m tests.engines.vllm_stub --port P [vLLM's arguments] [--stub-...]` reads what it
knows of the arguments that start the real one, and takes the others in silence.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping

from aiohttp import web

from tests.engines.faults import Fault
from tests.engines.openai_stub import OpenAIStub
from tests.engines.program import main
from tests.engines.stub import StubSettings, metrics_text


class VLLMStub(OpenAIStub):
    """Completions, and vLLM's own `/version`, `/reset_prefix_cache` and `/metrics`."""

    version = "0.32.0"

    def routes(self) -> list[web.RouteDef]:
        own = [web.get("/version", self.tell_version), web.get("/metrics", self.metrics)]
        if self.settings.can_flush:
            own.append(web.post("/reset_prefix_cache", self.reset_prefix_cache))
        return [*super().routes(), *own]

    async def tell_version(self, _: web.Request) -> web.Response:
        return web.json_response({"version": self.version})

    async def reset_prefix_cache(self, _: web.Request) -> web.Response:
        """Status 200 either way: success is false while requests run."""
        if self.busy or Fault.NEVER_FLUSHED in self.shown_faults():
            return web.json_response({"success": False})
        self.cache.clear()
        self.flushes += 1
        return web.json_response({"success": True})

    async def metrics(self, _: web.Request) -> web.Response:
        settings, labels = self.settings, {"engine": "0", "model_name": self.settings.served_model}
        blocks = settings.pool_tokens // settings.block_tokens
        config = {
            "block_size": str(settings.block_tokens),
            "enable_prefix_caching": str(settings.caching),
            "engine": "0",
            "kv_cache_size_tokens": str(blocks * settings.block_tokens),
            "num_gpu_blocks": str(blocks),
        }
        samples = [
            ("vllm:num_requests_running", "gauge", labels, self.running),
            ("vllm:num_requests_waiting", "gauge", labels, self.waiting),
            ("vllm:kv_cache_usage_perc", "gauge", labels, min(1.0, self.running / settings.most_running)),
            ("vllm:cache_config_info", "gauge", config, 1.0),
        ]
        if Fault.NO_COUNTERS in self.shown_faults():
            return metrics_text(samples)
        # With caching off the real one counts no queries.
        queried = self.prompt_tokens if settings.caching else 0
        computed = self.prompt_tokens - self.cached_tokens
        finished = sum(turn.finished for turn in self.turns)
        for name, value in (
            ("prefix_cache_queries", queried),
            ("prefix_cache_hits", self.cached_tokens),
            ("external_prefix_cache_queries", 0),
            ("external_prefix_cache_hits", 0),
            ("num_preemptions", 0),
            ("prompt_tokens", self.prompt_tokens),
            ("prompt_tokens_cached", self.cached_tokens),
            ("generation_tokens", self.output_tokens),
        ):
            samples.append((f"vllm:{name}_total", "counter", labels, value))
        for source, value in (("local_compute", computed), ("local_cache_hit", self.cached_tokens)):
            samples.append(("vllm:prompt_tokens_by_source_total", "counter", {**labels, "source": source}, value))
        for reason, value in (("length", finished), ("abort", 0)):
            samples.append(("vllm:request_success_total", "counter", {**labels, "finished_reason": reason}, value))
        return metrics_text(samples)


def settings_of(arguments: list[str], environment: Mapping[str, str]) -> StubSettings:
    """What vLLM's own arguments and environment make of it."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--served-model-name", default="m")
    parser.add_argument("--block-size", type=int, default=32)
    parser.add_argument("--num-gpu-blocks-override", type=int, default=938)
    parser.add_argument("--max-model-len", type=int, default=65_536)
    parser.add_argument("--max-num-seqs", type=int, default=256)
    parser.add_argument("--enable-prefix-caching", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--enable-prompt-tokens-details", action="store_true")
    known = parser.parse_known_args(arguments)[0]
    return StubSettings(
        served_model=known.served_model_name,
        block_tokens=known.block_size,
        pool_tokens=known.block_size * known.num_gpu_blocks_override,
        caching=known.enable_prefix_caching,
        cached_tokens_told=known.enable_prompt_tokens_details,
        can_flush=environment.get("VLLM_SERVER_DEV_MODE") == "1",
        longest_context_tokens=known.max_model_len,
        most_running=known.max_num_seqs,
    )


if __name__ == "__main__":
    main(VLLMStub, lambda arguments: settings_of(arguments, os.environ))
