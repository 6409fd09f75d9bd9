"""Scripted runs against a slow engine that walks every step and keeps a plain list of blocks.

Written apart from the product's, from its description. Costs and times are powers of
two, so both give the same numbers exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from modelf.cells import Cell, StepCosts
from registry.design import Arm
from registry.plan import Plan
from registry.scripted_workload import ScriptedWorkload
from runners.simulated.run import simulate
from tests.runners.script_support import STEP_US, scripted_workloads

BLOCK = 4
Key = tuple[Any, ...]


@dataclass(eq=False)
class SlowTurn:
    """One turn; `mine`: keys of the blocks it refers to, `private`: units it holds besides."""

    session: str
    turn: int
    planned_s: float
    prompt: int
    output: int
    wait_s: float | None
    keys: list[Key]
    computed: int = 0
    sampled: int = 0
    decodes: bool = False
    cached: int | None = None
    retractions: int = 0
    mine: list[Key] = field(default_factory=list)
    private: int = 0
    start_s: float | None = None
    first_token_s: float | None = None
    done_s: float | None = None

    def missing(self) -> int:
        return self.prompt + self.sampled - self.computed


class SlowCache:
    """Blocks by key: which turns use them; `idle` is in order of eviction."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.users: dict[Key, set[SlowTurn]] = {}
        self.idle: list[Key] = []
        self.running: list[SlowTurn] = []

    def in_use(self) -> int:
        return sum(turn.private for turn in self.running) + sum(1 for users in self.users.values() if users)

    def found(self, turn: SlowTurn) -> list[Key]:
        count = 0
        while (count + 1) * BLOCK < turn.prompt + turn.sampled and turn.keys[count] in self.users:
            count += 1
        return turn.keys[:count]

    def admits(self, turn: SlowTurn, tokens: int) -> bool:
        used = sum(1 for key in self.found(turn) if self.users[key])
        return self.in_use() + -(-tokens // BLOCK) - used <= self.size

    def enter(self, turn: SlowTurn) -> int:
        for key in self.found(turn):
            self.refer(turn, key)
        self.running.append(turn)
        return len(turn.mine) * BLOCK

    def refer(self, turn: SlowTurn, key: Key) -> None:
        if key in self.idle:
            self.idle.remove(key)
        self.users.setdefault(key, set()).add(turn)
        turn.mine.append(key)

    def hold(self, turn: SlowTurn, tokens: int) -> bool:
        more = max(0, -(-tokens // BLOCK) - len(turn.mine) - turn.private)
        if self.in_use() + more > self.size:
            return False
        turn.private += more
        while self.in_use() + len(self.idle) > self.size:
            del self.users[self.idle.pop(0)]
        return True

    def compute(self, turn: SlowTurn, tokens: int) -> None:
        for key in turn.keys[len(turn.mine) : tokens // BLOCK]:
            self.refer(turn, key)
            turn.private -= 1

    def leave(self, turn: SlowTurn, tokens: int) -> None:
        self.compute(turn, tokens)
        for key in reversed(turn.mine):
            self.users[key].remove(turn)
            if not self.users[key]:
                self.idle.append(key)
        turn.mine, turn.private = [], 0
        self.running.remove(turn)


class SlowEngine:
    """Plays a scripted plan; `mixed` or not as the cell says."""

    def __init__(self, plan: Plan, arm: Arm, cell: Cell) -> None:
        assert cell.step_costs is not None and isinstance(plan.workload, ScriptedWorkload)
        self.costs, self.scripts, self.caching = cell.step_costs, plan.workload.scripts, arm.caching
        self.horizon_s = plan.horizon_us / 1e6
        self.cache = SlowCache(cell.pool_tokens // BLOCK)
        self.due: list[tuple[float, int, str, int, int]] = []
        self.scheduled = 0
        first = plan.draws("base", len(plan.base_arrivals_us)).script
        assert first is not None
        for index, time_us in enumerate(plan.base_arrivals_us):
            self.schedule(time_us / 1e6, f"base-{index}", 1, int(first[index]))
        self.waiting: list[SlowTurn] = []
        self.turns: list[SlowTurn] = []
        self.order: dict[str, int] = {name: number for _, number, name, _, _ in self.due}
        self.mixed = cell.scheduler == "mixed"

    def schedule(self, time_s: float, session: str, turn: int, row: int) -> None:
        self.due.append((time_s, self.scheduled, session, turn, row))
        self.scheduled += 1

    def turn_of(self, time_s: float, session: str, number: int, row: int) -> SlowTurn:
        scripts = self.scripts
        ids = scripts.blocks[scripts.first_block[row] : scripts.first_block[row + 1]].tolist()
        prompt, output = int(scripts.prompt_tokens[row]), int(scripts.output_tokens[row])
        keys: list[Key] = [(block,) if block < scripts.shared_blocks else (session, block) for block in ids]
        keys += [(session, number, "unknown", place) for place in range(len(ids), (prompt + output) // BLOCK + 1)]
        last = row + 1 in scripts.first_turn.tolist()
        wait_s = None if last else int(scripts.wait_us[row + 1]) / 1e6
        return SlowTurn(session, number, time_s, prompt, output, wait_s, keys)

    def play(self) -> None:
        now_s, rows = 0.0, {}
        while now_s < self.horizon_s:
            for entry in sorted(self.due):
                time_s, _, session, number, row = entry
                if time_s <= now_s:
                    self.due.remove(entry)
                    turn = self.turn_of(time_s, session, number, row)
                    rows[turn] = row
                    self.turns.append(turn)
                    self.waiting.append(turn)
            if self.cache.running or self.waiting:
                now_s, finished = self.mixed_step(now_s) if self.mixed else self.step(now_s)
                for turn in finished:
                    self.cache.leave(turn, turn.computed if self.caching else 0)
                    if now_s < self.horizon_s:
                        turn.done_s = now_s
                    if turn.wait_s is not None:
                        self.schedule(now_s + turn.wait_s, turn.session, turn.turn + 1, rows[turn] + 1)
            elif self.due:
                now_s = min(self.due)[0]
            else:
                break
        self.turns += [self.turn_of(t, s, n, r) for t, _, s, n, r in self.due if t < self.horizon_s]

    def piece(self, turn: SlowTurn, budget: int) -> tuple[float, int]:
        """Compute so much of a turn's prefill: seconds and tokens."""
        new = min(turn.missing(), budget)
        cost_s = self.costs.prefill_token_s * new
        cost_s += self.costs.prefill_pair_s * (new * turn.computed + new**2 / 2)
        turn.computed += new
        if self.caching:
            known = len([key for key in turn.keys if "unknown" not in key])
            self.cache.compute(turn, min(turn.computed, turn.prompt, known * BLOCK))
        return cost_s, new

    def sample(self, turn: SlowTurn, now_s: float) -> bool:
        """One output token; whether the turn is done."""
        turn.sampled += 1
        turn.decodes = True
        if turn.sampled == 1 and now_s < self.horizon_s:
            turn.first_token_s = now_s
        return turn.sampled == turn.output

    def enter(self, now_s: float) -> SlowTurn:
        turn = self.waiting.pop(0)
        turn.computed = self.cache.enter(turn)
        if turn.start_s is None:
            turn.start_s, turn.cached = now_s, turn.computed
        return turn

    def step(self, now_s: float) -> tuple[float, list[SlowTurn]]:
        """Prefill of all that fits the budget, or one step of decode."""
        budget, cost_s, partial = self.costs.chunk_tokens, 0.0, [t for t in self.cache.running if not t.decodes]
        complete = []
        while budget:
            if not partial:
                if not (self.waiting and self.cache.admits(self.waiting[0], self.whole(self.waiting[0]))):
                    break
                partial = [self.enter(now_s)]
                assert self.cache.hold(partial[0], self.whole(partial[0]))
                cost_s += self.costs.prefill_request_s
            piece_s, new = self.piece(partial[0], budget)
            cost_s, budget = cost_s + piece_s, budget - new
            if not partial[0].missing():
                complete.append(partial.pop())
        if budget < self.costs.chunk_tokens:
            return now_s + cost_s, [turn for turn in complete if self.sample(turn, now_s + cost_s)]
        decoding = sorted(self.cache.running, key=lambda turn: self.order[turn.session])
        now_s += self.costs.decode_step_s + self.costs.decode_kv_token_s * sum(t.computed for t in decoding)
        for turn in decoding:
            turn.computed += 1
        return now_s, [turn for turn in decoding if self.sample(turn, now_s)]

    def whole(self, turn: SlowTurn) -> int:
        return turn.prompt + turn.output

    def mixed_step(self, now_s: float) -> tuple[float, list[SlowTurn]]:
        """Decode of all, prefill within what is left of the budget."""
        budget, prefill_s, preempted, decoding, cache = self.costs.chunk_tokens, 0.0, False, [], self.cache
        complete = []
        for turn in list(cache.running):
            new = 1 if turn.decodes else min(turn.missing(), max(budget, 0))
            while turn in cache.running and not cache.hold(turn, turn.computed + new):
                self.preempt()
                preempted = True
            if turn not in cache.running:
                break
            budget -= new
            if turn.decodes:
                decoding.append(turn)
            elif new:
                prefill_s += self.piece(turn, new)[0]
                complete += [] if turn.missing() else [turn]
        decoding = [turn for turn in decoding if turn in cache.running]
        decode_s = self.costs.decode_kv_token_s * sum(turn.computed for turn in decoding)
        while self.waiting and budget > 0 and not preempted:
            head = self.waiting[0]
            if not cache.admits(head, head.prompt + head.sampled):
                break
            turn = self.enter(now_s)
            assert cache.hold(turn, turn.computed + min(turn.missing(), budget))
            piece_s, new = self.piece(turn, budget)
            prefill_s += self.costs.prefill_request_s + piece_s
            budget -= new
            complete += [] if turn.missing() else [turn]
        now_s += max(prefill_s, self.costs.decode_step_s) + decode_s
        for turn in decoding:
            turn.computed += 1
        done = {turn for turn in [*decoding, *complete] if self.sample(turn, now_s)}
        return now_s, [turn for turn in cache.running if turn in done]

    def preempt(self) -> None:
        victim = self.cache.running[-1]
        self.cache.leave(victim, victim.computed if self.caching else 0)
        victim.computed, victim.decodes = 0, False
        victim.retractions += 1
        self.waiting.insert(0, victim)


@st.composite
def scripted_runs(draw: Any) -> tuple[Plan, Arm, Cell]:
    """Up to twenty arrivals that follow random scripts, in a pool of a few of their turns."""
    workload = draw(scripted_workloads(BLOCK))
    times = sorted(STEP_US * t for t in draw(st.lists(st.integers(0, 600), min_size=1, max_size=20)))
    chunk, scheduler = draw(st.sampled_from([8, 32, 1024])), draw(st.sampled_from(["mixed", "prefill-first"]))
    costs = StepCosts(2.0**-3, 2.0**-8, 2.0**-16, 2.0**-4, 2.0**-12, chunk)
    pool = workload.longest_turn_tokens() + BLOCK + draw(st.integers(0, 200))
    key = bytes([draw(st.integers(0, 255))]) * 32
    arm = Arm("ANY", caching=draw(st.sampled_from([True, True, True, False])))
    return (
        Plan(key, workload, 60_000_000, tuple(times), (), 0),
        arm,
        Cell("any", "", "", "", "", pool, 1, costs, (), scheduler, "token-lru"),
    )


@given(scripted_runs())
@settings(max_examples=100, deadline=None)
def test_shared_blocks_equal_an_engine_that_walks_each_step(given_run: tuple[Plan, Arm, Cell]) -> None:
    slow = SlowEngine(*given_run)
    slow.play()
    fast = {(row["session"], row["turn"]): row for row in simulate(*given_run)["turns"].to_pylist()}
    assert len(fast) == len(slow.turns)
    for turn in slow.turns:
        row = fast[turn.session, turn.turn]
        for name in ("planned_s", "start_s", "first_token_s", "done_s", "retractions"):
            assert row[name] == getattr(turn, name), (name, turn)
        assert row["cached_tokens"] == turn.cached, turn
        assert row["prompt_tokens"] == turn.prompt
