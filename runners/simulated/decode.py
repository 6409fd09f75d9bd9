"""The decode batch of the simulated engine, advanced in closed form.

All running requests past their prefill decode together, one token a step. A
step costs `decode_step_s` + `decode_kv_token_s` times the KV tokens the batch
holds when it begins; each step adds one token a request. A segment is a span
of constant batch: from KV tokens K and batch b, n steps take
n * decode_step_s + decode_kv_token_s * (n K + b n (n - 1) / 2).
Only IEEE basic operations and the square root decide anything. Times are
seconds from the run's start.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush

from modelf.cells import StepCosts
from runners.simulated.request import Request


class DecodeBatch:
    """Requests that decode, and the segment they are in.

    `size` is their number; `segment_steps` is 0 outside a segment. Finishes
    are kept as counts on one decode-step counter for the whole engine, so a
    segment costs the same whatever the batch.
    """

    __slots__ = (
        "_finishing",
        "_kv_tokens",
        "_start_s",
        "_step_kv_token_s",
        "_step_s",
        "_steps_done",
        "segment_steps",
        "size",
    )

    def __init__(self, costs: StepCosts) -> None:
        self.size = 0
        self.segment_steps = 0
        self._step_s = costs.decode_step_s
        self._step_kv_token_s = costs.decode_kv_token_s
        self._finishing: list[tuple[int, int, Request]] = []
        self._steps_done = 0
        self._kv_tokens = 0
        self._start_s = 0.0

    def join(self, request: Request) -> None:
        """Add a request that has its first token and wants more."""
        last_step = self._steps_done + request.output_tokens - 1
        heappush(self._finishing, (last_step, request.order, request))
        self.size += 1
        self._kv_tokens += request.prompt_tokens

    def begin(self, start_s: float) -> float:
        """Begin a segment up to the next finish; returns its end."""
        self._start_s = start_s
        self.segment_steps = steps = self._finishing[0][0] - self._steps_done
        return start_s + self._duration_s(steps)

    def cut(self, time_s: float) -> float:
        """End the segment at its first boundary at or after `time_s`: when."""
        self.segment_steps = steps = self._steps_to_reach(time_s)
        return self._start_s + self._duration_s(steps)

    def complete(self, finished: list[Request]) -> int:
        """End the segment: appends who finished, returns tokens sampled."""
        sampled = self.segment_steps * self.size
        self._steps_done += self.segment_steps
        self.segment_steps = 0
        self._kv_tokens += sampled
        finishing = self._finishing
        while finishing and finishing[0][0] == self._steps_done:
            request = heappop(finishing)[2]
            finished.append(request)
            self.size -= 1
            self._kv_tokens -= request.prompt_tokens + request.output_tokens - 1
        return sampled

    def sampled_by(self, time_s: float) -> int:
        """Tokens of the current segment's steps over by `time_s`."""
        if not self.segment_steps:
            return 0
        steps = self._steps_to_reach(time_s)
        if self._start_s + self._duration_s(steps) > time_s:
            steps -= 1
        return steps * self.size

    def _duration_s(self, steps: int) -> float:
        """Duration of the segment's first `steps` steps."""
        kv_tokens = steps * self._kv_tokens + self.size * (steps * (steps - 1) // 2)
        return steps * self._step_s + self._step_kv_token_s * kv_tokens

    def _steps_to_reach(self, time_s: float) -> int:
        """Fewest steps (at least 1) whose boundary is at or after `time_s`.

        The quadratic's root is a first guess; the boundaries decide.
        """
        start_s = self._start_s
        span_s = time_s - start_s
        curve = self._step_kv_token_s * self.size / 2
        slope = self._step_s + self._step_kv_token_s * self._kv_tokens - curve
        steps = 1 + int(2 * span_s / (slope + math.sqrt(slope * slope + 4 * curve * span_s)))
        while start_s + self._duration_s(steps) < time_s:
            steps += 1
        while steps > 1 and start_s + self._duration_s(steps - 1) >= time_s:
            steps -= 1
        return steps
