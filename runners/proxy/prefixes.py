"""Which of many kept texts is the longest prefix of a new one.

A text is not kept. It is cut into blocks; each block's digest covers the
digest before it, so the last digest stands for all whole blocks, and only the
rest, shorter than a block, is kept beside it. A look-up hashes the new text
once and asks, from its end backwards, for each block's digest: its cost does
not grow with the number of texts.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")

BLOCK_BYTES = 512
_DIGEST_BYTES = 16


class Mark(NamedTuple):
    """A kept text: the digest of its whole blocks, and its rest."""

    blocks: bytes
    rest: bytes


class Chain:
    """A text in blocks: `digests` of its first 0, 1, 2, ... whole blocks.

    Those of two owners have nothing in common.
    """

    def __init__(self, owner: bytes, text: bytes) -> None:
        self.text = text
        self.digests = [blake2b(owner, digest_size=_DIGEST_BYTES).digest()]
        _extend(self.digests, text)

    def mark(self, more: bytes = b"") -> Mark:
        """The mark of this text with `more` after it."""
        last = self.digests[-1:]
        rest = self.text[(len(self.digests) - 1) * BLOCK_BYTES :] + more
        _extend(last, rest)
        return Mark(last[-1], rest[(len(last) - 1) * BLOCK_BYTES :])


class PrefixIndex(Generic[Item]):
    """Items under the texts they are kept by."""

    def __init__(self) -> None:
        self._items: dict[Mark, list[Item]] = {}
        self._lengths: dict[bytes, dict[int, int]] = {}

    def add(self, mark: Mark, item: Item) -> None:
        """Keep `item` under a text; it is the latest there."""
        self._items.setdefault(mark, []).append(item)
        lengths = self._lengths.setdefault(mark.blocks, {})
        lengths[len(mark.rest)] = lengths.get(len(mark.rest), 0) + 1

    def remove(self, mark: Mark, item: Item) -> None:
        """Take `item` away from under a text. ValueError if it is not there."""
        items = self._items.get(mark, [])
        items.remove(item)
        lengths = self._lengths[mark.blocks]
        lengths[len(mark.rest)] -= 1
        if not lengths[len(mark.rest)]:
            del lengths[len(mark.rest)]
        if not items:
            del self._items[mark]
        if not lengths:
            del self._lengths[mark.blocks]

    def latest(self, mark: Mark) -> Item | None:
        """The latest item under exactly this text."""
        items = self._items.get(mark)
        return items[-1] if items else None

    def longest(self, chain: Chain) -> Item | None:
        """The latest item under the longest text that is a prefix of this one."""
        for count in reversed(range(len(chain.digests))):
            blocks, start = chain.digests[count], count * BLOCK_BYTES
            for length in sorted(self._lengths.get(blocks, ()), reverse=True):
                items = self._items.get(Mark(blocks, chain.text[start : start + length]))
                if items:
                    return items[-1]
        return None


def _extend(digests: list[bytes], text: bytes) -> None:
    """Add the digests of the whole blocks of `text` to those before it."""
    for start in range(0, len(text) - BLOCK_BYTES + 1, BLOCK_BYTES):
        block = digests[-1] + text[start : start + BLOCK_BYTES]
        digests.append(blake2b(block, digest_size=_DIGEST_BYTES).digest())
