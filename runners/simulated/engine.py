"""A step-level engine with continuous batching and a prefix cache.

Scheduling is first come, first served, and prefill goes before decode:

- A prefill step has a budget of `chunk_tokens`. It continues the request cut
  off by the last step's budget, then admits waiting requests from the head
  while budget is left and prompt + output of the head fit beside the running
  reservations; a head that does not fit blocks those behind it. It runs
  without decode and yields the first token of each prefill it completes.
- Otherwise the batch decodes, up to the next finish of a running request or
  the first step boundary at or after a submission that the scheduler can act
  on, whichever comes first.

A piece of n new tokens after m tokens with KV costs `prefill_token_s` n +
`prefill_pair_s` (n m + n^2 / 2), and `prefill_request_s` once a request.
Times are seconds from the run's start.
"""

from __future__ import annotations

import math
from collections import deque

from modelf.cells import StepCosts
from runners.simulated.decode import DecodeBatch
from runners.simulated.pool import KVPool
from runners.simulated.request import Request

NEVER = math.inf


class Engine:
    """One engine life.

    `next_s` is the next instant at which it acts (inf when idle): call
    `complete` there, hand it whatever else happens at that instant, then
    `schedule`. Cached tokens come in whole blocks of `block_tokens`.
    """

    __slots__ = (
        "_block_tokens",
        "_caching",
        "_costs",
        "_decode",
        "_output_tokens_total",
        "_partial",
        "_pool",
        "_prefilled",
        "_running",
        "_step_tokens",
        "_uncached_tokens_total",
        "_waiting",
        "next_s",
    )

    def __init__(self, costs: StepCosts, pool: KVPool, block_tokens: int = 1, caching: bool = True) -> None:
        self.next_s = NEVER
        self._costs = costs
        self._pool = pool
        self._block_tokens = block_tokens
        self._caching = caching
        self._decode = DecodeBatch(costs)
        self._waiting: deque[Request] = deque()
        self._running = 0
        self._uncached_tokens_total = 0
        self._output_tokens_total = 0
        self._partial: Request | None = None
        self._prefilled: list[Request] = []
        self._step_tokens = 0

    def submit(self, request: Request, now_s: float) -> bool:
        """Queue a request; False if it is longer than the whole pool."""
        tokens = request.prompt_tokens + request.output_tokens
        if tokens > self._pool.size_tokens:
            return False
        waiting = self._waiting
        waiting.append(request)
        if self._decode.segment_steps:
            # Whoever waits during decode already is blocked until a request finishes,
            # or has cut the segment.
            if len(waiting) == 1 and self._pool.fits(tokens):
                self.next_s = self._decode.cut(now_s)
        elif self.next_s == NEVER:
            self.next_s = now_s
        return True

    def complete(self) -> list[Request]:
        """Apply the step or segment that ends at `next_s`: who finished there."""
        finished: list[Request] = []
        if self._step_tokens:
            self._complete_prefill(finished)
        elif self._decode.segment_steps:
            self._output_tokens_total += self._decode.complete(finished)
        for request in finished:
            request.done_s = self.next_s
            context = request.prompt_tokens + request.output_tokens
            # The last sampled token's KV is never written.
            keep = context - 1 if self._caching else 0
            self._pool.release(request.session, context, keep)
        self._running -= len(finished)
        return finished

    def schedule(self) -> None:
        """Begin the next step or segment at `next_s`, or fall idle."""
        if self._partial is not None or self._head_fits():
            self._start_prefill()
        elif self._decode.size:
            self.next_s = self._decode.begin(self.next_s)
        else:
            self.next_s = NEVER

    def gauges(self, time_s: float) -> tuple[int, int, int, int, int, int]:
        """(running, waiting, reserved, idle, uncached total, output total).

        The state at `time_s`, between the last event and `next_s`; tokens of
        a prefill step count when it ends, decode tokens step by step.
        """
        return (
            self._running,
            len(self._waiting),
            self._pool.reserved_tokens,
            self._pool.idle_tokens,
            self._uncached_tokens_total,
            self._output_tokens_total + self._decode.sampled_by(time_s),
        )

    def _head_fits(self) -> bool:
        if not self._waiting:
            return False
        head = self._waiting[0]
        return self._pool.fits(head.prompt_tokens + head.output_tokens)

    def _start_prefill(self) -> None:
        costs = self._costs
        budget = costs.chunk_tokens
        cost_s = 0.0
        while True:
            request = self._partial
            if request is None:
                request = self._admit()
                cost_s += costs.prefill_request_s
            left = request.left_tokens
            new = left if left < budget else budget
            held = request.prompt_tokens - left
            pairs = new * held + new * new / 2
            cost_s += costs.prefill_token_s * new + costs.prefill_pair_s * pairs
            request.left_tokens = left - new
            budget -= new
            if new < left:
                self._partial = request
                break
            self._partial = None
            self._prefilled.append(request)
            if not budget or not self._head_fits():
                break
        self._step_tokens = costs.chunk_tokens - budget
        self.next_s += cost_s

    def _admit(self) -> Request:
        """Take the head into the running set; its kept prefix is its hit."""
        request = self._waiting.popleft()
        prompt = request.prompt_tokens
        kept = self._pool.reserve(request.session, prompt + request.output_tokens)
        cached = kept if kept < prompt else prompt - 1
        cached -= cached % self._block_tokens
        request.cached_tokens = cached
        request.left_tokens = prompt - cached
        request.start_s = self.next_s
        self._running += 1
        return request

    def _complete_prefill(self, finished: list[Request]) -> None:
        self._uncached_tokens_total += self._step_tokens
        self._step_tokens = 0
        self._output_tokens_total += len(self._prefilled)
        for request in self._prefilled:
            request.first_token_s = self.next_s
            if request.output_tokens == 1:
                finished.append(request)
            else:
                self._decode.join(request)
        self._prefilled.clear()
