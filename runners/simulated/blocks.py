"""The pool of a scripted run: blocks that sessions share, by the prompts that begin with them.

A block of the table is one unit with KV that a later prompt may hit. It is known by
a key: a block of a script has its id if every arrival shares it, else its session
with its id; what a turn generates has its row and place, so no other turn finds it.
Equal ids mean equal prompts up to there, so the leading run of blocks that are
present is what an engine's prefix cache would find.

A block is findable from the step that computes it. A turn that computes what
another has meanwhile goes on with the other's and frees its own. Blocks that no
running turn refers to are idle: least recently used first, the end of a prompt
before its beginning, they make room. What a turn generated stays idle as well, as in
an engine, and is never asked for.

`reserved_units` counts the distinct blocks in use and the running turns' other units;
a turn's first `shared_units` blocks are those it refers to.
Invariant: reserved + idle <= size; present blocks <= size.
"""

from __future__ import annotations

from runners.simulated.compiled import compiled
from runners.simulated.state import Run

NOBODY = -1
_SESSION_SHIFT = 32
_LOW = (1 << _SESSION_SHIFT) - 1


@compiled
def key_of(run: Run, row: int, place: int) -> int:
    """The key of a turn's block number `place`, from 0."""
    turn = run.turns[row]
    script = run.script_turns[turn.script]
    if place >= script.blocks:
        return -(((row + 1) << _SESSION_SHIFT) + place)
    block = int(run.script_blocks[script.first_block + place])
    if block < run.engine[0].shared_blocks:
        return block
    return ((turn.session + 1) << _SESSION_SHIFT) + block


@compiled
def bucket_of(run: Run, key: int) -> int:
    """Where a key's chain begins; the products stay below 2^63."""
    code = key if key >= 0 else -key
    mixed = (code & _LOW) * 2654435761 + (code >> _SESSION_SHIFT) * 40503
    return int((mixed ^ (mixed >> 15)) & (len(run.buckets) - 1))


@compiled
def find(run: Run, key: int) -> int:
    """The block with this key; NOBODY where it is not present."""
    block = int(run.buckets[bucket_of(run, key)])
    while block != NOBODY and run.blocks[block].key != key:
        block = run.blocks[block].following
    return block


@compiled
def leading(run: Run, row: int) -> tuple[int, int]:
    """How many blocks of what the turn has to prefill are present, from the
    first on, and how many of those are in use; one token at least is left.
    """
    engine, turn = run.engine[0], run.turns[row]
    most = (turn.prompt_tokens + turn.generated - 1) // engine.unit_tokens
    present, used = 0, 0
    while present < most:
        block = find(run, key_of(run, row, present))
        if block == NOBODY:
            break
        present += 1
        used += 1 if run.blocks[block].references else 0
    return present, used


@compiled
def fits(run: Run, row: int, units: int) -> bool:
    """Whether the waiting turn can hold `units` in all, idle ones evicted."""
    engine = run.engine[0]
    if engine.reserved_units + units <= engine.size_units:
        return True
    _, used = leading(run, row)
    return engine.reserved_units + units - used <= engine.size_units


@compiled
def take(run: Run, row: int) -> int:
    """Refer to what is present of the turn's beginning: how many blocks."""
    present, _ = leading(run, row)
    for place in range(present):
        refer(run, find(run, key_of(run, row, place)))
    run.turns[row].shared_units = present
    return present


@compiled
def refer(run: Run, block: int) -> bool:
    """One more running turn uses a block: whether it was idle."""
    engine, found = run.engine[0], run.blocks[block]
    idle = found.references == 0
    if idle:
        unlink(run, block)
        engine.idle_units -= 1
        engine.reserved_units += 1
    found.references += 1
    return idle


@compiled
def register(run: Run, row: int, count: int) -> None:
    """Make the turn's first `count` blocks, which it holds, findable."""
    engine, turn = run.engine[0], run.turns[row]
    while turn.shared_units < count:
        key = key_of(run, row, turn.shared_units)
        block = find(run, key)
        if block == NOBODY:
            put(run, key)
        else:
            refer(run, block)
            engine.reserved_units -= 1
        turn.shared_units += 1


@compiled
def put(run: Run, key: int) -> None:
    """A new block, in use."""
    engine = run.engine[0]
    block = engine.free_block
    if block == NOBODY:
        block = engine.made_blocks
        engine.made_blocks += 1
    else:
        engine.free_block = run.blocks[block].following
    made, bucket = run.blocks[block], bucket_of(run, key)
    made.key = key
    made.references = 1
    made.following = int(run.buckets[bucket])
    run.buckets[bucket] = block


@compiled
def release(run: Run, row: int, units: int, keep_units: int) -> None:
    """End the turn's hold of `units`; the first `keep_units` have KV and stay."""
    engine, turn = run.engine[0], run.turns[row]
    register(run, row, keep_units)
    engine.reserved_units -= units - turn.shared_units
    while turn.shared_units:
        turn.shared_units -= 1
        block = find(run, key_of(run, row, turn.shared_units))
        left = run.blocks[block]
        left.references -= 1
        if left.references == 0:
            engine.reserved_units -= 1
            engine.idle_units += 1
            link(run, block)


@compiled
def evict(run: Run, units: int) -> None:
    """Free `units` idle blocks, least recently used first."""
    engine = run.engine[0]
    for _ in range(units):
        block = engine.block_oldest
        unlink(run, block)
        forget(run, block)
        engine.idle_units -= 1


@compiled
def forget(run: Run, block: int) -> None:
    """Take a block out of its chain; its place is free."""
    engine, gone = run.engine[0], run.blocks[block]
    bucket = bucket_of(run, gone.key)
    before = int(run.buckets[bucket])
    if before == block:
        run.buckets[bucket] = gone.following
    else:
        while run.blocks[before].following != block:
            before = run.blocks[before].following
        run.blocks[before].following = gone.following
    gone.following = engine.free_block
    engine.free_block = block


@compiled
def link(run: Run, block: int) -> None:
    """Make a block the most recently used idle one."""
    engine, linked = run.engine[0], run.blocks[block]
    linked.older = engine.block_newest
    linked.newer = NOBODY
    if engine.block_newest == NOBODY:
        engine.block_oldest = block
    else:
        run.blocks[engine.block_newest].newer = block
    engine.block_newest = block


@compiled
def unlink(run: Run, block: int) -> None:
    """Take a block out of the idle ones."""
    engine, gone = run.engine[0], run.blocks[block]
    if gone.older == NOBODY:
        engine.block_oldest = gone.newer
    else:
        run.blocks[gone.older].newer = gone.newer
    if gone.newer == NOBODY:
        engine.block_newest = gone.older
    else:
        run.blocks[gone.newer].older = gone.older
