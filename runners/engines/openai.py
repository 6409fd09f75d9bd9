"""Any server of OpenAI-compatible completions that returns token ids."""

from __future__ import annotations

import json
import re
from typing import Any

from registry.errors import EngineError
from runners.engines.adapter import EngineOrder, Reply
from runners.engines.stream import count, events, token_ids

_TOKEN = re.compile(rb'"token_ids"\s*:\s*\[\s*\d')

_ECHO, _NO_ECHO = b'"prompt_token_ids":[', b'"prompt_token_ids":null'


class OpenAIAdapter:
    """`POST /v1/completions`, streamed; source: vLLM 0.32.0's API server."""

    name = "openai"
    path = "/v1/completions"
    flush_path: str | None = None
    version_path: str | None = None
    resolved_path: str | None = None

    def command(self, order: EngineOrder, port: int) -> list[str]:
        """EngineError: no one knows how to start any server."""
        raise EngineError(
            "the adapter openai starts no server", remedy="give engines.<cell>.url, or use the adapter vllm or sglang"
        )

    def body(self, model: str, prompt: bytes, output_tokens: int) -> bytes:
        """Exactly `output_tokens` tokens, greedy, their ids, and the usage."""
        return (
            b'{"model":%b,"prompt":[%b],"max_tokens":%d,"ignore_eos":true,"temperature":0,'
            b'"return_token_ids":true,"stream":true,"stream_options":{"include_usage":true}}'
            % (json.dumps(model).encode(), prompt, output_tokens)
        )

    def shows_token(self, data: bytes) -> bool:
        """Whether an event with an output token has begun."""
        return _TOKEN.search(data) is not None

    def reply(self, stream: bytes) -> Reply:
        """Output ids over all events, counts from the last."""
        found: list[int] = []
        usage: Any = None
        for event in events(_without_echo(stream)):
            choices = event.get("choices")
            if isinstance(choices, list) and choices and isinstance(choices[0], dict):
                found += token_ids(choices[0].get("token_ids"))
            usage = event.get("usage") or usage
        if not isinstance(usage, dict):
            raise EngineError("the engine returned no usage", remedy="it must support stream_options.include_usage")
        return Reply(tuple(found), count(usage.get("prompt_tokens"), "prompt_tokens"), _cached(usage))

    def check_flushed(self, status: int, body: bytes) -> bool:
        """Never asked."""
        return True


def _without_echo(stream: bytes) -> bytes:
    """The stream without the prompt's ids, which the first event echoes: to
    decode 10,000 of them would cost more than all the rest of a turn.
    """
    start = stream.find(_ECHO)
    end = stream.find(b"]", start)
    return stream if start < 0 or end < 0 else stream[:start] + _NO_ECHO + stream[end + 1 :]


def _cached(usage: dict[str, Any]) -> int | None:
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return None if cached is None else count(cached, "cached_tokens")
