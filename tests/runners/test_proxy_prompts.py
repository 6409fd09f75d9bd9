"""Prompts and replies as bytes: what continues what, and what is not read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runners.proxy.prompts import GATED_PATHS, MAX_READ_BYTES, MESSAGES, TEXT, TOKENS, fields_of, prompt_of
from runners.proxy.replies import MAX_REPLY_BYTES, ReplyReader

CHAT, COMPLETIONS, RESPONSES, GENERATE = "/v1/chat/completions", "/v1/completions", "/v1/responses", "/generate"
STREAM = {"Content-Type": "text/event-stream; charset=utf-8"}
CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "/", "all": true}'}}


def events(*values: Any) -> bytes:
    lines = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return "".join(f"data: {line}\r\n\r\n" for line in lines).encode()


def read(path: str, kind: bytes, body: bytes, headers: dict[str, str] | None = None, piece: int = 7) -> bytes | None:
    reader = ReplyReader(kind, path, headers or {"Content-Type": "application/json"})
    for start in range(0, len(body), piece):
        reader.feed(body[start : start + piece])
    return reader.reply()


def encoded(path: str, fields: dict[str, Any]) -> bytes:
    prompt = prompt_of(path, fields)
    assert prompt is not None
    return prompt.encoded


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


CHAT_REPLIES = [
    (json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": " four\n"}}]}).encode(), {}),
    (
        events(
            {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
            {"choices": [{"index": 0, "delta": {"content": "fo"}}, {"index": 1, "delta": {"content": "no"}}]},
            {"choices": [{"index": 0, "delta": {"content": "ur"}, "finish_reason": "stop"}]},
            {"choices": [], "usage": {"total_tokens": 3}},
            "[DONE]",
        ),
        STREAM,
    ),
]


@pytest.mark.parametrize(("body", "headers"), CHAT_REPLIES, ids=["whole", "streamed"])
@pytest.mark.parametrize("sent_back", ["four", [{"type": "text", "text": "four"}]], ids=["text", "parts"])
def test_the_next_turn_of_a_chat_begins_with_prompt_and_reply(body: bytes, headers: Any, sent_back: Any) -> None:
    first = [{"role": "system", "content": "count"}, user("2 + 2?")]
    reply = read(CHAT, MESSAGES, body, headers)
    assert reply is not None
    second = [*first, {"role": "assistant", "content": sent_back, "refusal": None}, user("and 3?")]
    assert encoded(CHAT, {"messages": second}).startswith(encoded(CHAT, {"messages": first}) + reply)
    other = [*first, {"role": "assistant", "content": "five"}, user("and 3?")]
    assert not encoded(CHAT, {"messages": other}).startswith(encoded(CHAT, {"messages": first}) + reply)


def test_tool_calls_are_told_by_name_and_arguments() -> None:
    pieces = [{"index": 0, "id": "x", "function": {"name": "ls", "arguments": ""}}]
    pieces += [{"index": 0, "function": {"arguments": part}} for part in ('{"all":true,', '"path":"/"}')]
    body = events(*({"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]} for piece in pieces))
    reply = read(CHAT, MESSAGES, body, STREAM)
    whole = json.dumps({"choices": [{"message": {"content": None, "tool_calls": [CALL]}}]}).encode()
    assert reply == read(CHAT, MESSAGES, whole)
    first = [user("look")]
    second = [*first, {"role": "assistant", "content": None, "tool_calls": [CALL]}, {"role": "tool", "content": "a"}]
    assert reply is not None
    assert encoded(CHAT, {"messages": second}).startswith(encoded(CHAT, {"messages": first}) + reply)


def test_messages_do_not_run_into_each_other() -> None:
    one = encoded(CHAT, {"messages": [user("a b")]})
    two = encoded(CHAT, {"messages": [user("a"), user("b")]})
    assert not two.startswith(one)
    assert not one.startswith(two)
    assert not encoded(CHAT, {"messages": [user("ab")]}).startswith(encoded(CHAT, {"messages": [user("a")]}))


@pytest.mark.parametrize(
    ("path", "kind", "prompt", "answer", "headers", "following"),
    [
        (COMPLETIONS, TEXT, "a", {"choices": [{"text": "b", "index": 0}]}, {}, "ab and more"),
        (COMPLETIONS, TEXT, ["ä"], {"choices": [{"text": "ö"}]}, {}, "äö and more"),
        (COMPLETIONS, TOKENS, [1, 2], {"choices": [{"text": "b", "token_ids": [3, 4]}]}, {}, [1, 2, 3, 4, 5]),
        (COMPLETIONS, TOKENS, [1, 2], {"choices": [{"text": "b"}]}, {}, [1, 2, 3, 4, 5]),
        (GENERATE, TOKENS, [1, 2], {"text": "b", "output_ids": [3, 4]}, {}, [1, 2, 3, 4, 5]),
        (GENERATE, TEXT, "a", {"text": "b", "meta_info": {}}, {}, "ab and more"),
    ],
)
def test_the_next_turn_of_a_completion_begins_with_prompt_and_reply(
    path: str, kind: bytes, prompt: Any, answer: Any, headers: Any, following: Any
) -> None:
    name = {COMPLETIONS: "prompt", GENERATE: "input_ids" if kind == TOKENS else "text"}[path]
    reply = read(path, kind, json.dumps(answer).encode(), headers)
    assert reply is not None
    first = prompt_of(path, {name: prompt})
    assert first is not None
    assert first.kind == kind
    assert encoded(path, {name: following}).startswith(first.encoded + reply)


def test_streams_of_token_ids_are_put_together() -> None:
    body = events(*({"choices": [{"index": 0, "text": "x", "token_ids": [n]}]} for n in (3, 4)), "[DONE]")
    assert read(COMPLETIONS, TOKENS, body, STREAM) == encoded(COMPLETIONS, {"prompt": [3, 4]})[1:]
    cumulative = events(*({"text": "x" * n, "output_ids": list(range(n))} for n in (1, 2, 3)), "[DONE]")
    assert read(GENERATE, TOKENS, cumulative, STREAM) == encoded(COMPLETIONS, {"prompt": [0, 1, 2]})[1:]
    assert read(GENERATE, TEXT, cumulative, STREAM) == b"xxx"


def test_responses_are_read_whole_and_streamed() -> None:
    said = {
        "output": [{"type": "reasoning"}, {"type": "message", "content": [{"type": "output_text", "text": "four"}]}]
    }
    whole = read(RESPONSES, MESSAGES, json.dumps(said).encode())
    streamed = read(
        RESPONSES,
        MESSAGES,
        events({"type": "response.created", "response": {}}, {"type": "response.completed", "response": said}),
        STREAM,
    )
    assert whole is not None
    assert whole == streamed
    following = [user("2 + 2?"), {"role": "assistant", "content": "four"}, user("and 3?")]
    assert encoded(RESPONSES, {"input": following}).startswith(encoded(RESPONSES, {"input": "2 + 2?"}) + whole)


DEEP = b'{"messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
DIGITS = b'{"n":' + b"9" * 5000 + b"}"
LONG = b'{"a":"' + b"x" * MAX_READ_BYTES + b'"}'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no json",
        b"[1]",
        b"\xff\xfe",
        DEEP,
        b'{"n":' + b"9" * 5000 + b"}",
        b'{"a":"' + b"x" * MAX_READ_BYTES + b'"}',
    ],
    ids=["empty", "text", "list", "bytes", "deep", "digits", "long"],
)
def test_bodies_that_cannot_be_read_hold_no_fields(body: bytes) -> None:
    assert fields_of(body) is None


def test_of_a_key_that_stands_twice_the_last_counts() -> None:
    assert fields_of(b'{"prompt_cache_key":"a","prompt_cache_key":"b"}') == {"prompt_cache_key": "b"}


@pytest.mark.parametrize("path", sorted(GATED_PATHS))
@pytest.mark.parametrize(
    "value", [None, 5, True, {}, [], "", [[]], [[1], [2]], ["a", "b"], [-1], [2**40], [1.5], [None], [1, "a"]], ids=repr
)
def test_nonsense_is_no_prompt_and_no_error(path: str, value: Any) -> None:
    fields = dict.fromkeys(("messages", "prompt", "input", "text", "input_ids"), value)
    prompt = prompt_of(path, fields)
    assert prompt is None or isinstance(prompt.encoded, bytes)


def test_a_lone_surrogate_is_a_prompt_like_any_other() -> None:
    fields = fields_of(b'{"prompt":"\\ud800"}')
    assert fields is not None
    assert encoded(COMPLETIONS, dict(fields)) != encoded(COMPLETIONS, {"prompt": "\ud801"})


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"no json", {}),
        (b"[]", {}),
        (b'{"choices":5}', {}),
        (b'{"choices":[{"message":{"content":"a"}}]}', {"Content-Encoding": "gzip"}),
        (b"data: no json\n\n", STREAM),
        (b"x" * (MAX_REPLY_BYTES + 1), {}),
        (b"data: " + b"x" * (MAX_REPLY_BYTES + 1), STREAM),
        (events({"choices": [{"delta": {"content": "x" * (MAX_REPLY_BYTES + 1)}}]}), STREAM),
    ],
)
def test_replies_that_cannot_be_read_are_none(body: bytes, headers: dict[str, str]) -> None:
    assert read(CHAT, MESSAGES, body, headers, piece=1_000_000) is None
