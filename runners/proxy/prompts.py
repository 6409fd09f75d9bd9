"""A request's prompt as bytes, such that the prompt of a session's next turn
begins with the bytes of its last prompt and of the reply to it.

Messages are encoded one a line: role, text, tool calls by name and arguments.
What clients change when they send a reply back is left out: white space around
it, ids of calls, reasoning. Text is UTF-8, token ids are four bytes each.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

MAX_READ_BYTES = 16 * 1_048_576
"""Longer bodies are passed on and not looked into."""

MESSAGES, TEXT, TOKENS = b"m", b"s", b"t"

_FIELDS = {
    "/v1/chat/completions": ("messages",),
    "/v1/completions": ("prompt",),
    "/v1/responses": ("input",),
    "/generate": ("text", "input_ids"),
}
GATED_PATHS = frozenset(_FIELDS)
"""Where an engine generates: vLLM's and SGLang's OpenAI paths, SGLang's own."""


class Prompt(NamedTuple):
    """`kind`: MESSAGES, TEXT or TOKENS; `encoded` begins with it."""

    kind: bytes
    encoded: bytes


def fields_of(body: bytes) -> Mapping[str, Any] | None:
    """The JSON object that a body holds; None where it holds none.

    Of a key that stands twice the last counts, as engines read it.
    """
    if len(body) > MAX_READ_BYTES:
        return None
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def prompt_of(path: str, fields: Mapping[str, Any]) -> Prompt | None:
    """The prompt of a request to a gated path; None for a batch or nonsense."""
    for name in _FIELDS.get(path, ()):
        if (value := fields.get(name)) is not None:
            try:
                return _messages(value) if name in ("messages", "input") else _plain(value)
            except (ValueError, TypeError, OverflowError, RecursionError):
                return None
    return None


def reply_bytes(kind: bytes, text: str, tokens: list[int], calls: list[tuple[str, str]]) -> bytes | None:
    """A reply as the next prompt will hold it; None where that cannot be said.

    The reply to token ids, where its own ids are unknown, is no bytes at all:
    the next prompt begins with the last one in any case.
    """
    if kind == MESSAGES:
        return _line("assistant", text, calls)
    if kind == TEXT:
        return text.encode("utf-8", "surrogatepass")
    try:
        return array("I", tokens).tobytes()
    except (TypeError, OverflowError):
        return None


def calls_of(value: object) -> list[tuple[str, str]]:
    """Name and arguments of each tool call in a message."""
    found = []
    for call in value if isinstance(value, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            found.append((str(function.get("name")), str(function.get("arguments"))))
    return found


def text_of(content: object) -> str:
    """The text of a message: a string, or the text of its parts in a row.

    A part that is no text counts as its JSON.
    """
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        return _json(content)
    return "".join(_part(part) for part in content)


def _part(part: object) -> str:
    text = part.get("text") if isinstance(part, dict) else part
    return text if isinstance(text, str) else _json(part)


def _messages(value: object) -> Prompt | None:
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    if not isinstance(value, list) or not value:
        return None
    return Prompt(MESSAGES, MESSAGES + b"".join(_message(item) for item in value))


def _message(item: object) -> bytes:
    if not isinstance(item, dict) or "role" not in item:
        return _json(item).encode() + b"\n"
    return _line(str(item["role"]), text_of(item.get("content")), calls_of(item.get("tool_calls")))


def _line(role: str, text: str, calls: Iterable[tuple[str, str]]) -> bytes:
    told = [(name, _settled(arguments)) for name, arguments in calls]
    return _json([role, text.strip(), told]).encode() + b"\n"


def _settled(arguments: str) -> str:
    """Arguments as JSON of one form, since clients write them anew."""
    try:
        return _json(json.loads(arguments))
    except (ValueError, RecursionError):
        return arguments


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _plain(value: object) -> Prompt | None:
    if isinstance(value, list) and len(value) == 1 and not isinstance(value[0], int):
        value = value[0]
    if isinstance(value, str):
        return Prompt(TEXT, TEXT + value.encode("utf-8", "surrogatepass"))
    if isinstance(value, list) and value:
        return Prompt(TOKENS, TOKENS + array("I", value).tobytes())
    return None
