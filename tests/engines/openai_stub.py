"""A stub of any OpenAI-compatible server that returns token ids; vLLM's is built on it.

`python -m tests.engines.openai_stub --port P`: see program.py. Fields of completions
are those that vLLM 0.32.0 sent when asked (recorded_vllm.json); chat completions
speak words, a token a word, for what only looks at messages.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from tests.engines.faults import Fault
from tests.engines.program import main
from tests.engines.stub import DONE, VOCABULARY_SIZE, EngineStub, StubTurn, event_of


class OpenAIStub(EngineStub):
    """`/v1/completions`, `/v1/chat/completions`, `/v1/models`, `/health`."""

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/completions", self.complete),
            web.post("/v1/chat/completions", self.chat),
            web.get("/v1/models", self.models),
            web.get("/health", self.health),
        ]

    async def health(self, _: web.Request) -> web.Response:
        self.health_checks += 1
        return web.Response()

    async def models(self, _: web.Request) -> web.Response:
        limit = self.settings.longest_context_tokens
        model = {"id": self.settings.served_model, "object": "model", "owned_by": "stub", "max_model_len": limit}
        return web.json_response({"object": "list", "data": [model]})

    async def complete(self, request: web.Request) -> web.StreamResponse:
        return await self._turn(request, chat=False)

    async def chat(self, request: web.Request) -> web.StreamResponse:
        return await self._turn(request, chat=True)

    async def _turn(self, request: web.Request, chat: bool) -> web.StreamResponse:
        try:
            body = json.loads(await request.read())
            prompt = chat_tokens(body["messages"]) if chat else body["prompt"]
            assert prompt and all(type(token) is int for token in prompt)
            asked = int(body.get("max_tokens") or body.get("max_completion_tokens") or 16)
        except (ValueError, KeyError, TypeError, AssertionError):
            return refusal(400, "Bad Request", "1 validation error", "body")
        if body.get("model") != self.settings.served_model:
            return refusal(404, "NotFoundError", f"The model `{body.get('model')}` does not exist.", "model")
        if len(prompt) + asked > self.settings.longest_context_tokens:
            return refusal(400, "BadRequestError", "This model's maximum context length is too short.", "input_tokens")
        turn = self.add_turn(request, body, prompt, asked)
        error = {"message": "EngineCore encountered an issue.", "type": "InternalServerError", "param": None}
        if body.get("stream"):
            return await self.answer(request, turn, self.events(turn, chat), {**error, "code": 500})
        if Fault.HTTP_500 in turn.faults:
            return web.json_response({"error": {**error, "code": 500}}, status=500)
        tokens = [token async for token in self.tokens(turn)]
        return web.json_response(self.whole(turn, tokens, chat))

    def usage(self, turn: StubTurn) -> dict[str, Any]:
        told, output = self.told_prompt_tokens(turn), len(turn.output)
        counts = {"prompt_tokens": told, "total_tokens": told + output, "completion_tokens": output}
        details: dict[str, int] | None = {"cached_tokens": turn.cached_tokens}
        if not self.settings.cached_tokens_told or Fault.NULL_DETAILS in turn.faults:
            details = None
        elif Fault.NO_CACHED_TOKENS in turn.faults:
            details = {}
        return {**counts, "prompt_tokens_details": details}

    def head(self, identity: str, chat: bool) -> dict[str, Any]:
        kind = "chat.completion.chunk" if chat else "text_completion"
        return {"id": identity, "object": kind, "created": 1_796_023_823, "model": self.settings.served_model}

    async def events(self, turn: StubTurn, chat: bool) -> AsyncIterator[bytes]:
        """One event a token; the first echoes the prompt; the usage last."""
        head = self.head(self.identity(turn), chat)
        first, ids_told = True, bool(turn.body.get("return_token_ids"))
        async for token in self.tokens(turn):
            choice: dict[str, Any] = {"index": 0}
            choice |= {"delta": {"content": f"w{token} "}} if chat else {"text": "" if ids_told else f"w{token} "}
            reason = "length" if turn.finished else None
            choice |= {"logprobs": None, "finish_reason": reason, "stop_reason": None}
            if ids_told and not chat:
                choice |= {"prompt_token_ids": turn.prompt if first else None, "token_ids": [token]}
            first = False
            yield event_of({**head, "choices": [choice]})
        if (turn.body.get("stream_options") or {}).get("include_usage"):
            yield event_of({**head, "choices": [], "usage": self.usage(turn), "system_fingerprint": "stub"})
        yield DONE

    def whole(self, turn: StubTurn, tokens: list[int], chat: bool) -> dict[str, Any]:
        """The answer without a stream."""
        text = "".join(f"w{token} " for token in tokens)
        choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": "length", "stop_reason": None}
        if chat:
            choice["message"] = {"role": "assistant", "content": text}
        elif turn.body.get("return_token_ids"):
            choice |= {"text": "", "token_ids": tokens, "prompt_token_ids": turn.prompt}
        else:
            choice["text"] = text
        head = self.head(self.identity(turn), chat) | ({"object": "chat.completion"} if chat else {})
        return {**head, "choices": [choice], "usage": self.usage(turn)}


def chat_tokens(messages: list[dict[str, str]]) -> list[int]:
    """A token a word, the same for the same word everywhere."""
    words = [word for message in messages for word in (f"<{message['role']}>", *message["content"].split())]
    return [zlib.crc32(word.encode()) % VOCABULARY_SIZE for word in words]


def refusal(status: int, kind: str, message: str, parameter: str) -> web.Response:
    """An error as vLLM 0.32.0 writes it."""
    error = {"message": message, "type": kind, "param": parameter, "code": status}
    return web.json_response({"error": error}, status=status)


if __name__ == "__main__":
    main(OpenAIStub)
