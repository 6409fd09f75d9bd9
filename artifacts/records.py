"""The records of a run: the contract between runners and verifier.

One pyarrow schema a table. Times are seconds from the run's start, float64,
on one monotonic clock; null where the engine does not say.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

RECORDS_VERSION: Final = 1

_SECONDS = pa.float64()
_TOKENS = pa.int64()


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


TURNS: Final = pa.schema(
    [
        _required("session", pa.string()),
        _required("turn", pa.int32()),
        _required("origin", pa.string()),
        _required("planned_s", _SECONDS),
        pa.field("ready_s", _SECONDS),
        pa.field("admitted_s", _SECONDS),
        pa.field("submit_s", _SECONDS),
        pa.field("start_s", _SECONDS),
        pa.field("first_token_s", _SECONDS),
        pa.field("done_s", _SECONDS),
        _required("prompt_tokens", _TOKENS),
        _required("reusable_tokens", _TOKENS),
        pa.field("cached_tokens", _TOKENS),
        _required("output_tokens", _TOKENS),
        _required("retractions", pa.int32()),
        _required("outcome", pa.string()),
        pa.field("detail", pa.string()),
    ]
)
"""One row a turn that became due. `planned_s`: the arrival for turn 1, else
the previous turn's `done_s` plus the planned tool time; `ready_s`: when the
loop woke for it; `admitted_s`: by the gate, else `ready_s`; `submit_s`: first
byte written; `start_s`: first scheduled by the engine. `outcome` is one of
`TURN_OUTCOMES`."""

TURN_OUTCOMES: Final = ("ok", "refused", "error", "open at horizon")

SESSIONS: Final = pa.schema(
    [
        _required("session", pa.string()),
        _required("origin", pa.string()),
        _required("arrival_s", _SECONDS),
        _required("planned_turns", pa.int32()),
        _required("turns_done", pa.int32()),
        pa.field("end_s", _SECONDS),
        _required("outcome", pa.string()),
    ]
)
"""One row a session that arrived; the same outcomes as turns."""

GATE: Final = pa.schema(
    [
        _required("time_s", _SECONDS),
        _required("event", pa.string()),
        pa.field("session", pa.string()),
    ]
)
"""The gate's log; `event` is one of `GATE_EVENTS`."""

GATE_EVENTS: Final = ("engaged", "admitted", "paused", "resumed", "released", "refused")

ENGINE: Final = pa.schema(
    [
        _required("time_s", _SECONDS),
        pa.field("running_requests", pa.int64()),
        pa.field("waiting_requests", pa.int64()),
        pa.field("running_tokens", _TOKENS),
        pa.field("idle_cached_tokens", _TOKENS),
        pa.field("uncached_prefill_tokens_total", _TOKENS),
        pa.field("output_tokens_total", _TOKENS),
    ]
)
"""The engine's own gauges and counters, sampled each second; absent = null."""

SCHEMAS: Final[dict[str, pa.Schema]] = {
    "turns": TURNS,
    "sessions": SESSIONS,
    "gate": GATE,
    "engine": ENGINE,
}


def stamped(name: str) -> pa.Schema:
    """The schema of table `name`, with its name and version as metadata."""
    version = f"{name}-{RECORDS_VERSION}"
    return SCHEMAS[name].with_metadata({"trap_table": version})
