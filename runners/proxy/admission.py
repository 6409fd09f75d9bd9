"""Who goes now, who waits, who is told to come again: the gate for requests.

No I/O, and no clock but the one it is given, which is read anew for every step:
the gate's time never goes back. The order and the cap are
`runners.gate`'s; here are the clients: those that wait, that went away, that
ask again. Nothing is refused but by the bounded queue, and at the end.

A session that is known is in exactly one state:
- passing: the engine has a request of it (`in_flight`);
- waiting: it has a place in the gate's queue, and a ticket, its client's;
- absent: it has a place, or got its slot, but its client is gone; after
  `keep_place_s` the place is lost;
- idle: answered, until `idle_end_s` after the last reply;
- rested: it lost its slot by that; remembered for `REMEMBER_S`, so that it
  queues as paused if it comes back.
A turn in flight when the gate engages is not recalled: its session may be
passing and waiting at once.
"""

from __future__ import annotations

from collections.abc import Callable

from runners.gate import SessionGate
from runners.proxy.places import Counts, Deadlines, Observer, Place, Places, Ticket
from runners.proxy.refusals import ENDED, OVERFLOW, REPLACED, STOPPING, TOO_LONG, Refusal
from runners.proxy.sessions import Session, SessionBook
from runners.proxy.settings import MOST_HELD_BYTES, MOST_SESSIONS, REMEMBER_S, ProxySettings


