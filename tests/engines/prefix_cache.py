"""A prefix cache as engines have: full blocks by content, least recently used go first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence


class PrefixCache:
    """Blocks of `block_tokens` tokens, `pool_tokens` in all; a block's key holds all that is before it.

    Requests that run pin nothing: enough for stubs, whose pools do not overflow by running requests.
    """

    def __init__(self, block_tokens: int, pool_tokens: int) -> None:
        self.block_tokens = block_tokens
        self.pool_blocks = pool_tokens // block_tokens
        self.evicted_tokens = 0
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def _keys(self, tokens: Sequence[int], salt: str) -> Iterator[int]:
        key = hash(salt)
        for start in range(0, len(tokens) - self.block_tokens + 1, self.block_tokens):
            key = hash((key, tuple(tokens[start : start + self.block_tokens])))
            yield key

    def cached_tokens(self, prompt: Sequence[int], salt: str = "") -> int:
        """Leading tokens of the prompt that are here; the last token is always computed."""
        found = 0
        for key in self._keys(prompt[: len(prompt) - 1], salt):
            if key not in self._blocks:
                break
            found += self.block_tokens
        return found

    def keep(self, tokens: Sequence[int], salt: str = "") -> None:
        """Insert or refresh the full blocks of `tokens`, the end of a prefix being the first to go."""
        for key in reversed(list(self._keys(tokens, salt))):
            self._blocks[key] = None
            self._blocks.move_to_end(key)
        while len(self._blocks) > self.pool_blocks:
            self._blocks.popitem(last=False)
            self.evicted_tokens += self.block_tokens

    def clear(self) -> None:
        self._blocks.clear()

    @property
    def kept_tokens(self) -> int:
        return len(self._blocks) * self.block_tokens
