"""What the gate tells about itself: Prometheus metrics, and a log of events.

The registry is private: nothing of the Python process is in it. Sessions
appear in the log as digests, in the metrics not at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from runners.gate import GateEvent
from runners.proxy.places import Counts
from runners.proxy.refusals import Refusal
from runners.proxy.sessions import Session

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
CLIENT_GONE = 499
"""Counted where a client left before it was answered; no answer bears it."""

_PREFIX = "trapkit_gate_"
_WAIT_BOUNDS_S = (0.1, 1, 5, 15, 30, 60, 120, 300, 600, 1200, 2400, 3600)
_COUNTED = {
    "engaged": "Times that the gate engaged.",
    "released": "Times that the gate was released.",
    "admitted": "Slots given to sessions that had not been paused.",
    "paused": "Sessions already started that joined the queue.",
    "resumed": "Slots given to paused sessions.",
}
_STATES = ("good", "trapped", "unknown")


class Telemetry:
    """Metrics of one gate; `write` receives its events, a JSON line each."""

    def __init__(self, cap: int, write: Callable[[str], object] | None = None) -> None:
        self._write = write
        self._registry = CollectorRegistry(auto_describe=True)
        self._gauge("cap_sessions", "Sessions that may hold a slot.").set(cap)
        self._now = {
            "engaged": self._gauge("engaged_now", "1 while sessions need a slot."),
            "holding": self._gauge("holding_sessions", "Sessions that hold a slot."),
            "waiting": self._gauge("waiting_sessions", "Sessions that wait and have never been admitted."),
            "paused": self._gauge("paused_sessions", "Sessions that wait and had started before."),
            "known": self._gauge("known_sessions", "Sessions that are remembered."),
            "in_flight": self._gauge("in_flight_requests", "Requests that the engine has."),
        }
        self._events = {name: self._counter(f"{name}_total", text) for name, text in _COUNTED.items()}
        self._relapses = self._counter("relapses_total", "Times that the gate engaged again after a release.")
        self._returned = self._counter("returned_total", "Sessions that came back after their idle end, engaged.")
        self._refused = self._counter("refused_total", "Requests that the gate refused.", "reason")
        self._requests = self._counter("requests_total", "Gated requests by the answer's code.", "code")
        self._errors = self._counter("upstream_errors_total", "Failures of the engine.", "reason")
        self._polls = self._counter("poll_failures_total", "Times that the engine's metrics could not be read.")
        self._states = Gauge(
            f"{_PREFIX}engine_state", "1 at what the engine's metrics say.", ["state"], registry=self._registry
        )
        self._waits = Histogram(
            f"{_PREFIX}wait_seconds",
            "Waits of sessions that queued and then went.",
            buckets=_WAIT_BOUNDS_S,
            registry=self._registry,
        )
        self._engaged_before = False

    def event(self, event: GateEvent) -> None:
        """One line of the gate's log."""
        self._events[event.event].inc()
        if event.event == "engaged":
            self._relapses.inc(int(self._engaged_before))
            self._engaged_before = True
        self._line(event.time_s, event.event, event.session)

    def refused(self, refusal: Refusal, session: Session, time_s: float) -> None:
        """The gate refused a request."""
        self._refused.labels(refusal.code).inc()
        self._line(time_s, "refused", session.key)

    def waited(self, waited_s: float) -> None:
        """A session that had queued may go now."""
        self._waits.observe(waited_s)

    def returned(self) -> None:
        """A session that had rested came back while the gate is engaged."""
        self._returned.inc()

    def answered(self, code: int) -> None:
        """A gated request is over."""
        self._requests.labels(str(code)).inc()

    def engine_failed(self, reason: str) -> None:
        """The engine could not be reached, or broke off; `reason` is one of few."""
        self._errors.labels(reason).inc()

    def poll_failed(self) -> None:
        """The engine's metrics could not be read."""
        self._polls.inc()
        self.engine_state("unknown")

    def engine_state(self, name: str) -> None:
        """What the engine's metrics say: good, trapped or unknown."""
        for state in _STATES:
            self._states.labels(state).set(int(state == name))

    def page(self, counts: Counts) -> bytes:
        """All metrics as Prometheus reads them."""
        for name, gauge in self._now.items():
            gauge.set(getattr(counts, name))
        return generate_latest(self._registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(_PREFIX + name, text, registry=self._registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(_PREFIX + name, text, labels, registry=self._registry)

    def _line(self, time_s: float, event: str, session: str | None) -> None:
        if self._write:
            self._write(json.dumps({"time_s": round(time_s, 6), "event": event, "session": session}) + "\n")
