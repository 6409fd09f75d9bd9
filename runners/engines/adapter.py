"""What the generator needs of an engine: its words, not its processes.

An adapter is a value without state: how to start the engine, how to ask for
one turn, how to read the answer's stream, how to empty its cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from modelf.cells import Cell
from registry.engine_setup import EngineSetup

SERVED_MODEL = "m"
"""The name under which a started engine serves its model."""


@dataclass(frozen=True)
class EngineOrder:
    """The engine that one attempt needs.

    `model` is a folder on this machine or a name; `longest_turn_tokens` the
    prompt and output of the longest turn that the workload may ask for;
    `cell` as the run's arm has it.
    """

    cell: Cell
    setup: EngineSetup
    model: str
    caching: bool
    longest_turn_tokens: int
    seed: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What an engine said of one turn; tokens, and None where it is silent.

    `queue_s`: seconds from its receipt to its first schedule.
    """

    output_ids: tuple[int, ...]
    prompt_tokens: int
    cached_tokens: int | None
    retractions: int = 0
    queue_s: float | None = None


class Adapter(Protocol):
    """One engine's words. Answers that do not fit raise EngineError."""

    name: str
    path: str
    """Where a turn is posted."""

    flush_path: str | None
    """Where the cache is emptied by a POST; None where it cannot be."""

    version_path: str | None
    """Where a GET tells the `version` as JSON."""

    resolved_path: str | None
    """Where a GET tells the arguments that the engine took, as JSON."""

    def command(self, order: EngineOrder, port: int) -> list[str]:
        """The arguments after the setup's command, before its own."""

    def body(self, model: str, prompt: bytes, output_tokens: int) -> bytes:
        """The request of one turn; `prompt` is its token ids with commas."""

    def shows_token(self, data: bytes) -> bool:
        """Whether this piece of a stream holds an output token."""

    def reply(self, stream: bytes) -> Reply:
        """Read a whole stream."""

    def check_flushed(self, status: int, body: bytes) -> bool:
        """Whether the cache was emptied; False where it was busy. EngineError
        where it never will be.
        """
