"""Canonical bytes (RFC 8785) and their SHA-256; strict reading of JSON."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import rfc8785

from registry.errors import CapExceeded, DraftError

MAX_JSON_BYTES = 8_388_608
_MAX_DEPTH = 64


def canonical_bytes(value: Any) -> bytes:
    """RFC 8785 bytes of a JSON value.

    Raises DraftError for what RFC 8785 cannot carry: NaN, infinities,
    integers from 2^53, keys that are not text.
    """
    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError as error:
        raise DraftError(f"no canonical form: {error}", remedy="use finite numbers below 2^53") from None
    except UnicodeEncodeError:
        raise DraftError("no canonical form: half a surrogate pair", remedy="use whole characters") from None


def sha256_hex(data: bytes) -> str:
    """Lower-case hex SHA-256."""
    return hashlib.sha256(data).hexdigest()


def digest(value: Any) -> str:
    """SHA-256 of the canonical bytes, lower-case hex."""
    return sha256_hex(canonical_bytes(value))


def load_json(data: bytes, name: str, max_bytes: int = MAX_JSON_BYTES) -> Any:
    """Strict JSON: UTF-8, no duplicate keys, no NaN, capped size and depth."""
    if len(data) > max_bytes:
        raise CapExceeded("the file is too large", where=name, value=len(data))
    try:
        text = data.decode("utf-8")
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_whole,
        )
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise CapExceeded("the JSON is too deeply nested", where=name) from None
    except (ValueError, UnicodeDecodeError) as error:
        raise DraftError(f"not strict JSON: {error}", where=name) from None
    if _depth(value) > _MAX_DEPTH:
        raise CapExceeded("the JSON is too deeply nested", where=name)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key stands twice")
    return result


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is too large")
    return value


def _whole(text: str) -> int | float:
    """An integer below 2^53; beyond, the double that RFC 8785 takes it for."""
    value = int(text)
    return value if abs(value) < 2**53 else _finite(text)


def _depth(value: Any, level: int = 0) -> int:
    if level > _MAX_DEPTH or not isinstance(value, dict | list):
        return level
    children = value.values() if isinstance(value, dict) else value
    return max((_depth(child, level + 1) for child in children), default=level)
