"""Prompts of token ids: fresh ones from the plan, the engine's own in between.

By a turn law no two sessions share a beginning, and no two attempts ever do: the
stream of every token id is named by run and attempt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from registry.philox import words


def as_text(raw: NDArray[np.uint64], vocabulary_tokens: int) -> bytes:
    """Words as token ids below `vocabulary_tokens`, in ASCII with commas."""
    ids = raw % np.uint64(vocabulary_tokens)
    return b",".join(b"%d" % token for token in ids.tolist())


@dataclass(frozen=True)
class TokenSource:
    """Where a run's fresh token ids come from: the plan's `key`, and `stream`,
    which names the run and its attempt.
    """

    key: bytes
    stream: str
    vocabulary_tokens: int

    def name(self, part: str) -> str:
        """The name of the words behind a part of the run's prompts."""
        return f"tokens/{self.stream}/{part}"

    def fresh(self, part: str, count: int) -> bytes:
        """The first `count` ids of a part, in ASCII with commas."""
        return as_text(words(self.key, self.name(part), count), self.vocabulary_tokens)


class Prompt:
    """A session's growing prompt, encoded once: bytes are only appended."""

    def __init__(self, source: TokenSource, session: str) -> None:
        self._source = source
        self._session = session
        self._text = b""
        self._grown = 0

    @property
    def text(self) -> bytes:
        """The token ids so far, as ASCII with commas."""
        return self._text

    def grow(self, count: int, output_ids: tuple[int, ...] = ()) -> None:
        """Append the engine's last output and `count` fresh ids."""
        parts = [self._text] if self._text else []
        if output_ids:
            parts.append(b",".join(b"%d" % token for token in output_ids))
        if count:
            parts.append(self._source.fresh(f"{self._session}/{self._grown}", count))
        self._text = b",".join(parts)
        self._grown += 1
