"""A ledger's Merkle log of a million entries: append, root, prove, verify.

`python benchmarks/merkle_log.py [--entries 1000000] [--entry-bytes 1024] [--json]`.
Entries differ in their first bytes. Proofs are of random entries and of random
earlier sizes, each made, then checked with the log away. Times are CPU seconds
of one core; proofs are the median of 1000.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable

from ledger.merkle import MerkleTree, consistent, included, leaf_hash

PROOFS = 1000


def timed(call: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def entry(number: int, size_bytes: int) -> bytes:
    """An entry that differs from every other one."""
    return number.to_bytes(8, "big") + bytes(size_bytes - 8)


def measure(entries: int, size_bytes: int) -> dict[str, float]:
    """All figures by name."""
    tree = MerkleTree()
    start = time.process_time()
    for number in range(entries):
        tree.append(entry(number, size_bytes))
    append_s = time.process_time() - start
    drawn = random.Random(0)
    root = tree.root()
    times: dict[str, list[float]] = {
        name: [] for name in ("include", "check_inclusion", "continue", "check_consistency")
    }
    hashes = 0
    for _ in range(PROOFS):
        index, earlier = drawn.randrange(entries), drawn.randrange(1, entries)
        leaf, old = leaf_hash(entry(index, size_bytes)), tree.root(earlier)
        path, grown = tree.inclusion(index), tree.consistency(earlier)
        times["include"].append(timed(lambda i=index: tree.inclusion(i)))
        times["continue"].append(timed(lambda e=earlier: tree.consistency(e)))
        times["check_inclusion"].append(timed(lambda a=(leaf, index, entries, path, root): included(*a)))
        times["check_consistency"].append(timed(lambda a=(earlier, old, entries, root, grown): consistent(*a)))
        assert included(leaf, index, entries, path, root)
        assert consistent(earlier, old, entries, root, grown)
        hashes = max(hashes, len(path), len(grown))
    return {
        "append_s": append_s,
        "append_us_per_entry": 1e6 * append_s / entries,
        "root_us": 1e6 * timed(tree.root),
        "prove_inclusion_us": 1e6 * statistics.median(times["include"]),
        "verify_inclusion_us": 1e6 * statistics.median(times["check_inclusion"]),
        "prove_consistency_us": 1e6 * statistics.median(times["continue"]),
        "verify_consistency_us": 1e6 * statistics.median(times["check_consistency"]),
        "most_hashes_in_a_proof": hashes,
        "bytes_kept": sum(len(level) for level in tree._levels),
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--entry-bytes", type=int, default=1024)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    figures = measure(chosen.entries, chosen.entry_bytes)
    if chosen.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:>24} {value:,.1f}")


if __name__ == "__main__":
    main()
