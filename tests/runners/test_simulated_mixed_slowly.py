"""The vLLM-like scheduler against a slow one that walks every step.

The slow engine is written apart from the product's, from its description:
plain lists, one step at a time, times by adding one step's cost after another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from modelf.cells import CELLS, Cell, StepCosts
from modelf.turn_law import TruncatedGeometric
from modelf.workload import STANDARD_WORKLOAD, Workload
from registry.design import Arm, Burst, Design, Seeds
from registry.plan import Plan, make_plan, plan_key
from runners.simulated.run import simulate


@dataclass
class SlowTurn:
    """One turn; `computed` tokens of it have KV, `sampled` output tokens exist.

    `decodes`: it has sampled a token since it was last admitted.
    """

    session: str
    turn: int
    planned_s: float
    prompt: int
    computed: int = 0
    sampled: int = 0
    cached: int | None = None
    retractions: int = 0
    decodes: bool = False
    start_s: float | None = None
    first_token_s: float | None = None
    done_s: float | None = None

    def missing(self) -> int:
        """Tokens to compute before the next one can be sampled."""
        return self.prompt + self.sampled - self.computed


class SlowEngine:
    """Plays a plan of open arrivals to its horizon; `turns` is what it did.

    `running` is in order of admission; `idle` holds (session, tokens) from the
    least to the most recently used.
    """

    def __init__(self, plan: Plan, arm: Arm, cell: Cell) -> None:
        assert cell.step_costs is not None
        self.costs, self.plan, self.caching = cell.step_costs, plan, arm.caching
        self.block = cell.cache_block_tokens
        self.unit = cell.cache_block_tokens if cell.cache == "block-lru" else 1
        self.size = cell.pool_tokens // self.unit
        self.output = plan.workload.output_tokens
        self.due: list[tuple[float, int, str, int]] = []
        self.order: dict[str, int] = {}
        for order, (time_us, origin, index) in enumerate(plan.arrivals()):
            name = f"{origin}-{index}"
            self.order[name] = order
            self.due.append((time_us / 1e6, order, name, 1))
        self.draws = {name: plan.session(name.split("-")[0], int(name.split("-")[1])) for name in self.order}
        self.waiting: list[SlowTurn] = []
        self.running: list[SlowTurn] = []
        self.held: dict[str, int] = {}
        self.idle: list[tuple[str, int]] = []
        self.turns: list[SlowTurn] = []

    def play(self) -> None:
        now_s, horizon_s = 0.0, self.plan.horizon_us / 1e6
        while now_s < horizon_s:
            self.take_due(now_s, horizon_s)
            if self.running or self.waiting:
                now_s = self.step(now_s, horizon_s)
            elif self.due:
                now_s = min(self.due)[0]
            else:
                break
        self.take_due(horizon_s, horizon_s)

    def take_due(self, now_s: float, horizon_s: float) -> None:
        for row in sorted(self.due):
            time_s, _, name, turn = row
            if time_s <= now_s and time_s < horizon_s:
                self.due.remove(row)
                self.waiting.append(SlowTurn(name, turn, time_s, self.plan.workload.prompt_tokens(turn)))
                self.turns.append(self.waiting[-1])

    def units(self, tokens: int) -> int:
        return -(-tokens // self.unit)

    def hold(self, turn: SlowTurn, tokens: int) -> bool:
        """Hold units for `tokens` tokens of the turn, if need be of idle contexts."""
        others = sum(units for name, units in self.held.items() if name != turn.session)
        if others + self.units(tokens) > self.size:
            return False
        self.held[turn.session] = self.units(tokens)
        excess = sum(self.held.values()) + sum(self.units(size) for _, size in self.idle) - self.size
        while excess > 0:
            name, size = self.idle.pop(0)
            gone = min(self.units(size), excess)
            excess -= gone
            if self.units(size) > gone:
                self.idle.insert(0, (name, (self.units(size) - gone) * self.unit))
        return True

    def give_up(self, turn: SlowTurn) -> None:
        """End the turn's hold; whole units with KV stay as the session's context."""
        del self.held[turn.session]
        self.running.remove(turn)
        kept = turn.computed // self.unit * self.unit
        if kept and self.caching:
            self.idle.append((turn.session, kept))

    def preempt(self) -> SlowTurn:
        victim = self.running[-1]
        self.give_up(victim)
        victim.computed, victim.decodes = 0, False
        victim.retractions += 1
        self.waiting.insert(0, victim)
        return victim

    def step(self, now_s: float, horizon_s: float) -> float:
        before = sum(turn.retractions for turn in self.turns)
        budget = self.costs.chunk_tokens
        decoding, pieces, request_s = [], [], 0.0
        for turn in list(self.running):
            new = 1 if turn.decodes else min(turn.missing(), max(budget, 0))
            while turn in self.running and not self.hold(turn, turn.computed + new):
                self.preempt()
            if turn not in self.running:
                break
            if turn.decodes:
                decoding.append(turn)
            elif new:
                pieces.append((turn, new))
            budget -= new
        while self.waiting and budget > 0 and sum(turn.retractions for turn in self.turns) == before:
            new = self.admit(now_s, budget)
            if not new:
                break
            pieces.append((self.running[-1], new))
            budget -= new
            request_s += self.costs.prefill_request_s
        return self.end_step(now_s, horizon_s, decoding, pieces, request_s)

    def admit(self, now_s: float, budget: int) -> int:
        """Admit the head if all of its prefill has room: the first piece's tokens, or 0."""
        turn = self.waiting[0]
        context = dict(self.idle).get(turn.session, 0)
        hit = min(context, turn.prompt + turn.sampled - 1) // self.block * self.block
        new = min(budget, turn.prompt + turn.sampled - hit)
        if sum(self.held.values()) + self.units(turn.prompt + turn.sampled) > self.size:
            return 0
        self.idle = [(name, size) for name, size in self.idle if name != turn.session]
        assert self.hold(turn, hit + new)
        self.running.append(self.waiting.pop(0))
        turn.computed = hit
        if turn.start_s is None:
            turn.start_s, turn.cached = now_s, hit
        return new

    def end_step(
        self,
        now_s: float,
        horizon_s: float,
        decoding: list[SlowTurn],
        pieces: list[tuple[SlowTurn, int]],
        request_s: float,
    ) -> float:
        costs = self.costs
        prefill_s = request_s
        for turn, new in pieces:
            prefill_s += costs.prefill_token_s * new + costs.prefill_pair_s * (new * turn.computed + new**2 / 2)
        kv_tokens = sum(turn.computed for turn in decoding)
        now_s += max(prefill_s, costs.decode_step_s) + costs.decode_kv_token_s * kv_tokens
        for turn, new in [*((turn, 1) for turn in decoding), *pieces]:
            turn.computed += new
            if not turn.missing():
                turn.sampled += 1
                turn.decodes = True
                if turn.sampled == 1 and now_s < horizon_s:
                    turn.first_token_s = now_s
        finished = [turn for turn in self.running if turn.sampled == self.output]
        for turn in finished:
            self.finish(turn, now_s, horizon_s)
        return now_s

    def finish(self, turn: SlowTurn, now_s: float, horizon_s: float) -> None:
        self.give_up(turn)
        if now_s < horizon_s:
            turn.done_s = now_s
        draw = self.draws[turn.session]
        if turn.turn < draw.turns:
            due_s = now_s + draw.tool_us[turn.turn - 1] / 1e6
            self.due.append((due_s, self.order[turn.session], turn.session, turn.turn + 1))


