"""What a client is told that is not let through, in the OpenAI form."""

from __future__ import annotations

from typing import Any, NamedTuple

from runners.proxy.settings import RETRY_AFTER_S


class Refusal(NamedTuple):
    """`status`: HTTP's; `code`: for programs; `retry`: whether it is worth it."""

    status: int
    code: str
    message: str
    retry: bool = False

    @property
    def headers(self) -> dict[str, str]:
        """Retry-After, or the word that OpenAI's clients take as: do not retry."""
        return {"Retry-After": str(RETRY_AFTER_S)} if self.retry else {"X-Should-Retry": "false"}

    @property
    def body(self) -> dict[str, Any]:
        """An error as OpenAI's clients read it."""
        return {"error": {"message": self.message, "type": "gate_error", "param": None, "code": self.code}}


OVERFLOW = Refusal(429, "gate_queue_full", "the gate's queue is full: come again later", retry=True)
TOO_LONG = Refusal(429, "gate_wait_too_long", "the session waited as long as the gate allows", retry=True)
STOPPING = Refusal(503, "gate_stopping", "the gate is being stopped: come again later", retry=True)
REPLACED = Refusal(409, "gate_replaced", "a newer request of this session took its place in the queue")
ENDED = Refusal(409, "gate_session_ended", "the session was ended while this request waited")
TOO_LARGE = Refusal(413, "gate_body_too_large", "the request's body is larger than the gate allows")
UNREACHABLE = Refusal(502, "gate_engine_unreachable", "the engine behind the gate cannot be reached", retry=True)
BROKEN = Refusal(502, "gate_engine_broke_off", "the engine behind the gate broke off before it answered", retry=True)
SLOW = Refusal(504, "gate_engine_silent", "the engine behind the gate did not answer in time", retry=True)
