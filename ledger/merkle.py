"""A Merkle tree that only grows: roots, inclusion and consistency proofs.

Hashes are those of RFC 6962, section 2.1 (SHA-256; 0x00 before a leaf, 0x01 before
two children); proofs are checked as RFC 9162 says, sections 2.1.3.2 and 2.1.4.2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

HASH_BYTES = 32
EMPTY_ROOT = hashlib.sha256(b"").digest()


def leaf_hash(entry: bytes) -> bytes:
    """The hash of one entry."""
    return hashlib.sha256(b"\0" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of a node with these children."""
    return hashlib.sha256(b"\1" + left + right).digest()


class MerkleTree:
    """A tree over entries, in their order; it keeps hashes, not entries.

    Level k holds the hashes of all whole subtrees of 2^k entries, so appending
    costs two hashes on average and a proof a logarithm of them; 64 bytes an entry.
    """

    def __init__(self, entries: Iterable[bytes] = ()) -> None:
        self._levels: list[bytearray] = [bytearray()]
        for entry in entries:
            self.append(entry)

    def __len__(self) -> int:
        return len(self._levels[0]) // HASH_BYTES

    def append(self, entry: bytes) -> None:
        """Add an entry at the end."""
        found, level = leaf_hash(entry), 0
        while True:
            if level == len(self._levels):
                self._levels.append(bytearray())
            hashes = self._levels[level]
            hashes += found
            count = len(hashes) // HASH_BYTES
            if count % 2:
                return
            found = node_hash(self._at(level, count - 2), found)
            level += 1

    def root(self, size: int | None = None) -> bytes:
        """The root over all entries, or the first `size`; ValueError beyond."""
        size = self._size(size)
        return self._subtree(0, size) if size else EMPTY_ROOT

    def inclusion(self, index: int, size: int | None = None) -> list[bytes]:
        """The proof that entry `index` is among the first `size`; ValueError beyond."""
        size = self._size(size)
        if not 0 <= index < size:
            raise ValueError(f"no entry {index} among {size}")
        path, first, last = [], 0, size
        while last - first > 1:
            middle = first + _split(last - first)
            if index < middle:
                path.append(self._subtree(middle, last))
                last = middle
            else:
                path.append(self._subtree(first, middle))
                first = middle
        return path[::-1]

    def consistency(self, earlier: int, size: int | None = None) -> list[bytes]:
        """The proof that the first `earlier` entries begin the first `size`;
        ValueError where there are not so many.
        """
        size = self._size(size)
        if not 0 <= earlier <= size:
            raise ValueError(f"{earlier} entries do not begin {size}")
        if earlier in (0, size):
            return []
        path, first, last, whole = [], 0, size, True
        while earlier != last:
            middle = first + _split(last - first)
            if earlier <= middle:
                path.append(self._subtree(middle, last))
                last = middle
            else:
                path.append(self._subtree(first, middle))
                first, whole = middle, False
        # The verifier has the earlier root; where the walk never turned right it is this very hash.
        if not whole:
            path.append(self._subtree(first, last))
        return path[::-1]

    def _size(self, size: int | None) -> int:
        size = len(self) if size is None else size
        if not 0 <= size <= len(self):
            raise ValueError(f"no tree of {size} entries among {len(self)}")
        return size

    def _at(self, level: int, index: int) -> bytes:
        return bytes(self._levels[level][index * HASH_BYTES : (index + 1) * HASH_BYTES])

    def _subtree(self, first: int, last: int) -> bytes:
        """The hash over entries [first, last), which a root's recursion meets."""
        count = last - first
        if count & (count - 1) == 0:
            return self._at(count.bit_length() - 1, first // count)
        middle = first + _split(count)
        return node_hash(self._subtree(first, middle), self._subtree(middle, last))


def _split(count: int) -> int:
    """The largest power of two below `count`."""
    return 1 << ((count - 1).bit_length() - 1)


def included(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether a proof shows the leaf hash at `index` of the tree of `size` entries
    with this root (RFC 9162, section 2.1.3.2).
    """
    if not 0 <= index < size:
        return False
    place, last, found = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return False
        if place & 1 or place == last:
            found = node_hash(sibling, found)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and found == root


def consistent(earlier: int, earlier_root: bytes, size: int, root: bytes, path: Sequence[bytes]) -> bool:
    """Whether a proof shows that the tree of `earlier` entries begins that of
    `size` (RFC 9162, section 2.1.4.2). An empty tree begins every tree.
    """
    if earlier == 0:
        return not path and earlier_root == EMPTY_ROOT
    if earlier == size:
        return not path and earlier_root == root
    if not 0 < earlier < size or not path:
        return False
    whole = earlier & (earlier - 1) == 0
    hashes = [earlier_root, *path] if whole else list(path)
    place, last = earlier - 1, size - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    old = new = hashes[0]
    for sibling in hashes[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            old, new = node_hash(sibling, old), node_hash(sibling, new)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            new = node_hash(new, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and (old, new) == (earlier_root, root)
