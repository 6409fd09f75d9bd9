"""Prompts of token ids: fresh ones from the plan, the engine's own in between.

No two sessions share a beginning, and no two attempts: the stream of a
session's fresh ids is named by run, attempt and session.
"""

from __future__ import annotations

import numpy as np

from registry.philox import words


def fresh_ids(key: bytes, name: str, count: int, vocabulary_tokens: int) -> bytes:
    """`count` token ids below `vocabulary_tokens`, as ASCII with commas.

    `key` is the plan's, `name` that of the stream.
    """
    ids = words(key, name, count) % np.uint64(vocabulary_tokens)
    return b",".join(b"%d" % token for token in ids.tolist())


class Prompt:
    """A session's growing prompt, encoded once: bytes are only appended.

    `prefix` names the run and its attempt.
    """

    def __init__(self, key: bytes, prefix: str, session: str, vocabulary_tokens: int) -> None:
        self._key = key
        self._name = f"tokens/{prefix}/{session}"
        self._vocabulary_tokens = vocabulary_tokens
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
            parts.append(fresh_ids(self._key, f"{self._name}/{self._grown}", count, self._vocabulary_tokens))
        self._text = b",".join(parts)
        self._grown += 1
