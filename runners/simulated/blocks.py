"""The pool of a scripted run: blocks that sessions share, by the prompts that begin with them.

A row of `contexts` is one unit with KV that a later prompt may hit. It is known by
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
its session's `kept_units` say how many of a running turn's first blocks it refers to.
Invariant: reserved + idle <= size; present blocks <= size.
"""

from __future__ import annotations

from runners.simulated.compiled import Record, compiled
from runners.simulated.state import Run

NOBODY = -1
_SESSION_SHIFT = 32
_LOW = (1 << _SESSION_SHIFT) - 1


@compiled
def script_row(run: Run, turn: Record) -> int:
    """The turn's place among the scripts' turns; a session's waits begin after its first."""
    return int(run.sessions[turn.session].first_tool + turn.turn - 2)


@compiled
def key_of(run: Run, row: int, place: int) -> int:
    """The key of a turn's block number `place`, from 0."""
    turn = run.turns[row]
    script = run.slots[script_row(run, turn)]
    if place >= script.blocks:
        return -(((row + 1) << _SESSION_SHIFT) + place)
    block = int(run.tool_us[script.first_block + place])
    if block < run.engine[0].shared_blocks:
        return block
    return ((turn.session + 1) << _SESSION_SHIFT) + block


@compiled
def bucket_of(run: Run, key: int) -> int:
    """Where a key's chain begins; the products stay below 2^63."""
    code = key if key >= 0 else -key
    mixed = (code & _LOW) * 2654435761 + (code >> _SESSION_SHIFT) * 40503
    return int((mixed ^ (mixed >> 15)) & run.engine[0].bucket_mask)


@compiled
def find(run: Run, key: int) -> int:
    """The block with this key; NOBODY where it is not present."""
    block = run.contexts[bucket_of(run, key)].chain
    while block != NOBODY and run.contexts[block].name != key:
        block = run.contexts[block].following
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
        used += 1 if run.contexts[block].references else 0
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
    run.sessions[run.turns[row].session].kept_units = present
    return present


@compiled
def refer(run: Run, block: int) -> bool:
    """One more running turn uses a block: whether it was idle."""
    engine, found = run.engine[0], run.contexts[block]
    idle = found.references == 0
    if idle:
        unlink(run, block)
        engine.idle_units -= 1
        engine.reserved_units += 1
    found.references += 1
    return idle


@compiled
def computed(run: Run, row: int) -> None:
    """Prompt tokens of the turn are being computed: their whole blocks can be found."""
    engine, turn = run.engine[0], run.turns[row]
    if engine.caching:
        done = min(turn.prompt_tokens, turn.prompt_tokens + turn.generated - turn.to_prefill)
        register(run, row, min(done // engine.unit_tokens, run.slots[script_row(run, turn)].blocks))


@compiled
def register(run: Run, row: int, count: int) -> None:
    """Make the turn's first `count` blocks, which it holds, findable."""
    engine, owner = run.engine[0], run.sessions[run.turns[row].session]
    while owner.kept_units < count:
        key = key_of(run, row, owner.kept_units)
        block = find(run, key)
        if block == NOBODY:
            put(run, key)
        else:
            refer(run, block)
            engine.reserved_units -= 1
        owner.kept_units += 1


@compiled
def put(run: Run, key: int) -> None:
    """A new block, in use."""
    engine = run.engine[0]
    block = engine.free_block
    if block == NOBODY:
        block = engine.made_blocks
        engine.made_blocks += 1
    else:
        engine.free_block = run.contexts[block].following
    made, bucket = run.contexts[block], bucket_of(run, key)
    made.name = key
    made.references = 1
    made.following = run.contexts[bucket].chain
    run.contexts[bucket].chain = block


@compiled
def release(run: Run, row: int, units: int, keep_units: int) -> None:
    """End the turn's hold of `units`; the first `keep_units` have KV and stay."""
    engine, owner = run.engine[0], run.sessions[run.turns[row].session]
    register(run, row, keep_units)
    engine.reserved_units -= units - owner.kept_units
    while owner.kept_units:
        owner.kept_units -= 1
        block = find(run, key_of(run, row, owner.kept_units))
        left = run.contexts[block]
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
    engine, gone = run.engine[0], run.contexts[block]
    bucket = bucket_of(run, gone.name)
    before = run.contexts[bucket].chain
    if before == block:
        run.contexts[bucket].chain = gone.following
    else:
        while run.contexts[before].following != block:
            before = run.contexts[before].following
        run.contexts[before].following = gone.following
    gone.following = engine.free_block
    engine.free_block = block


@compiled
def link(run: Run, block: int) -> None:
    """Make a block the most recently used idle one."""
    engine, linked = run.engine[0], run.contexts[block]
    linked.older = engine.block_newest
    linked.newer = NOBODY
    if engine.block_newest == NOBODY:
        engine.block_oldest = block
    else:
        run.contexts[engine.block_newest].newer = block
    engine.block_newest = block


@compiled
def unlink(run: Run, block: int) -> None:
    """Take a block out of the idle ones."""
    engine, gone = run.engine[0], run.contexts[block]
    if gone.older == NOBODY:
        engine.block_oldest = gone.newer
    else:
        run.contexts[gone.older].newer = gone.newer
    if gone.newer == NOBODY:
        engine.block_newest = gone.older
    else:
        run.contexts[gone.newer].older = gone.older
