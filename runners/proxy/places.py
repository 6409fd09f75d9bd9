"""Requests that ask to go, their places in the queue, and who is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from runners.gate import GateEvent
from runners.proxy.refusals import Refusal
from runners.proxy.sessions import Session


class Observer(Protocol):
    """Who is told what happens."""

    def event(self, event: GateEvent) -> None:
        """The gate's log has a new line."""

    def refused(self, refusal: Refusal, session: Session, time_s: float) -> None:
        """A request was refused."""

    def waited(self, waited_s: float) -> None:
        """A session that had queued may go now."""

    def returned(self) -> None:
        """A session that had rested came back while the gate is engaged."""


@dataclass(eq=False, slots=True)
class Ticket:
    """One request that asks to go. `tell` is called once, with None for go."""

    session: Session
    tell: Callable[[Refusal | None], None]
    asked_s: float
    body_bytes: int = 0
    goes: bool = False


@dataclass(eq=False, slots=True)
class Place:
    """A session's place in the gate's queue, since `since_s`."""

    session: Session
    since_s: float
    ticket: Ticket | None = None
    paused: bool = False


class Places:
    """The places, by their sessions' keys, and what their requests weigh."""

    def __init__(self) -> None:
        self.by_key: dict[str, Place] = {}
        self.held_bytes = 0

    def give(self, place: Place, ticket: Ticket) -> None:
        """The ticket's client waits there."""
        self.by_key[place.session.key] = place
        place.ticket = ticket
        self.held_bytes += ticket.body_bytes

    def take(self, place: Place) -> Ticket | None:
        """Nobody waits there now: who did."""
        ticket, place.ticket = place.ticket, None
        self.held_bytes -= ticket.body_bytes if ticket else 0
        return ticket

    def asked_by(self, time_s: float) -> list[Place]:
        """Places whose clients have waited since then or longer."""
        return [place for place in self.by_key.values() if place.ticket and place.ticket.asked_s <= time_s]


class Deadlines:
    """Until when sessions stay in a state; set in the order of these times."""

    def __init__(self) -> None:
        self.by_key: dict[str, float] = {}

    def set(self, key: str, time_s: float) -> None:
        """The session stays until then."""
        self.by_key.pop(key, None)
        self.by_key[key] = time_s

    def drop(self, key: str) -> None:
        """The session is not in this state."""
        self.by_key.pop(key, None)

    def due(self, now_s: float) -> list[str]:
        """Whose time is over, the first first."""
        due = []
        for key, time_s in self.by_key.items():
            if time_s > now_s:
                break
            due.append(key)
        return due


class Counts(NamedTuple):
    """What is the case now."""

    engaged: bool
    holding: int
    waiting: int
    paused: int
    in_flight: int
    known: int