class Admission:
    """The gate, and the requests before it."""

    def __init__(self, settings: ProxySettings, book: SessionBook, clock: Callable[[], float], to: Observer) -> None:
        self.book = book
        self.gate = SessionGate(settings.gate())
        self._settings = settings
        self._clock = clock
        self._to = to
        self._all = Places()
        self._places = self._all.by_key
        self._idle, self._absent, self._rested = Deadlines(), Deadlines(), Deadlines()
        self._stopping = False

    def ask(
        self, session: Session, tell: Callable[[Refusal | None], None], body_bytes: int = 0, ends: bool = False
    ) -> Ticket:
        """A request of this session is here; `tell` may be called at once.

        It takes over the place of an older one that waits. `ends`: the session
        is over once it is answered.
        """
        ticket = Ticket(session, tell, self._clock(), body_bytes)
        session.ending = ends
        self._awake(session)
        place = self._places.get(session.key)
        if self._stopping:
            self._refuse(ticket, STOPPING)
        elif self._overflows(ticket, place):
            self._refuse(ticket, OVERFLOW)
        elif place:
            self._replace(place, ticket)
        elif self.gate.request(session.key, self._clock()):
            self._go(ticket)
        else:
            self._all.give(Place(session, ticket.asked_s), ticket)
        self._tell_events()
        return ticket

    def client_left(self, ticket: Ticket) -> None:
        """Its client is gone. A place is kept, if anybody could be known to claim it."""
        session = ticket.session
        place = self._places.get(session.key)
        if place and place.ticket is ticket:
            self._all.take(place)
            self._absent.set(session.key, self._clock() + self._settings.keep_place_s)
            if not session.resumable:
                self._forget(session)

    def done(self, session: Session) -> None:
        """A request that went is over, answered or not."""
        session.in_flight -= 1
        self._stand(session)

    def end(self, session: Session) -> bool:
        """The session is over now: True. Or, False, once its replies are done."""
        session.ending = True
        if session.in_flight:
            return False
        self._forget(session)
        return True

    def engage(self) -> None:
        """The engine is trapped: engage, unless it is."""
        self.gate.engage(self._clock())
        self._tell_events()

    def sweep(self) -> None:
        """What is due by now: releases, ends, lost places, waits too long."""
        now_s = self._clock()
        self.gate.settle(now_s)
        for key in self._idle.due(now_s):
            self._rest(self.book.sessions[key])
        for key in self._absent.due(now_s):
            self._lose_place(key)
        for place in self._all.asked_by(now_s - self._settings.max_wait_s):
            self._give_up(place, TOO_LONG)
        for key in self._rested.due(now_s):
            self._forget(self.book.sessions[key])
        too_many = max(0, len(self.book.sessions) - MOST_SESSIONS)
        for key in [*self._rested.by_key][:too_many]:
            self._forget(self.book.sessions[key])
        self._tell_events()

    def stop(self) -> None:
        """Refuse who waits and who comes; requests that went go on."""
        self._stopping = True
        while self._places:
            self._give_up(next(iter(self._places.values())), STOPPING)

    def counts(self) -> Counts:
        """What is the case now."""
        self.gate.settle(self._clock())
        self._tell_events()
        paused = sum(place.paused for place in self._places.values())
        new, known = len(self._places) - paused, self.book.sessions
        flying = sum(session.in_flight for session in known.values())
        return Counts(self.gate.engaged, self.gate.holding, new, paused, flying, len(known))

    def state(self, session: Session) -> str:
        """In a word: passing, waiting, paused, absent, idle or rested."""
        if session.key in self._absent.by_key:
            return "absent"
        place = self._places.get(session.key)
        if place:
            return "paused" if place.paused else "waiting"
        if session.in_flight:
            return "passing"
        return "rested" if session.rested else "idle"

    def _awake(self, session: Session) -> None:
        """The session asks: it is neither idle nor absent nor rested any more."""
        self._drop_deadlines(session.key)
        if session.rested:
            session.rested = False
            self.gate.settle(self._clock())
            if self.gate.engaged:
                self._to.returned()

    def _overflows(self, ticket: Ticket, place: Place | None) -> bool:
        """Whether the queue has no room for a request that would wait in it."""
        many = place is None and len(self._places) >= self._settings.max_waiting
        heavy = self._all.held_bytes + ticket.body_bytes > MOST_HELD_BYTES
        if not (many or heavy):
            return False
        self.gate.settle(self._clock())
        return self.gate.engaged and not self.gate.holds(ticket.session.key)

    def _go(self, ticket: Ticket) -> None:
        ticket.goes = True
        ticket.session.admitted = True
        ticket.session.in_flight += 1
        ticket.tell(None)

    def _hand_out(self, going: list[str]) -> None:
        """These sessions have a slot now; one without its client keeps it a while."""
        for key in going:
            place = self._places.pop(key)
            place.session.admitted = True
            self._to.waited(self._clock() - place.since_s)
            if ticket := self._all.take(place):
                self._go(ticket)

    def _replace(self, place: Place, ticket: Ticket) -> None:
        older = self._all.take(place)
        self._all.give(place, ticket)
        if older:
            self._refuse(older, REPLACED)

    def _refuse(self, ticket: Ticket, refusal: Refusal) -> None:
        ticket.tell(refusal)
        self._to.refused(refusal, ticket.session, self._clock())
        self._stand(ticket.session)

    def _stand(self, session: Session) -> None:
        """Where a session stands after a request of it is over."""
        place = self._places.get(session.key)
        if place and not place.ticket:
            self._absent.set(session.key, self._clock() + self._settings.keep_place_s)
        elif place or session.in_flight:
            pass
        elif session.ending or not session.resumable or not session.admitted:
            self._forget(session)
        else:
            self._idle.set(session.key, self._clock() + self._settings.idle_end_s)

    def _rest(self, session: Session) -> None:
        """It fell silent: its slot goes to others, and it is remembered."""
        self._idle.drop(session.key)
        session.rested = True
        self._rested.set(session.key, self._clock() + REMEMBER_S)
        self._hand_out(self.gate.leave(session.key, self._clock()))

    def _lose_place(self, key: str) -> None:
        """The client did not come back: to its place, or to its slot."""
        session = self.book.sessions[key]
        self._absent.drop(key)
        self._places.pop(key, None)
        if session.in_flight:
            self._hand_out(self.gate.leave(key, self._clock()))
        elif session.admitted and session.resumable:
            self._rest(session)
        else:
            self._forget(session)

    def _give_up(self, place: Place, refusal: Refusal) -> None:
        """A place is lost, and whoever waits there is refused."""
        key, ticket = place.session.key, self._all.take(place)
        del self._places[key]
        self._absent.drop(key)
        self._hand_out(self.gate.leave(key, self._clock()))
        if ticket:
            self._refuse(ticket, refusal)
        else:
            self._stand(place.session)

    def _forget(self, session: Session) -> None:
        """The session is over, wherever it stood."""
        key = session.key
        self._drop_deadlines(key)
        place = self._places.pop(key, None)
        self.book.forget(session)
        self._hand_out(self.gate.end(key, self._clock()))
        self.gate.forget(key)
        if place and (ticket := self._all.take(place)):
            ticket.tell(ENDED)
            self._to.refused(ENDED, session, self._clock())
        self._tell_events()

    def _drop_deadlines(self, key: str) -> None:
        for states in (self._idle, self._absent, self._rested):
            states.drop(key)

    def _tell_events(self) -> None:
        for event in self.gate.log:
            if event.event == "paused" and (place := self._places.get(event.session or "")):
                place.paused = True
            self._to.event(event)
        self.gate.log.clear()
