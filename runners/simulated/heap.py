"""A binary heap in one table: the least (key, rank) first.

Serves the simulator's events (seconds; priority and sequence), the waiting
queue, the decode batch's finishes and the oracle's victims, so that ties fall
the same everywhere. Row 0 holds the number of entries in `item`; the entries
are rows 1 to that number, the first at row 1. Entries with equal key and rank
do not occur. Capacity is the table's length less one; nothing checks it.
"""

from __future__ import annotations

from runners.simulated.compiled import Record, Table, compiled


@compiled
def push(heap: Table, key: float, rank: int, item: int) -> None:
    """Add an entry."""
    place = heap[0].item + 1
    heap[0].item = place
    while place > 1:
        parent = heap[place >> 1]
        if parent.key < key or (parent.key == key and parent.rank < rank):
            break
        put(heap[place], parent.key, parent.rank, parent.item)
        place >>= 1
    put(heap[place], key, rank, item)


@compiled
def pop(heap: Table) -> int:
    """Remove the first entry: its item."""
    first = heap[1].item
    size = heap[0].item - 1
    heap[0].item = size
    key, rank, item = heap[size + 1].key, heap[size + 1].rank, heap[size + 1].item
    place, child = 1, 2
    while child <= size:
        if child < size and less(heap[child + 1], heap[child].key, heap[child].rank):
            child += 1
        if not less(heap[child], key, rank):
            break
        put(heap[place], heap[child].key, heap[child].rank, heap[child].item)
        place = child
        child *= 2
    put(heap[place], key, rank, item)
    return first


@compiled
def less(entry: Record, key: float, rank: int) -> bool:
    """Whether the entry goes before (key, rank)."""
    return entry.key < key or (entry.key == key and entry.rank < rank)


@compiled
def put(entry: Record, key: float, rank: int, item: int) -> None:
    """Write one entry."""
    entry.key = key
    entry.rank = rank
    entry.item = item


@compiled
def discard(heap: Table, item: int) -> None:
    """Remove every entry of `item`."""
    size = heap[0].item
    heap[0].item = 0
    for place in range(1, size + 1):
        entry = heap[place]
        if entry.item != item:
            push(heap, entry.key, entry.rank, entry.item)
