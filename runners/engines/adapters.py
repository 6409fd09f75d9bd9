"""The adapters by name, as study.yaml names them."""

from __future__ import annotations

from runners.engines.adapter import Adapter
from runners.engines.openai import OpenAIAdapter
from runners.engines.sglang import SGLangAdapter
from runners.engines.vllm import VLLMAdapter

ADAPTERS: dict[str, Adapter] = {adapter.name: adapter for adapter in (VLLMAdapter(), SGLangAdapter(), OpenAIAdapter())}
"""Every engine whose words are known."""
