"""The prompt that vLLM echoes is not decoded: it would be most of a turn's cost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runners.engines import stream
from runners.engines.vllm import VLLMAdapter

EVENTS = json.loads(Path(__file__).with_name("recorded_vllm.json").read_text())["events"]


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")], ids=["as vLLM writes it", "as others may"])
def test_the_answer_is_the_same_and_the_echo_is_left_out(
    separators: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []
    loads = json.loads
    monkeypatch.setattr(stream.json, "loads", lambda data: (decoded.append(len(data)), loads(data))[1])
    EVENTS[0]["choices"][0]["prompt_token_ids"] = list(range(1000))
    body = b"".join(b"data: " + json.dumps(event, separators=separators).encode() + b"\n\n" for event in EVENTS)
    reply = VLLMAdapter().reply(body + b"data: [DONE]\n\n")
    assert (reply.output_ids, reply.prompt_tokens, reply.cached_tokens) == ((154, 680, 154), 100, 0)
    assert (max(decoded) < 500) == (separators == (",", ":"))


def test_words_of_an_answer_are_no_echo() -> None:
    EVENTS[0]["choices"][0] |= {"text": '"prompt_token_ids":[1]', "prompt_token_ids": None}
    body = b"".join(b"data: " + json.dumps(event, separators=(",", ":")).encode() + b"\n\n" for event in EVENTS)
    assert VLLMAdapter().reply(body + b"data: [DONE]\n\n").output_ids == (154, 680, 154)
