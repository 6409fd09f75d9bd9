"""What an engine replied, read from the bytes as they pass.

Nothing is changed or held back: `feed` is given a copy of each piece after it
has gone to the client. A reply that grows too long, or is no JSON or event
stream, is not read; then its session cannot be told by its prefix.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from runners.proxy.prompts import calls_of, reply_bytes, text_of

MAX_REPLY_BYTES = 4 * 1_048_576
"""Of a reply, and of one event in a stream."""

_DONE = b"[DONE]"


class ReplyReader:
    """One reply to a prompt of `kind` (see prompts), by its path and headers."""

    def __init__(self, kind: bytes, path: str, headers: Mapping[str, str]) -> None:
        self._kind = kind
        self._cumulative = path == "/generate"
        self._streamed = headers.get("Content-Type", "").startswith("text/event-stream")
        self._lost = "Content-Encoding" in headers
        self._tail = b""
        self._body: list[bytes] = []
        self._size = 0
        self._text: list[str] = []
        self._tokens: list[int] = []
        self._calls: dict[object, list[str]] = {}
        self._found = False

    def feed(self, piece: bytes) -> None:
        """The next bytes of the answer's body."""
        if self._lost:
            return
        if self._streamed:
            *lines, self._tail = (self._tail + piece).split(b"\n")
            for line in lines:
                self._line(line.strip())
        else:
            self._body.append(piece)
            self._size += len(piece)
        if self._size + len(self._tail) > MAX_REPLY_BYTES:
            self._lost = True
            self._body.clear()
            self._text.clear()
            self._tail = b""

    def reply(self) -> bytes | None:
        """The whole reply, once the answer is complete; None if unreadable."""
        self._line(self._tail.strip())
        self._take(b"".join(self._body))
        if self._lost or not self._found:
            return None
        calls = [(name, arguments) for name, arguments in self._calls.values()]
        return reply_bytes(self._kind, "".join(self._text), self._tokens, calls)

    def _line(self, line: bytes) -> None:
        """A line of an event stream. Cumulative events: only the last counts."""
        if not line.startswith(b"data:") or (data := line[5:].strip()) == _DONE:
            return
        if self._cumulative:
            self._body = [data]
            self._size = len(data)
        else:
            self._take(data)

    def _take(self, data: bytes) -> None:
        try:
            event = json.loads(data) if data and not self._lost else None
            if isinstance(event, dict):
                self._event(event)
        except (ValueError, TypeError, RecursionError):
            self._lost = True

    def _event(self, event: dict[str, Any]) -> None:
        if self._cumulative:
            self._add(event.get("text"), event.get("output_ids"))
        elif isinstance(event.get("output"), list):
            self._output(event["output"])
        elif event.get("type") == "response.completed" and isinstance(event.get("response"), dict):
            self._output(event["response"].get("output"))
        for choice in _dicts(event.get("choices")):
            if not choice.get("index"):
                self._choice(choice)

    def _choice(self, choice: dict[str, Any]) -> None:
        """The first choice of a completion, whole or a piece of a stream."""
        message = choice.get("message") or choice.get("delta")
        if isinstance(message, dict):
            self._add(message.get("content"), choice.get("token_ids"))
            self._tool_calls(message.get("tool_calls"))
        else:
            self._add(choice.get("text"), choice.get("token_ids"))

    def _add(self, text: object, tokens: object) -> None:
        self._found = True
        if text:
            self._text.append(text_of(text))
            self._size += len(self._text[-1])
        if isinstance(tokens, list):
            self._tokens += tokens
            self._size += 4 * len(tokens)

    def _tool_calls(self, calls: object) -> None:
        for place, call in enumerate(_dicts(calls)):
            for name, arguments in calls_of([call]):
                whole = self._calls.setdefault(str(call.get("index", place)), ["", ""])
                whole[0] += "" if name == "None" else name
                whole[1] += "" if arguments == "None" else arguments
                self._size += len(name) + len(arguments)

    def _output(self, items: object) -> None:
        for item in _dicts(items):
            if item.get("type") == "message":
                self._add(item.get("content"), None)


def _dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
