"""Who goes, waits, keeps a place or loses it: the gate for requests, by a told clock."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runners.proxy import admission
from runners.proxy.sessions import Asked, session_key
from tests.runners.proxy_support import Bench


def events(bench: Bench, session: str) -> list[str]:
    key = session_key(b"owner", session)
    return [event.event for event in bench.events if event.session == key]


def test_a_session_keeps_its_slot_between_turns_and_others_wait_in_order() -> None:
    bench = Bench(cap=2)
    a, b = bench.ask("a"), bench.ask("b")
    c, d = bench.ask("c"), bench.ask("d")
    assert bench.went(a)
    assert bench.went(b)
    bench.admission.done(a.session)
    assert bench.waits_for(c)
    assert bench.went(bench.ask("a"))
    bench.admission.end(b.session)
    assert bench.waits_for(c)
    bench.admission.done(b.session)
    assert bench.went(c)
    assert bench.waits_for(d)


def test_a_session_ends_after_its_idle_time_and_the_next_one_goes() -> None:
    bench = Bench(idle_end_s=60)
    a = bench.ask("a")
    bench.at(100)
    assert bench.admission.counts().holding == 1
    bench.admission.done(a.session)
    b = bench.ask("b")
    bench.at(159.9)
    assert bench.waits_for(b)
    bench.at(160)
    assert bench.went(b)
    assert bench.waits == [60.0]


def test_one_that_returns_after_its_idle_end_waits_before_those_never_admitted() -> None:
    bench = Bench(idle_end_s=60)
    a = bench.ask("a")
    bench.admission.done(a.session)
    b, c = bench.ask("b"), bench.ask("c")
    bench.at(60)
    assert bench.went(b)
    again = bench.ask("a")
    assert bench.returns == 1
    assert bench.admission.counts()[2:4] == (1, 1)
    bench.ask("b", ends=True)
    bench.admission.done(b.session)
    bench.admission.done(b.session)
    assert bench.went(again)
    assert bench.waits_for(c)
    assert events(bench, "a") == ["admitted", "paused", "resumed"]


def test_a_return_is_counted_only_while_the_gate_is_engaged() -> None:
    bench = Bench(engage_when_trapped=True, idle_end_s=60)
    a = bench.ask("a")
    bench.admission.done(a.session)
    bench.at(60)
    assert bench.admission.state(a.session) == "rested"
    assert bench.went(bench.ask("a"))
    assert bench.returns == 0


def test_a_rested_session_is_forgotten_in_the_end() -> None:
    bench = Bench(idle_end_s=60)
    bench.admission.done(bench.ask("a").session)
    bench.at(60)
    bench.at(60 + admission.REMEMBER_S - 1)
    assert len(bench.book.sessions) == 1
    bench.at(60 + admission.REMEMBER_S)
    assert bench.book.sessions == {}


def test_of_too_many_sessions_the_first_that_rested_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MOST_SESSIONS", 3)
    bench = Bench(idle_end_s=1)
    tickets = []
    for number in range(5):
        tickets.append(bench.ask(f"s{number}"))
        bench.admission.done(tickets[-1].session)
        bench.at(2.0 * number + 2)
    assert [*bench.book.sessions] == [ticket.session.key for ticket in tickets[2:]]


def test_a_session_ends_once_its_reply_is_done() -> None:
    bench = Bench()
    a = bench.ask("a", ends=True)
    b = bench.ask("b")
    assert bench.waits_for(b)
    bench.admission.done(a.session)
    assert bench.went(b)
    assert a.session.key not in bench.book.sessions
    again, c = bench.ask("a"), bench.ask("c")
    assert bench.admission.counts()[2:4] == (2, 0)
    bench.admission.end(b.session)
    bench.admission.done(b.session)
    assert bench.went(again)
    assert bench.waits_for(c)


def test_an_ended_session_that_waits_is_told_so() -> None:
    bench = Bench()
    bench.ask("a")
    b, c = bench.ask("b"), bench.ask("c")
    assert bench.admission.end(b.session)
    assert bench.code(b) == "gate_session_ended"
    assert bench.waits_for(c)
    assert b.session.key not in bench.book.sessions


def test_a_retry_takes_over_the_place_of_the_older_request() -> None:
    bench = Bench()
    a = bench.ask("a")
    older, c = bench.ask("b"), bench.ask("c")
    newer = bench.ask("b")
    assert bench.code(older) == "gate_replaced"
    bench.admission.client_left(older)
    bench.admission.end(a.session)
    bench.admission.done(a.session)
    assert bench.went(newer)
    assert bench.waits_for(c)


def test_a_client_that_left_keeps_its_place_for_a_while() -> None:
    bench = Bench(keep_place_s=30)
    a = bench.ask("a")
    b, c = bench.ask("b"), bench.ask("c")
    bench.admission.client_left(b)
    bench.at(29)
    assert bench.admission.state(b.session) == "absent"
    again = bench.ask("b")
    bench.at(40)
    bench.admission.end(a.session)
    bench.admission.done(a.session)
    assert bench.went(again)
    assert bench.waits_for(c)
    assert not bench.went(b)


def test_a_client_that_does_not_come_back_loses_its_place() -> None:
    bench = Bench(keep_place_s=30)
    a = bench.ask("a")
    b, c = bench.ask("b"), bench.ask("c")
    bench.admission.client_left(b)
    bench.at(30)
    assert b.session.key not in bench.book.sessions
    again = bench.ask("b")
    bench.admission.end(a.session)
    bench.admission.done(a.session)
    assert bench.went(c)
    assert bench.waits_for(again)


def test_a_slot_that_came_while_the_client_was_gone_is_kept_as_long_as_the_place() -> None:
    bench = Bench(keep_place_s=30, idle_end_s=1000)
    a = bench.ask("a")
    b, c = bench.ask("b"), bench.ask("c")
    bench.admission.client_left(b)
    bench.at(10)
    bench.admission.end(a.session)
    bench.admission.done(a.session)
    assert bench.admission.counts().holding == 1
    assert bench.waits_for(c)
    bench.at(20)
    again = bench.ask("b")
    assert bench.went(again)
    bench.admission.done(again.session)
    bench.at(31)
    assert bench.waits_for(c)
    other = Bench(keep_place_s=30)
    a = other.ask("a")
    b, c = other.ask("b"), other.ask("c")
    other.admission.client_left(b)
    other.admission.end(a.session)
    other.admission.done(a.session)
    other.at(30)
    assert other.went(c)


def test_a_place_that_nobody_could_claim_is_not_kept() -> None:
    bench = Bench()
    bench.ask("a")
    unnamed = bench.book.session_of(Asked(b"owner"))
    ticket = bench.admission.ask(unnamed, lambda _: None)
    bench.admission.client_left(ticket)
    assert len(bench.book.sessions) == 1
    assert bench.admission.counts().waiting == 0


def test_an_unnamed_session_that_was_never_answered_is_over_with_its_request() -> None:
    bench = Bench()
    ticket = bench.admission.ask(bench.book.session_of(Asked(b"owner")), lambda _: None)
    assert ticket.goes
    bench.admission.done(ticket.session)
    assert bench.book.sessions == {}
    assert bench.admission.counts().holding == 0


def test_a_full_queue_refuses_but_never_a_session_that_holds_a_slot() -> None:
    bench = Bench(max_waiting=2)
    bench.ask("a")
    bench.ask("b")
    c = bench.ask("c")
    d = bench.ask("d")
    assert bench.code(d) == "gate_queue_full"
    answer = bench.answers[d]
    assert answer
    assert answer.status == 429
    assert answer.headers == {"Retry-After": "30"}
    assert d.session.key not in bench.book.sessions
    assert bench.went(bench.ask("a"))
    newer = bench.ask("c")
    assert bench.code(c) == "gate_replaced"
    assert bench.waits_for(newer)


def test_bodies_that_wait_are_held_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MOST_HELD_BYTES", 100)
    bench = Bench()
    bench.ask("a", 60)
    b = bench.ask("b", 60)
    assert bench.waits_for(b)
    assert bench.code(bench.ask("c", 60)) == "gate_queue_full"
    assert bench.code(bench.ask("b", 60)) == "gate_queue_full"
    bench.admission.client_left(b)
    assert bench.waits_for(bench.ask("c", 60))


def test_a_refused_retry_leaves_the_place_of_one_that_is_gone_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MOST_HELD_BYTES", 100)
    bench = Bench(keep_place_s=30)
    bench.ask("a")
    b = bench.ask("b")
    bench.admission.client_left(b)
    assert bench.code(bench.ask("b", 200)) == "gate_queue_full"
    bench.at(29)
    assert bench.admission.counts().waiting == 1
    bench.at(30)
    assert bench.admission.counts().waiting == 0


def test_a_request_that_waited_too_long_is_told_to_come_again() -> None:
    bench = Bench(max_wait_s=100)
    bench.ask("a")
    b = bench.ask("b")
    bench.at(50)
    c = bench.ask("c")
    bench.at(100)
    assert bench.code(b) == "gate_wait_too_long"
    assert bench.waits_for(c)
    assert bench.events[-1].event == "admitted"
    assert bench.refusals == [("gate_wait_too_long", b.session.key)]


def test_a_paused_session_that_was_refused_is_paused_when_it_comes_again() -> None:
    bench = Bench(engage_when_trapped=True, max_wait_s=100)
    for name in ("a", "b", "c"):
        bench.admission.done(bench.ask(name).session)
    bench.admission.engage()
    bench.ask("a")
    b = bench.ask("b")
    bench.at(100)
    assert bench.code(b) == "gate_wait_too_long"
    bench.ask("d")
    bench.ask("b")
    assert bench.admission.counts()[2:4] == (1, 1)


def test_at_the_end_who_waits_and_who_comes_is_refused_and_who_runs_goes_on() -> None:
    bench = Bench()
    a = bench.ask("a")
    b, c = bench.ask("b"), bench.ask("c")
    bench.admission.client_left(c)
    bench.admission.stop()
    for ticket in (b, bench.ask("a"), bench.ask("new")):
        answer = bench.answers[ticket]
        assert answer
        assert (answer.status, answer.headers) == (503, {"Retry-After": "30"})
    assert bench.admission.counts().waiting == 0
    bench.admission.done(a.session)
    assert a.session.in_flight == 0


def test_what_is_due_at_once_is_done_while_the_clock_goes_on() -> None:
    bench = Bench(tick_s=1e-6, cap=2, idle_end_s=30, keep_place_s=30, max_wait_s=30)
    holders = [bench.ask("a"), bench.ask("b")]
    waiting = [bench.ask(name) for name in ("c", "d", "e", "f")]
    for ticket in waiting[:2]:
        bench.admission.client_left(ticket)
    bench.at(31)
    assert [bench.code(ticket) for ticket in waiting] == [None, None, *["gate_wait_too_long"] * 2]
    assert len(bench.book.sessions) == 2
    later = [bench.ask(name) for name in ("g", "h")]
    bench.admission.stop()
    assert [bench.code(ticket) for ticket in later] == ["gate_stopping"] * 2
    for ticket in holders:
        bench.admission.done(ticket.session)
    bench.at(62)
    assert bench.admission.counts().holding == 0


def test_it_engages_when_told_releases_when_nobody_waits_and_engages_again() -> None:
    bench = Bench(engage_when_trapped=True, release_after_s=300)
    a, b = bench.ask("a"), bench.ask("b")
    assert bench.went(a)
    assert bench.went(b)
    bench.now_s = 10
    bench.admission.engage()
    bench.admission.done(b.session)
    a = bench.ask("a")
    again = bench.ask("b")
    assert bench.went(a)
    assert bench.waits_for(again)
    bench.at(20)
    bench.admission.end(a.session)
    bench.admission.done(a.session)
    bench.admission.done(a.session)
    assert bench.went(again)
    bench.at(319)
    assert bench.admission.counts().engaged
    bench.at(320)
    assert not bench.admission.counts().engaged
    assert bench.went(bench.ask("c"))
    bench.admission.engage()
    assert [(e.time_s, e.event) for e in bench.events if not e.session] == [
        (10, "engaged"),
        (320, "released"),
        (320, "engaged"),
    ]


SESSIONS = [f"s{number}" for number in range(6)]
STEP = st.tuples(st.sampled_from(["ask", "ask", "ask", "done", "leave", "end", "wait", "engage"]), st.integers(0, 5))


@settings(deadline=None, max_examples=150)
@given(
    st.lists(STEP, max_size=60),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from([None, 40.0]),
    st.sampled_from([0, 1e-6]),
)
def test_under_any_use_the_cap_holds_and_every_session_is_in_one_state(
    steps: list[tuple[str, int]], cap: int, engaged: bool, release_after_s: float | None, tick_s: float
) -> None:
    bench = Bench(
        cap=cap, engage_when_trapped=not engaged, release_after_s=release_after_s, max_waiting=3, max_wait_s=45,
        idle_end_s=20, keep_place_s=10, tick_s=tick_s,
    )  # fmt: skip
    asked = []
    for step, number in steps:
        flying = [ticket for ticket in asked if bench.went(ticket)]
        if step == "ask":
            asked.append(bench.ask(SESSIONS[number], ends=number == 5))
        elif step == "done" and flying:
            asked.remove(flying[number % len(flying)])
            bench.admission.done(flying[number % len(flying)].session)
        elif step == "leave" and (waiting := [ticket for ticket in asked if bench.waits_for(ticket)]):
            asked.remove(waiting[number % len(waiting)])
            bench.admission.client_left(waiting[number % len(waiting)])
        elif step == "end":
            session = bench.book.named(b"owner", SESSIONS[number])
            if session:
                bench.admission.end(session)
        elif step == "wait":
            bench.at(bench.now_s + 5 * number)
        elif step == "engage":
            bench.admission.engage()
        check(bench, asked, cap)
    finish(bench, asked)


def check(bench: Bench, asked: list, cap: int) -> None:  # type: ignore[type-arg]
    it = bench.admission
    assert it.gate.holding <= cap
    assert len(it._places) <= 3
    assert set(it.gate.waiting) == set(it._places)
    live = {ticket for ticket in asked if bench.waits_for(ticket)}
    assert {place.ticket for place in it._places.values() if place.ticket} == live
    assert it._all.held_bytes == 0
    for key, session in bench.book.sessions.items():
        flies = sum(ticket.session is session and bench.went(ticket) for ticket in asked)
        assert session.in_flight == flies
        states = [key in it._idle.by_key, key in it._absent.by_key, key in it._rested.by_key]
        waiting = key in it._places and bool(it._places[key].ticket)
        assert sum(states) + waiting + bool(flies and not any(states) and not waiting) == 1
        if it.gate.engaged and not flies and key in it._idle.by_key:
            assert it.gate.holds(key) or events_since_engaged(bench, key)
    assert set(it._idle.by_key) | set(it._absent.by_key) | set(it._rested.by_key) <= set(bench.book.sessions)


def events_since_engaged(bench: Bench, key: str) -> bool:
    """Whether it may be idle without a slot: it had none since the gate engaged."""
    told = [event.event for event in bench.events if event.session == key or event.event == "engaged"]
    return "admitted" not in told[len(told) - told[::-1].index("engaged") :]


def finish(bench: Bench, asked: list) -> None:  # type: ignore[type-arg]
    """Whatever happened, everybody who still waits goes or is told."""
    for _ in range(50):
        for ticket in [ticket for ticket in asked if bench.went(ticket)]:
            asked.remove(ticket)
            bench.admission.done(ticket.session)
        bench.at(bench.now_s + 20)
    assert not [ticket for ticket in asked if bench.waits_for(ticket)]
    bench.at(bench.now_s + 2 * admission.REMEMBER_S)
    assert bench.book.sessions == {}
    assert bench.admission.gate.holding == 0
    assert math.isfinite(sum(bench.waits))