SHORT = Workload(TruncatedGeometric(5, 12), 300, 24, 61, 2.0)
GROWING = Workload(TruncatedGeometric(4, 6), 60, 150, 30, 2.0)
"""Most of a turn's KV comes with its output, so that room runs out in decode."""

SHORT_COSTS = StepCosts(0.01, 2e-4, 4e-8, 0.03, 1e-6, 512)


def plan_of(workload: Workload, arm: Arm, horizon_s: float, lambda_per_s: float, seed: int) -> Plan:
    design = Design(horizon_s, workload, (), (arm,), (), Seeds((seed,), "literal"))
    return make_plan(plan_key("", 0, "", seed), design, arm, lambda_per_s)


def compare(plan: Plan, arm: Arm, cell: Cell) -> SlowEngine:
    """Play both and hold every turn of one against the other's."""
    slow = SlowEngine(plan, arm, cell)
    slow.play()
    fast = {(row["session"], row["turn"]): row for row in simulate(plan, arm, cell)["turns"].to_pylist()}
    assert len(fast) == len(slow.turns)
    for turn in slow.turns:
        row = fast[turn.session, turn.turn]
        for name in ("planned_s", "start_s", "first_token_s", "done_s"):
            expected = getattr(turn, name)
            assert row[name] == (expected and pytest.approx(expected, rel=1e-9)), (name, turn)
        assert (row["cached_tokens"], row["retractions"]) == (turn.cached, turn.retractions), turn
    return slow


