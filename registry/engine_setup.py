"""How a cell's real engine is started, as study.yaml says and a registration
freezes it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from registry.errors import DraftError


@dataclass(frozen=True)
class EngineSetup:
    """One engine to start, or one that runs already (`url`).

    `command` starts its program (`${NAME}` is replaced from the environment);
    model, port, pool, cache, chunk, batch and seed are the adapter's to add,
    `arguments` come after them. `model` is a folder of the study or a name
    that the engine knows. Prompts hold token ids below `vocabulary_tokens`.
    `chunk_tokens` and `batch_requests` pin what an engine would choose by its
    machine. `model_sha256` is the digest of the folder's files, None for a
    name.
    """

    adapter: str
    model: str
    vocabulary_tokens: int
    chunk_tokens: int
    batch_requests: int
    command: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    url: str | None = None
    ready_timeout_s: float = 900.0
    hang_timeout_s: float = 600.0
    model_sha256: str | None = None

    def frozen(self) -> dict[str, Any]:
        """A plain JSON value for a registration."""
        return {**asdict(self), "environment": dict(self.environment)}


def given(setup: EngineSetup, devices: str | None) -> EngineSetup:
    """The setup with these GPUs, as CUDA_VISIBLE_DEVICES names them; unchanged for None."""
    if devices is None:
        return setup
    others = [(name, value) for name, value in setup.environment if name != "CUDA_VISIBLE_DEVICES"]
    return replace(setup, environment=(*others, ("CUDA_VISIBLE_DEVICES", devices)))


def setup_of(value: dict[str, Any], where: str) -> EngineSetup:
    """From study.yaml or a registration; both have been held to the schema.

    DraftError where it names neither or both of a command and a url.
    """
    setup = EngineSetup(
        **{
            **value,
            "command": tuple(value.get("command", ())),
            "arguments": tuple(value.get("arguments", ())),
            "environment": tuple(sorted(value.get("environment", {}).items())),
        }
    )
    if bool(setup.command) == bool(setup.url):
        raise DraftError(
            "an engine has a command that starts it, or the url of one that runs",
            where=where,
            remedy="name exactly one of command and url",
        )
    return setup
