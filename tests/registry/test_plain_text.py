"""Hostile text is shown as plain text."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.plain_text import code, escaped_json, markdown, plain, without_credentials

hostile = st.one_of(
    st.text(max_size=60),
    st.text("\x1b[31m\u202e\u2066\u061c\u200b\x00\x9b\r\n\t\ufeff\ud800\u2028|`\\<>&*_~$!#()[]{}+-=.1 ab", max_size=40),
)


def _unescape(text: str) -> str:
    """What a Markdown reader shows, if nothing in the text is markup."""
    text = re.sub(r"\\([!-/:-@\[-`{-~])", lambda m: f"\0{ord(m[1]):x};", text)
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return re.sub(r"\0([0-9a-f]+);", lambda m: chr(int(m[1], 16)), text)


@given(hostile)
@settings(max_examples=300, deadline=None)
def test_nothing_hidden_is_left(text: str) -> None:
    for shown in (plain(text), markdown(text), code(text)):
        assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
        shown.encode()


@given(hostile)
@settings(max_examples=300, deadline=None)
def test_markdown_shows_the_plain_text_and_has_no_markup(text: str) -> None:
    shown = markdown(text)
    assert _unescape(shown) == plain(text)
    bare = re.sub(r"\\[!-/:-@\[-`{-~]", "", shown)
    assert not set(bare) & set("<>[]()*_`#|~$!{}+-\\")
    assert re.sub("&(lt|gt|amp);", "", bare).find("&") < 0
    assert not re.match(r" ?[0-9]*\.|=", shown)


@given(hostile)
@settings(max_examples=300, deadline=None)
def test_a_code_span_is_one_span_in_one_cell(text: str) -> None:
    shown = code(text)
    assert shown.count("`") == 2 and len(shown) > 2
    assert not re.search(r"(^|[^\\])\|", shown)
    assert not re.search(r"\\\\\|", shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\r\n\t b", "a b"),
        ("\x1b[31mred", "U+001B[31mred"),
        ("\u202egnp.exe", "U+202Egnp.exe"),
        ("x" * 3000, "x" * 2000),
        (3.5, "3.5"),
        ("Grüße 漢字", "Grüße 漢字"),
    ],
)
def test_plain_text(text: object, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>&", "&lt;script&gt;&amp;"),
        ("[x](http://y)", r"\[x\]\(http://y\)"),
        ("a|b", r"a\|b"),
        ("\\<b>", r"\\&lt;b&gt;"),
        ("1. x", r"1\. x"),
        ("===", r"\==="),
        ("v1.2 = x", "v1.2 = x"),
    ],
)
def test_markdown_escapes(text: str, shown: str) -> None:
    assert markdown(text) == shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:secret@host/x.git", "https://host/x.git"),
        ("https://token@host/x", "https://host/x"),
        ("https://user:p@ss@host/x", "https://host/x"),
        ("cannot reach https://a:b@h/x or ssh://c@i/y", "cannot reach https://h/x or ssh://i/y"),
        ("https://host/a@b", "https://host/a@b"),
        ("git@host:x.git", "git@host:x.git"),
        ("/local/path", "/local/path"),
    ],
)
def test_credentials_are_cut_out_of_urls(url: str, shown: str) -> None:
    assert without_credentials(url) == shown


@given(st.recursive(st.text(max_size=20), lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner)))
@settings(max_examples=60, deadline=None)
def test_escaped_json_is_the_same_value_without_hidden_characters(value: object) -> None:
    text = escaped_json(json.dumps(value, indent=1, ensure_ascii=False))
    assert json.loads(text) == value
    assert all(c == "\n" or plain(c) == c for c in text if c != " ")
