"""What an engine says of itself before a run, held against its registration."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelf.cells import Cell
from registry.errors import EngineError
from runners.engines.metrics import EngineSample

MAX_RESOLVED_CHARACTERS = 200_000
NOT_SHOWN = "(not shown)"
_PRIVATE = re.compile(r"(?i)api_?key|secret|password|auth|_token$|^hf_token|_env$|ssl_key")


@dataclass(frozen=True)
class EngineFacts:
    """Version, resolved arguments (as the engine gives them) and one sample of
    its metrics; None where it says nothing.
    """

    version: str | None
    resolved: Any
    sample: EngineSample | None


def check_facts(facts: EngineFacts, cell: Cell, caching: bool) -> None:
    """EngineError where the engine is not the registered one. What it does not
    say is not held against it here: the records show it, or the proof lacks it.
    """
    sample = facts.sample
    found = {
        "version": (facts.version, cell.engine_version),
        "pool_tokens": (sample and sample.pool_tokens, cell.pool_tokens),
        "block_tokens": (sample and sample.block_tokens, cell.cache_block_tokens),
        "prefix_caching": (sample and sample.prefix_caching, caching),
    }
    for name, (says, wanted) in found.items():
        if says is not None and says != wanted and not (name == "version" and _same_release(str(says), str(wanted))):
            raise EngineError(
                f"the engine is not the registered one: its {name} differs",
                value=says,
                remedy=f"the registration's cell says {wanted}: start that engine, or register this one",
            )


def _same_release(says: str, wanted: str) -> bool:
    """0.32.0+cpu is a build of 0.32.0 (PEP 440, local version identifiers)."""
    return says.partition("+")[0] == wanted


def version_of(body: bytes) -> str | None:
    """The `version` of a JSON answer; None where there is none."""
    value = json_of(body)
    version = value.get("version") if isinstance(value, dict) else None
    return version[:100] if isinstance(version, str) else None


def secret_of(headers: Mapping[str, str]) -> str | None:
    """The key in an Authorization header: nothing that is published holds it."""
    return headers.get("Authorization", "").removeprefix("Bearer ") or None


def json_of(body: bytes, secret: str | None = None) -> Any:
    """A JSON answer, None where it is not JSON or too long to keep."""
    if len(body) > MAX_RESOLVED_CHARACTERS:
        return None
    try:
        value = json.loads(body)
        json.dumps(value, allow_nan=False)
        return _published(value, secret)
    except (ValueError, RecursionError):
        return None


def _published(value: Any, secret: str | None) -> Any:
    """Without what an engine should not tell the world: keys, and the machine's
    environment (vLLM's `system_env` and `vllm_env`).
    """
    if isinstance(value, dict):
        return {key: _published(entry, secret) for key, entry in value.items() if not _PRIVATE.search(key)}
    if isinstance(value, list):
        return [_published(entry, secret) for entry in value]
    return NOT_SHOWN if secret and isinstance(value, str) and secret in value else value
