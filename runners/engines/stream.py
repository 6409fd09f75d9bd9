"""Server-sent events of completions: hostile until read.

Source of the format: WHATWG HTML, section 9.2; `[DONE]` is OpenAI's.
"""

from __future__ import annotations

import json
from typing import Any

from registry.errors import EngineError
from registry.plain_text import plain

MAX_STREAM_BYTES = 64 * 1024 * 1024
_DONE = b"[DONE]"


def events(stream: bytes) -> list[Any]:
    """The JSON values of a stream that ended with `[DONE]`.

    EngineError where it ended early, holds something that is not JSON, or is
    an error that the engine wrote into the stream.
    """
    values: list[Any] = []
    for line in stream.splitlines():
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == _DONE:
            return values
        values.append(_value(data))
    raise EngineError("the stream was cut off before its end", value=f"{len(values)} events")


def _value(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise EngineError("an event of the stream is not JSON", value=shown(data)) from None
    if not isinstance(value, dict):
        raise EngineError("an event of the stream is no object", value=shown(data))
    if "error" in value:
        raise EngineError("the engine wrote an error into the stream", value=shown(data))
    return value


def token_ids(value: Any) -> list[int]:
    """A list of token ids; EngineError for anything else."""
    if not isinstance(value, list) or not all(type(token) is int and 0 <= token < 2**31 for token in value):
        raise EngineError("the engine returned no token ids", value=shown(str(value).encode()))
    return value


def count(value: Any, name: str) -> int:
    """A count of tokens; EngineError for anything else."""
    if type(value) is not int or not 0 <= value < 2**53:
        raise EngineError(f"the engine returned no {name}", value=shown(str(value).encode()))
    return value


def shown(data: bytes) -> str:
    """The beginning of an engine's text, safe to print."""
    return plain(data[:200].decode("utf-8", "replace"), 120)
