"""The Merkle tree: published vectors, and proofs against a tree built the slow way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.merkle import EMPTY_ROOT, MerkleTree, consistent, included, leaf_hash, node_hash

ENTRIES = [
    bytes.fromhex(text)
    for text in (
        "", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f",
    )
]  # fmt: skip
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
"""Of the first 0 to 8 entries: the vectors of the Certificate Transparency project's reference code."""


_A, _B, _C = (
    "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
)
_D, _E, _F = (
    "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
    "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
)
INCLUSION = {
    (0, 1): [], (0, 8): [_A, _B, _C], (5, 8): [_D, _E, ROOTS[4]], (2, 3): [ROOTS[2]], (1, 5): [ROOTS[1], _B, _D],
}  # fmt: skip
"""The same project's proofs, by index and size."""
CONSISTENCY = {(1, 1): [], (1, 8): [_A, _B, _C], (6, 8): [_F, _E, ROOTS[4]], (2, 5): [_B, _D]}
"""The same, by earlier and later size."""


def slow_root(entries: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, word for word."""
    if not entries:
        return EMPTY_ROOT
    if len(entries) == 1:
        return leaf_hash(entries[0])
    split = 1
    while 2 * split < len(entries):
        split *= 2
    return node_hash(slow_root(entries[:split]), slow_root(entries[split:]))


@pytest.mark.parametrize("size", range(9))
def test_published_roots(size: int) -> None:
    tree = MerkleTree(ENTRIES)
    assert tree.root(size).hex() == ROOTS[size] == MerkleTree(ENTRIES[:size]).root().hex()


@pytest.mark.parametrize(("index", "size"), INCLUSION)
def test_published_inclusion_proofs(index: int, size: int) -> None:
    path = MerkleTree(ENTRIES).inclusion(index, size)
    assert [part.hex() for part in path] == INCLUSION[index, size]
    assert included(leaf_hash(ENTRIES[index]), index, size, path, bytes.fromhex(ROOTS[size]))


@pytest.mark.parametrize(("earlier", "size"), CONSISTENCY)
def test_published_consistency_proofs(earlier: int, size: int) -> None:
    path = MerkleTree(ENTRIES).consistency(earlier, size)
    assert [part.hex() for part in path] == CONSISTENCY[earlier, size]
    assert consistent(earlier, bytes.fromhex(ROOTS[earlier]), size, bytes.fromhex(ROOTS[size]), path)


@given(st.lists(st.binary(max_size=4), max_size=40))
def test_roots_are_those_of_the_definition(entries: list[bytes]) -> None:
    assert MerkleTree(entries).root() == slow_root(entries)


@given(st.integers(1, 300), st.data())
def test_every_entry_is_shown_to_be_there_and_nowhere_else(size: int, data: st.DataObject) -> None:
    tree = MerkleTree(str(number).encode() for number in range(size))
    within = data.draw(st.integers(1, size))
    index = data.draw(st.integers(0, within - 1))
    path, leaf, root = tree.inclusion(index, within), leaf_hash(str(index).encode()), tree.root(within)
    assert included(leaf, index, within, path, root)
    other = data.draw(st.integers(0, within - 1).filter(lambda number: number != index) if within > 1 else st.just(-1))
    assert not included(leaf, other, within, path, root)
    assert not included(leaf_hash(b"other"), index, within, path, root)
    for place in range(len(path)):
        flipped = [*path[:place], bytes([path[place][0] ^ 1, *path[place][1:]]), *path[place + 1 :]]
        assert not included(leaf, index, within, flipped, root)
    assert not included(leaf, index, within, [*path, root], root)
    assert not path or not included(leaf, index, within, path[:-1], root)


@given(st.integers(0, 300), st.data())
def test_an_earlier_tree_begins_a_later_one(size: int, data: st.DataObject) -> None:
    tree = MerkleTree(str(number).encode() for number in range(size))
    later = data.draw(st.integers(0, size))
    earlier = data.draw(st.integers(0, later))
    path, old, new = tree.consistency(earlier, later), tree.root(earlier), tree.root(later)
    assert consistent(earlier, old, later, new, path)
    if 0 < earlier < later:
        assert not consistent(earlier, new, later, old, path)
        assert not consistent(earlier, old, later, new, [])
        assert not consistent(earlier, old, later, new, [*path, old])
        changed = MerkleTree([b"changed", *(str(number).encode() for number in range(1, later))])
        assert not consistent(earlier, old, later, changed.root(), changed.consistency(earlier))


def test_what_there_is_not_cannot_be_asked_for() -> None:
    tree = MerkleTree(ENTRIES)
    for ask in (
        lambda: tree.root(9),
        lambda: tree.inclusion(8),
        lambda: tree.inclusion(-1),
        lambda: tree.inclusion(2, 2),
    ):
        with pytest.raises(ValueError, match="entr"):
            ask()
    with pytest.raises(ValueError, match="begin"):
        tree.consistency(5, 4)
    assert not included(ENTRIES[0], 3, 3, [], tree.root(3)) and not consistent(5, b"", 4, b"", [])
