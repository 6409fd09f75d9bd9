"""Which session a request belongs to.

Within one Authorization, of which only the SHA-256 is kept: the session that
the request names, else the one that it continues (its prompt begins with that
session's last prompt and reply; the longest, then the latest), else a new one.
A prompt sent again by a client that had gone before its reply came belongs to
the session it began. `user` is never looked at: it names a person, who may
have many sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from runners.proxy.prefixes import Chain, Mark, PrefixIndex
from runners.proxy.prompts import fields_of, prompt_of
from runners.proxy.replies import ReplyReader

_SHOWN = 32


class Asked(NamedTuple):
    """What tells a request's session. `owner`: the SHA-256 of its Authorization;
    `name`: the session's, if given. Only without a name is the prompt looked at:
    its `kind` (see prompts) and itself.
    """

    owner: bytes
    name: str | None = None
    kind: bytes = b""
    prompt: Chain | None = None


@dataclass(eq=False, slots=True)
class Session:
    """One session. `key` is what logs and answers call it: a digest.

    No prompt is kept. `mark`: its last prompt and reply, which can be found while `listed`;
    `unanswered`: the prompt of a client that went before its reply.
    `admitted`: the gate let it go once; `in_flight`: its requests that the engine has now; `ending`: it is over
    once they are done; `rested`: it fell silent and lost its slot.
    """

    key: str
    named: bool = False
    mark: Mark | None = None
    listed: bool = False
    unanswered: Mark | None = None
    admitted: bool = False
    in_flight: int = 0
    ending: bool = False
    rested: bool = False

    @property
    def resumable(self) -> bool:
        """Whether a later request could be told to belong to it."""
        return bool(self.named or self.mark or self.unanswered)


def owner_of(headers: Mapping[str, str]) -> bytes:
    """The SHA-256 of the Authorization, or of nothing."""
    return sha256(headers.get("Authorization", "").encode("utf-8", "surrogateescape")).digest()


def session_key(owner: bytes, name: str) -> str:
    """The first 32 hex digits of SHA-256(owner, name)."""
    return sha256(owner + name.encode("utf-8", "surrogatepass")).hexdigest()[:_SHOWN]


def asked_by(path: str, headers: Mapping[str, str], body: bytes) -> Asked:
    """What a request to a gated path says about its session."""
    owner = owner_of(headers)
    if name := headers.get("X-Session-Id"):
        return Asked(owner, name)
    fields = fields_of(body)
    if fields is None:
        return Asked(owner)
    if name := _named(fields):
        return Asked(owner, name)
    prompt = prompt_of(path, fields)
    return Asked(owner, None, prompt.kind, Chain(owner, prompt.encoded)) if prompt else Asked(owner)


def _named(fields: Mapping[str, Any]) -> str | None:
    metadata = fields.get("metadata")
    inner = metadata.get("session_id") if isinstance(metadata, dict) else None
    for value in (fields.get("prompt_cache_key"), inner):
        if isinstance(value, str) and value:
            return value
    return None


class SessionBook:
    """The sessions that are known, by name and by prefix."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self._continued: PrefixIndex[Session] = PrefixIndex()
        self._again: PrefixIndex[Session] = PrefixIndex()
        self._count = 0

    def session_of(self, asked: Asked) -> Session:
        """The session of a request, which is a new one where none fits.

        Until it is answered, no other request continues it by its prefix.
        """
        name = asked.name
        session = self._continuing(asked) if name is None else self.named(asked.owner, name)
        if session is None:
            return self._new(asked)
        self._hide(session)
        return session

    def named(self, owner: bytes, name: str) -> Session | None:
        """The session of this name, if it is known."""
        return self.sessions.get(session_key(owner, name))

    def replied(self, session: Session, asked: Asked, reader: ReplyReader | None) -> None:
        """The request was answered in full; the next prompt begins so."""
        reply = reader.reply() if reader and asked.prompt else None
        if asked.prompt and reply is not None and self._knows(session):
            self._hide(session)
            session.mark = asked.prompt.mark(reply)
            self._list(session)

    def failed(self, session: Session, asked: Asked) -> None:
        """The engine gave no reply: the session stands where it stood before."""
        if session.mark and not session.listed and self._knows(session):
            self._list(session)

    def client_left(self, session: Session, asked: Asked) -> None:
        """The client went before its reply: the same prompt will be its own."""
        self.failed(session, asked)
        if asked.prompt and session.unanswered is None and self._knows(session):
            session.unanswered = asked.prompt.mark()
            self._again.add(session.unanswered, session)

    def forget(self, session: Session) -> None:
        """The session is over."""
        if self._knows(session):
            self._hide(session)
            del self.sessions[session.key]

    def _continuing(self, asked: Asked) -> Session | None:
        if asked.prompt is None:
            return None
        return self._again.latest(asked.prompt.mark()) or self._continued.longest(asked.prompt)

    def _new(self, asked: Asked) -> Session:
        self._count += 1
        unnamed = sha256(b"unnamed" + asked.owner + str(self._count).encode()).hexdigest()[:_SHOWN]
        key = unnamed if asked.name is None else session_key(asked.owner, asked.name)
        session = Session(key, named=asked.name is not None)
        self.sessions[session.key] = session
        return session

    def _knows(self, session: Session) -> bool:
        return self.sessions.get(session.key) is session

    def _list(self, session: Session) -> None:
        assert session.mark
        self._continued.add(session.mark, session)
        session.listed = True

    def _hide(self, session: Session) -> None:
        """No prefix leads to it until it is answered."""
        if session.listed and session.mark:
            self._continued.remove(session.mark, session)
            session.listed = False
        if session.unanswered:
            self._again.remove(session.unanswered, session)
            session.unanswered = None
