"""The session cap: order, limits, release, and that nobody is lost."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts.records import GATE_EVENTS
from registry.design import GateSetting
from runners.gate import GateEvent, SessionGate

# One operation: seconds since the last one, whether a session ends, which session.
ENDS = st.sampled_from([False, False, False, True])
OPERATION = st.tuples(st.integers(0, 3), ENDS, st.integers(0, 9))
OPERATIONS = st.lists(OPERATION, min_size=20, max_size=80)
SETTING = st.builds(
    GateSetting,
    cap=st.integers(1, 4),
    engage_s=st.sampled_from([0.0, 5.0, 20.0]),
    release_after_s=st.sampled_from([None, 0.0, 4.0, 15.0]),
)


class Driver:
    """Drives a gate and keeps, by plain lists, what it should do."""

    def __init__(self, setting: GateSetting) -> None:
        self.gate = SessionGate(setting)
        self.setting = setting
        self.now_s = 0.0
        self.started: set[str] = set()
        self.paused: list[str] = []
        self.new: list[str] = []
        self.over: set[str] = set()
        self.empty_since_s = setting.engage_s
        self.release_s: float | None = None

    @property
    def queued(self) -> list[str]:
        return self.paused + self.new

    def wait(self, gap_s: float) -> None:
        """Let time pass; the gate comes off if the queues were empty long enough."""
        self.now_s += gap_s
        after_s = self.setting.release_after_s
        if self.release_s is None and after_s is not None and not self.queued:
            due_s = self.empty_since_s + after_s
            if self.now_s >= max(due_s, self.setting.engage_s):
                self.release_s = due_s

    def request(self, session: str) -> None:
        may_go = self.gate.request(session, self.now_s)
        if self.now_s < self.setting.engage_s or self.release_s is not None:
            assert may_go
        if may_go:
            self.started.add(session)
        else:
            (self.paused if session in self.started else self.new).append(session)

    def end(self, session: str) -> None:
        had_queue = bool(self.queued)
        self.over.add(session)
        for queue in (self.paused, self.new):
            if session in queue:
                queue.remove(session)
        going = self.gate.end(session, self.now_s)
        assert going == self.queued[: len(going)]
        paused_going = going[: len(self.paused)]
        del self.paused[: len(paused_going)]
        del self.new[: len(going) - len(paused_going)]
        self.started.update(going)
        if had_queue and not self.queued:
            self.empty_since_s = self.now_s

    def check(self) -> None:
        gate = self.gate
        assert 0 <= gate.holding <= self.setting.cap
        assert list(gate.waiting) == self.queued
        assert not self.queued or gate.holding == self.setting.cap
        times = [event.time_s for event in gate.log]
        assert times == sorted(times)
        released = [event.time_s for event in gate.log if event.event == "released"]
        assert released == ([] if self.release_s is None else [self.release_s])
        assert not (released and self.queued)


def play(setting: GateSetting, operations: list[tuple[int, bool, int]]) -> Driver:
    """Run the operations; a session that is queued or over does not ask."""
    driver = Driver(setting)
    for gap, ends, number in operations:
        session = f"base-{number}"
        if session in driver.over:
            continue
        driver.wait(gap)
        if ends:
            driver.end(session)
        elif session in driver.queued:
            driver.gate.settle(driver.now_s)
        else:
            driver.request(session)
        driver.check()
    return driver


@settings(deadline=None)
@given(SETTING, OPERATIONS)
def test_cap_order_and_release_are_right_under_any_use(
    setting: GateSetting, operations: list[tuple[int, bool, int]]
) -> None:
    driver = play(setting, operations)
    granted = [e.session for e in driver.gate.log if e.event in ("admitted", "resumed")]
    assert len(granted) == len(set(granted))
    assert {event.event for event in driver.gate.log} <= set(GATE_EVENTS) - {"refused"}


@settings(deadline=None)
@given(SETTING, OPERATIONS)
def test_nobody_is_lost(setting: GateSetting, operations: list[tuple[int, bool, int]]) -> None:
    driver = play(setting, operations)
    waited = set(driver.queued)
    for session in sorted(driver.started - driver.over - waited):
        driver.end(session)
    while driver.queued:
        assert driver.gate.holding > 0
        holders = (driver.started - driver.over) - set(driver.queued)
        driver.end(min(holders))
    assert waited <= driver.started


def test_paused_sessions_go_before_new_ones() -> None:
    gate = SessionGate(GateSetting(1, 10.0, None))
    assert gate.request("base-0", 1.0)
    assert gate.request("base-1", 2.0)
    assert gate.request("base-0", 11.0)
    assert not gate.request("base-2", 12.0)
    assert not gate.request("base-1", 13.0)
    assert gate.waiting == ("base-1", "base-2")
    assert gate.end("base-0", 20.0) == ["base-1"]
    assert gate.end("base-1", 21.0) == ["base-2"]
    assert gate.log == [
        GateEvent(10.0, "engaged", None),
        GateEvent(11.0, "admitted", "base-0"),
        GateEvent(13.0, "paused", "base-1"),
        GateEvent(20.0, "resumed", "base-1"),
        GateEvent(21.0, "admitted", "base-2"),
    ]


def test_paused_sessions_go_in_the_order_in_which_they_paused() -> None:
    gate = SessionGate(GateSetting(1, 10.0, None))
    for number in range(4):
        gate.request(f"base-{number}", 1.0)
    gate.request("base-0", 11.0)
    for number in (2, 1, 3):
        assert not gate.request(f"base-{number}", 12.0)
    assert gate.end("base-1", 13.0) == []
    assert gate.end("base-0", 14.0) == ["base-2"]
    assert gate.end("base-2", 15.0) == ["base-3"]


def test_turns_in_flight_at_engagement_hold_no_slot() -> None:
    gate = SessionGate(GateSetting(1, 10.0, None))
    assert gate.request("base-0", 9.0)
    assert gate.request("base-1", 10.0)
    assert gate.end("base-0", 11.0) == []
    assert gate.holding == 1


def test_release_counts_from_the_last_empty_moment_and_passes_everything() -> None:
    gate = SessionGate(GateSetting(1, 0.0, 300.0))
    assert gate.request("base-0", 0.0)
    assert not gate.request("base-1", 100.0)
    assert gate.end("base-0", 150.0) == ["base-1"]
    assert not gate.request("base-2", 449.0)
    assert gate.end("base-2", 449.5) == []
    gate.settle(749.0)
    assert gate.log[-1].event != "released"
    assert gate.request("base-3", 800.0)
    assert gate.log[-1] == GateEvent(749.5, "released", None)


def test_misuse_is_refused() -> None:
    gate = SessionGate(GateSetting(1, 0.0, None))
    gate.request("base-0", 1.0)
    gate.request("base-1", 1.0)
    with pytest.raises(ValueError, match="queued already"):
        gate.request("base-1", 2.0)
    with pytest.raises(ValueError, match="went back"):
        gate.settle(1.0)
    with pytest.raises(ValueError, match="cap"):
        SessionGate(GateSetting(0, 0.0, None))


def test_a_session_that_left_its_slot_queues_as_paused_when_it_comes_back() -> None:
    gate = SessionGate(GateSetting(1, 0.0, None))
    gate.request("base-0", 1.0)
    assert not gate.request("base-1", 2.0)
    assert not gate.request("base-2", 2.0)
    assert gate.leave("base-0", 3.0) == ["base-1"]
    assert not gate.request("base-0", 4.0)
    assert gate.waiting == ("base-0", "base-2")
    assert gate.end("base-1", 5.0) == ["base-0"]
    assert [event.event for event in gate.log if event.session == "base-0"] == ["admitted", "paused", "resumed"]


def test_a_session_that_left_its_place_goes_to_the_end_of_its_queue() -> None:
    gate = SessionGate(GateSetting(1, 0.0, None))
    gate.request("base-0", 1.0)
    for number in (1, 2):
        assert not gate.request(f"base-{number}", 2.0)
    assert gate.leave("base-1", 3.0) == []
    assert gate.waiting == ("base-2",)
    assert not gate.request("base-1", 4.0)
    assert gate.waiting == ("base-2", "base-1")


def test_it_engages_when_told_and_again_after_a_release() -> None:
    gate = SessionGate(GateSetting(1, math.inf, 10.0))
    assert gate.request("base-0", 1.0)
    assert gate.request("base-1", 1.0)
    assert not gate.engaged
    gate.engage(5.0)
    assert gate.engaged
    gate.engage(6.0)
    assert gate.request("base-0", 7.0)
    assert gate.holds("base-0")
    gate.settle(15.0)
    assert not gate.engaged
    assert gate.request("base-1", 16.0)
    gate.engage(20.0)
    assert gate.holding == 0
    assert gate.request("base-1", 21.0)
    assert not gate.request("base-0", 22.0)
    told = [(event.time_s, event.event) for event in gate.log if event.session is None]
    assert told == [(5.0, "engaged"), (15.0, "released"), (20.0, "engaged")]
    assert gate.log[-1] == GateEvent(22.0, "paused", "base-0")


def test_a_forgotten_session_is_a_new_one_and_its_place_is_used_again() -> None:
    gate = SessionGate(GateSetting(1, 0.0, None))
    gate.request("base-0", 1.0)
    for number in range(1, 500):
        assert not gate.request(f"base-{number}", 1.0)
        assert gate.leave(f"base-{number}", 1.0) == []
        gate.forget(f"base-{number}")
    assert len(gate._sessions) == 64
    with pytest.raises(ValueError, match="holds a slot or waits"):
        gate.forget("base-0")
    gate.end("base-0", 2.0)
    gate.forget("base-0")
    assert gate.request("other", 3.0)
    assert not gate.request("base-0", 4.0)
    assert gate.log[-1] == GateEvent(3.0, "admitted", "other")