BURST = Arm("SMALL", Burst(15, 20.0, 5.0))


def cell_of(cache: str, block: int, pool_tokens: int, chunk_tokens: int) -> Cell:
    costs = replace(SHORT_COSTS, chunk_tokens=chunk_tokens)
    return Cell("any", "", "", "", "", pool_tokens, block, costs, (), "mixed", cache)


@pytest.mark.parametrize("cache", ["token-lru", "block-lru"])
@pytest.mark.parametrize("block", [1, 4, 16])
@pytest.mark.parametrize(
    ("pool_tokens", "chunk_tokens", "seed"),
    [(1500, 64, 0), (1500, 512, 1), (2300, 512, 2), (2300, 8192, 3), (4000, 512, 1), (4000, 8192, 4)],
)
def test_mixed_steps_equal_an_engine_that_walks_each_step(
    cache: str, block: int, pool_tokens: int, chunk_tokens: int, seed: int
) -> None:
    # Of token-lru, 16, 4000, 512, 1: a blocked head comes to fit while others decode.
    plan = plan_of(SHORT, BURST, 80.0, 0.3, seed)
    turns = compare(plan, BURST, cell_of(cache, block, pool_tokens, chunk_tokens)).turns
    assert len(turns) > 100
    assert any(turn.cached for turn in turns)


@pytest.mark.parametrize("cache", ["token-lru", "block-lru"])
@pytest.mark.parametrize("block", [1, 16])
@pytest.mark.parametrize(("pool_tokens", "chunk_tokens", "seed"), [(1500, 64, 0), (1500, 512, 1), (2300, 512, 2)])
def test_turns_that_outgrow_the_pool_are_preempted_as_in_the_slow_engine(
    cache: str, block: int, pool_tokens: int, chunk_tokens: int, seed: int
) -> None:
    plan = plan_of(GROWING, BURST, 80.0, 0.3, seed)
    turns = compare(plan, BURST, cell_of(cache, block, pool_tokens, chunk_tokens)).turns
    assert sum(turn.retractions for turn in turns) > 20


@pytest.mark.parametrize(("pool_tokens", "seed"), [(300_000, 0), (41_000, 1), (60_000, 2)])
def test_the_vllm_cell_equals_an_engine_that_walks_each_step(pool_tokens: int, seed: int) -> None:
    plan = plan_of(STANDARD_WORKLOAD, BURST, 200.0, 0.1, seed)
    slow = compare(plan, BURST, replace(CELLS["vllm-300k"], pool_tokens=pool_tokens))
    assert len(slow.turns) > 50


def test_without_caching_no_turn_hits_and_a_preempted_one_starts_over() -> None:
    arm = replace(BURST, caching=False)
    plan = plan_of(GROWING, arm, 80.0, 0.3, 0)
    turns = compare(plan, arm, cell_of("block-lru", 16, 1500, 512)).turns
    assert not any(turn.cached for turn in turns)
    assert sum(turn.retractions for turn in turns) > 20


