"""The simulated engine against a slow one that walks every step.

The slow engine is written apart from the product's, from the same
description: plain lists, times by adding one step's cost after another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from modelf.cells import CELLS, Cell
from modelf.workload import STANDARD_WORKLOAD
from registry.design import Arm, Burst, Design, Seeds
from registry.plan import Plan, SessionDraw, make_plan, plan_key
from runners.simulated.run import simulate


@dataclass
class SlowTurn:
    """One turn; `left` prompt tokens without KV, `sampled` output tokens."""

    session: str
    turn: int
    planned_s: float
    prompt: int
    left: int
    cached: int | None = None
    sampled: int = 0
    start_s: float | None = None
    first_token_s: float | None = None
    done_s: float | None = None


class SlowEngine:
    """Plays a plan of open arrivals to its horizon; `turns` is what it did."""

    def __init__(self, plan: Plan, cell: Cell) -> None:
        assert cell.step_costs is not None
        self.costs = cell.step_costs
        self.pool_tokens = cell.pool_tokens
        self.plan = plan
        self.output = plan.workload.output_tokens
        self.draws: dict[str, SessionDraw] = {}
        self.due: list[tuple[float, int, str, int]] = []
        for order, (time_us, origin, index) in enumerate(plan.arrivals()):
            name = f"{origin}-{index}"
            self.draws[name] = plan.session(origin, index)
            self.due.append((time_us / 1e6, order, name, 1))
        self.waiting: list[SlowTurn] = []
        self.prefilling: list[SlowTurn] = []
        self.decoding: list[SlowTurn] = []
        self.idle: list[tuple[str, int]] = []
        self.turns: list[SlowTurn] = []

    def play(self) -> None:
        now_s, horizon_s = 0.0, self.plan.horizon_us / 1e6
        while now_s < horizon_s:
            self.take_due(now_s, horizon_s)
            if self.prefilling or self.head_fits():
                now_s = self.prefill_step(now_s, horizon_s)
            elif self.decoding:
                now_s = self.decode_step(now_s, horizon_s)
            elif self.due:
                now_s = min(self.due)[0]
            else:
                break

    def take_due(self, now_s: float, horizon_s: float) -> None:
        """Everything due by now enters the queue, in order of time."""
        for row in sorted(self.due):
            time_s, _, name, turn = row
            if time_s <= now_s and time_s < horizon_s:
                self.due.remove(row)
                prompt = self.plan.workload.prompt_tokens(turn)
                request = SlowTurn(name, turn, time_s, prompt, prompt)
                self.waiting.append(request)
                self.turns.append(request)

    def reserved(self) -> int:
        return sum(r.prompt + self.output for r in self.prefilling + self.decoding)

    def head_fits(self) -> bool:
        if not self.waiting:
            return False
        return self.reserved() + self.waiting[0].prompt + self.output <= self.pool_tokens

    def admit(self, now_s: float) -> None:
        request = self.waiting.pop(0)
        kept = dict(self.idle).get(request.session, 0)
        self.idle = [(name, size) for name, size in self.idle if name != request.session]
        self.prefilling.append(request)
        request.start_s = now_s
        request.cached = min(kept, request.prompt - 1)
        request.left = request.prompt - request.cached
        excess = self.reserved() + sum(size for _, size in self.idle) - self.pool_tokens
        while excess > 0:
            name, size = self.idle[0]
            gone = min(size, excess)
            self.idle[0:1] = [(name, size - gone)] if size > gone else []
            excess -= gone

    def prefill_step(self, now_s: float, horizon_s: float) -> float:
        budget, cost_s, at = self.costs.chunk_tokens, 0.0, 0
        while budget:
            if at == len(self.prefilling):
                if not self.head_fits():
                    break
                self.admit(now_s)
                cost_s += self.costs.prefill_request_s
            request = self.prefilling[at]
            new = min(budget, request.left)
            held = request.prompt - request.left
            cost_s += self.costs.prefill_token_s * new
            cost_s += self.costs.prefill_pair_s * (new * held + new**2 / 2)
            request.left -= new
            budget -= new
            at += 1
        now_s += cost_s
        for request in [r for r in self.prefilling if not r.left]:
            self.prefilling.remove(request)
            self.decoding.append(request)
            request.sampled = 1
            if now_s < horizon_s:
                request.first_token_s = now_s
        return now_s

    def decode_step(self, now_s: float, horizon_s: float) -> float:
        kv_tokens = sum(r.prompt + r.sampled - 1 for r in self.decoding)
        now_s += self.costs.decode_step_s + self.costs.decode_kv_token_s * kv_tokens
        for request in self.decoding:
            request.sampled += 1
        finished = [r for r in self.decoding if r.sampled == self.output]
        for request in sorted(finished, key=lambda r: list(self.draws).index(r.session)):
            self.decoding.remove(request)
            self.idle.append((request.session, request.prompt + self.output - 1))
            if now_s < horizon_s:
                request.done_s = now_s
            draw = self.draws[request.session]
            if request.turn < draw.turns:
                due_s = now_s + draw.tool_us[request.turn - 1] / 1e6
                order = list(self.draws).index(request.session)
                self.due.append((due_s, order, request.session, request.turn + 1))
        return now_s


@pytest.mark.parametrize(
    ("pool_tokens", "lambda_per_s", "seed"),
    [(300_000, 0.144, 0), (41_000, 0.144, 1), (45_000, 0.072, 2), (60_000, 0.288, 3)],
)
def test_closed_form_decode_equals_an_engine_that_walks_each_step(
    pool_tokens: int, lambda_per_s: float, seed: int
) -> None:
    arm = Arm("SMALL", Burst(15, 60.0, 10.0))
    design = Design(400.0, STANDARD_WORKLOAD, (), (arm,), (), Seeds((seed,), "literal"))
    plan = make_plan(plan_key("", 0, "", seed), design, arm, lambda_per_s)
    cell = replace(CELLS["sglang-300k"], pool_tokens=pool_tokens)
    slow = SlowEngine(plan, cell)
    slow.play()
    fast = simulate(plan, arm, cell)["turns"].to_pylist()
    assert len(fast) == len(slow.turns) > 100
    by_turn = {(row["session"], row["turn"]): row for row in fast}
    for turn in slow.turns:
        row = by_turn[turn.session, turn.turn]
        assert row["cached_tokens"] == turn.cached
        for name in ("planned_s", "start_s", "first_token_s", "done_s"):
            expected = getattr(turn, name)
            assert row[name] == (expected and pytest.approx(expected, rel=1e-9)), name
