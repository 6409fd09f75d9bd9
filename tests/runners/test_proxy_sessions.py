"""Which session a request belongs to: every rule, ties, and who shares none."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.proxy.prefixes import BLOCK_BYTES, Chain, PrefixIndex
from runners.proxy.replies import ReplyReader
from runners.proxy.sessions import Asked, Session, SessionBook, asked_by, owner_of

CHAT = "/v1/chat/completions"
ANNE, BEN = {"Authorization": "Bearer anne"}, {"Authorization": "Bearer ben"}


class Talk:
    """Asks a book as clients would, and answers at once unless told not to."""

    def __init__(self) -> None:
        self.book = SessionBook()

    def ask(self, fields: dict[str, Any], headers: dict[str, str] = ANNE) -> tuple[Session, Asked]:
        asked = asked_by(CHAT, headers, json.dumps(fields).encode())
        session = self.book.session_of(asked)
        session.admitted = True
        return session, asked

    def answer(self, session: Session, asked: Asked, text: str) -> None:
        assert asked.prompt
        reader = ReplyReader(asked.kind, CHAT, {})
        reader.feed(json.dumps({"choices": [{"message": {"content": text}}]}).encode())
        self.book.replied(session, asked, reader)

    def turn(self, texts: list[str], reply: str = "ok", headers: dict[str, str] = ANNE) -> Session:
        session, asked = self.ask({"messages": said(*texts)}, headers)
        self.answer(session, asked, reply)
        return session


def said(*texts: str) -> list[dict[str, str]]:
    """A conversation: user and assistant in turns."""
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]


RULES = [
    ({"X-Session-Id": "s"}, {"prompt_cache_key": "k", "metadata": {"session_id": "m"}}, "s"),
    ({}, {"prompt_cache_key": "k", "metadata": {"session_id": "m"}}, "k"),
    ({}, {"metadata": {"session_id": "m"}}, "m"),
    ({}, {"prompt_cache_key": 5, "metadata": {"session_id": "m"}}, "m"),
    ({}, {"prompt_cache_key": "", "metadata": {"session_id": ""}}, None),
    ({}, {"metadata": [1]}, None),
    ({"X-Session-Id": ""}, {"user": "u"}, None),
    ({}, {"user": "u", "safety_identifier": "u"}, None),
]


@pytest.mark.parametrize(("headers", "fields", "name"), RULES)
def test_a_session_is_named_by_header_then_key_then_metadata_never_user(
    headers: dict[str, str], fields: dict[str, Any], name: str | None
) -> None:
    asked = asked_by(CHAT, {**ANNE, **headers}, json.dumps({"messages": said("a"), **fields}).encode())
    assert asked.name == name
    assert (asked.prompt is None) == (name is not None)


def test_one_name_is_one_session_however_it_is_given() -> None:
    talk = Talk()
    first, _ = talk.ask({"prompt_cache_key": "s"})
    assert talk.ask({}, {**ANNE, "X-Session-Id": "s"})[0] is first
    assert talk.ask({"metadata": {"session_id": "s"}})[0] is first
    assert talk.ask({"metadata": {"session_id": "t"}})[0] is not first


def test_two_authorizations_never_share_a_session() -> None:
    talk = Talk()
    assert talk.ask({"prompt_cache_key": "s"})[0] is not talk.ask({"prompt_cache_key": "s"}, BEN)[0]
    assert talk.ask({"prompt_cache_key": "s"})[0] is not talk.ask({"prompt_cache_key": "s"}, {})[0]
    first = talk.turn(["a"])
    assert talk.turn(["a", "ok", "b"], headers=BEN) is not first
    assert talk.turn(["a", "ok", "b"]) is first


def test_neither_authorization_nor_prompts_are_kept() -> None:
    talk = Talk()
    talk.turn(["prompt" * 100_000])
    session, asked = talk.ask({"messages": said("other" * 100_000)})
    talk.book.client_left(session, asked)
    kept = pickle.dumps(talk.book)
    assert len(kept) < 3000
    assert b"anne" not in kept
    assert len(owner_of(ANNE)) == 32


def test_a_prompt_that_begins_with_last_prompt_and_reply_continues_the_session() -> None:
    talk = Talk()
    first = talk.turn(["a"], "b")
    assert talk.turn(["a", "b", "c"], "d") is first
    assert talk.turn(["a", "b", "c", "d", "e"]) is first
    assert talk.turn(["a", "x", "c"]) is not first
    assert talk.turn(["a"]) is not first


def test_the_longest_prefix_wins_then_the_latest() -> None:
    talk = Talk()
    first = talk.turn(["a"], "b")
    latest = talk.turn(["a"], "b")
    assert latest is not first
    assert talk.turn(["a", "b", "c"], "d") is latest
    assert talk.turn(["a", "b", "c", "d", "e"], "f") is latest
    assert talk.turn(["a", "b", "z"], "f") is first


def test_while_a_session_is_asking_another_request_does_not_continue_it() -> None:
    talk = Talk()
    first = talk.turn(["a"], "b")
    asking, _ = talk.ask({"messages": said("a", "b", "c")})
    assert asking is first
    other, _ = talk.ask({"messages": said("a", "b", "d")})
    assert other is not first


def test_after_a_failure_it_stands_where_it_stood() -> None:
    talk = Talk()
    first = talk.turn(["a"], "b")
    session, asked = talk.ask({"messages": said("a", "b", "c")})
    talk.book.failed(session, asked)
    assert talk.turn(["a", "b", "c"]) is first


def test_a_prompt_sent_again_belongs_to_its_session_only_if_the_client_had_left() -> None:
    talk = Talk()
    first, asked = talk.ask({"messages": said("a")})
    assert talk.ask({"messages": said("a")})[0] is not first
    talk.book.client_left(first, asked)
    assert talk.ask({"messages": said("a")}, BEN)[0] is not first
    assert talk.ask({"messages": said("a")})[0] is first
    assert talk.ask({"messages": said("a")})[0] is not first


def test_a_forgotten_session_is_met_no_more() -> None:
    talk = Talk()
    first = talk.turn(["a"], "b")
    named, _ = talk.ask({"prompt_cache_key": "s"})
    for session in (first, named):
        talk.book.forget(session)
        talk.book.forget(session)
    assert talk.book.sessions == {}
    assert talk.turn(["a", "b", "c"]) is not first
    assert talk.ask({"prompt_cache_key": "s"})[0] is not named


def test_an_answer_to_a_forgotten_session_brings_nothing_back() -> None:
    talk = Talk()
    session, asked = talk.ask({"messages": said("a")})
    talk.book.forget(session)
    talk.answer(session, asked, "b")
    talk.book.client_left(session, asked)
    assert talk.turn(["a", "b", "c"]) is not session
    assert talk.turn(["a"]) is not session


PIECE = st.sampled_from([b"", b"a", b"b", b"a" * BLOCK_BYTES, b"a" * (BLOCK_BYTES - 1), b"b" * (2 * BLOCK_BYTES)])
TEXTS = st.lists(PIECE, max_size=4).map(b"".join)
OWNERS = st.sampled_from([b"anne", b"ben"])


@given(st.lists(st.tuples(OWNERS, TEXTS, st.booleans()), max_size=12), OWNERS, TEXTS, st.integers(0, 2000))
def test_the_index_finds_what_comparing_all_texts_finds(
    kept: list[tuple[bytes, bytes, bool]], owner: bytes, text: bytes, cut: int
) -> None:
    index: PrefixIndex[int] = PrefixIndex()
    for number, (whose, known, _) in enumerate(kept):
        index.add(Chain(whose, known[:cut]).mark(known[cut:]), number)
    for number, (whose, known, removed) in enumerate(kept):
        if removed:
            index.remove(Chain(whose, known).mark(), number)
    found = [
        (len(known), number)
        for number, (whose, known, removed) in enumerate(kept)
        if whose == owner and not removed and text.startswith(known)
    ]
    assert index.longest(Chain(owner, text)) == (max(found)[1] if found else None)


def test_the_index_keeps_nothing_of_what_was_removed() -> None:
    index: PrefixIndex[int] = PrefixIndex()
    mark = Chain(b"anne", b"a" * 2000).mark()
    index.add(mark, 1)
    index.remove(mark, 1)
    assert not index._items
    assert not index._lengths
    with pytest.raises(ValueError, match="list"):
        index.remove(mark, 1)
