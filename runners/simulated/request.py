"""One turn on its way through the simulated engine, and its session."""

from __future__ import annotations

from registry.plan import SessionDraw


class Request:
    """One turn of a session; times in seconds, null (None) until they come.

    The loop sets `admitted_s`, `outcome` and `detail`; the engine sets
    `start_s`, `first_token_s`, `done_s`, `cached_tokens` and `left_tokens`
    (prompt tokens without KV yet).
    """

    __slots__ = (
        "admitted_s",
        "cached_tokens",
        "detail",
        "done_s",
        "first_token_s",
        "left_tokens",
        "order",
        "outcome",
        "output_tokens",
        "planned_s",
        "prompt_tokens",
        "session",
        "start_s",
        "turn",
    )

    def __init__(
        self,
        session: str,
        order: int,
        turn: int,
        prompt_tokens: int,
        output_tokens: int,
        planned_s: float,
    ) -> None:
        self.session = session
        self.order = order
        self.turn = turn
        self.prompt_tokens = prompt_tokens
        self.output_tokens = output_tokens
        self.planned_s = planned_s
        self.left_tokens = prompt_tokens
        self.admitted_s: float | None = None
        self.start_s: float | None = None
        self.first_token_s: float | None = None
        self.done_s: float | None = None
        self.cached_tokens: int | None = None
        self.outcome = "open at horizon"
        self.detail: str | None = None


class Session:
    """One session of a run; `order` counts sessions as they arrive."""

    __slots__ = (
        "arrival_s",
        "draw",
        "end_s",
        "name",
        "order",
        "origin",
        "outcome",
        "turns_done",
    )

    def __init__(self, origin: str, index: int, draw: SessionDraw, arrival_s: float) -> None:
        self.origin = origin
        self.name = f"{origin}-{index}"
        self.draw = draw
        self.arrival_s = arrival_s
        self.order = -1
        self.turns_done = 0
        self.end_s: float | None = None
        self.outcome = "open at horizon"