def test_turns_of_one_output_token_never_decode() -> None:
    plan = plan_of(replace(SHORT, output_tokens=1), BURST, 80.0, 0.3, 0)
    turns = compare(plan, BURST, cell_of("block-lru", 16, 1500, 512)).turns
    done = [turn for turn in turns if turn.done_s is not None]
    assert len(done) > 100
    assert all(turn.done_s == turn.first_token_s for turn in done)


@pytest.mark.parametrize("cache", ["token-lru", "block-lru"])
@pytest.mark.parametrize(("first_prompt", "hit"), [(64, 64), (49, 64), (48, 48)])
def test_prompts_and_contexts_of_whole_blocks(cache: str, first_prompt: int, hit: int) -> None:
    # Prompts grow by 64; a turn of p prompt tokens leaves the KV of p + 15.
    workload = Workload(TruncatedGeometric(5, 12), first_prompt, 16, 48, 0.5)
    turns = compare(plan_of(workload, BURST, 60.0, 0.1, 0), BURST, cell_of(cache, 16, 50_000, 512)).turns
    hits = {(turn.turn, turn.cached) for turn in turns if turn.cached is not None}
    assert hits == {(1, 0)} | {(k, hit + 64 * (k - 2)) for k in range(2, 13)}


# Every cost is a power of two, so the sums below are exact in any order.
TINY_COSTS = StepCosts(0.5, 2.0**-10, 0.0, 0.25, 2.0**-12, 8)
TINY = Workload(TruncatedGeometric(1, 1), 8, 5, 3, 1.0)


def two_turns(blocks: int, chunk_tokens: int) -> list[dict[str, float]]:
    """Two turns of 8 prompt and 5 output tokens that arrive together at 1 s; blocks of 4."""
    costs = replace(TINY_COSTS, chunk_tokens=chunk_tokens)
    cell = Cell("tiny", "", "", "", "", 4 * blocks, 4, costs, (), "mixed", "block-lru")
    plan = Plan(b"key", TINY, 60_000_000, (1_000_000, 1_000_000), (), 0)
    compare(plan, Arm("TINY"), cell)
    rows: list[dict[str, float]] = simulate(plan, Arm("TINY"), cell)["turns"].to_pylist()
    return rows


def test_a_turn_preempted_in_prefill_by_hand() -> None:
    first, second = two_turns(blocks=4, chunk_tokens=6)
    # 6 tokens of the first; its other 2 and 4 of the second.
    second_start_s = 1.0 + 0.5 + 6 / 1024
    first_token_s = second_start_s + 0.5 + 6 / 1024
    assert (first["first_token_s"], second["start_s"]) == (first_token_s, second_start_s)
    # The first takes its third block, so the second has no room for its other 4
    # tokens until the first is done. Its one block stays.
    first_done_s = first_token_s + 4 * 0.25 + (8 + 9 + 10 + 11) / 4096
    second_token_s = first_done_s + 0.5 + 4 / 1024
    assert (first["done_s"], second["first_token_s"]) == (first_done_s, second_token_s)
    assert second["done_s"] == second_token_s + 4 * 0.25 + (8 + 9 + 10 + 11) / 4096
    assert (second["cached_tokens"], second["retractions"]) == (0, 1)


def test_a_turn_preempted_in_decode_by_hand() -> None:
    first, second = two_turns(blocks=5, chunk_tokens=8)
    first_token_s = 1.0 + 0.5 + 8 / 1024
    assert (first["first_token_s"], second["start_s"]) == (first_token_s, first_token_s)
    # Beside the first's decode the second prefills 7 tokens, then one.
    second_token_s = first_token_s + (0.5 + 7 / 1024 + 8 / 4096) + (0.25 + 9 / 4096)
    assert second["first_token_s"] == second_token_s
    # The second would need a third block beside the first's three.
    first_done_s = second_token_s + 2 * 0.25 + (10 + 11) / 4096
    assert first["done_s"] == first_done_s
    # It hits its two blocks, computes the KV of its first output token, samples the next, decodes three.
    assert second["done_s"] == first_done_s + (0.5 + 1 / 1024) + 3 * 0.25 + (9 + 10 + 11) / 4096
    assert (second["cached_tokens"], second["retractions"]) == (0, 1)
