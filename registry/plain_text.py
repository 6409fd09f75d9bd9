"""Hostile text shown as plain text: no escapes, no markup, no direction marks."""

from __future__ import annotations

import json
import re
import unicodedata

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+!|<>~&$-])")
_LINE_START = re.compile(r"^( ?[0-9]*)([.=])")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_BEYOND_ASCII = re.compile(r"[^\n -~]")
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def plain(text: object, limit: int = 2000) -> str:
    """One line of printable characters; others show as their code point, `U+202E` say."""
    flat = re.sub(r"[ \t\r\n]+", " ", str(text))[:limit]
    return "".join(c if unicodedata.category(c) not in _HIDDEN else f"U+{ord(c):04X}" for c in flat)


def markdown(text: object) -> str:
    """`plain`, with everything that Markdown or HTML could read escaped."""
    flat = _LINE_START.sub(r"\1\0\2", plain(text))
    return _MARKDOWN.sub(lambda match: _ENTITIES.get(match[1], f"\\{match[1]}"), flat).replace("\0", "\\")


def escaped_json(text: str) -> str:
    """JSON of the same value in which hidden characters stand as JSON's escapes."""
    return _BEYOND_ASCII.sub(lambda c: json.dumps(c[0])[1:-1] if unicodedata.category(c[0]) in _HIDDEN else c[0], text)


def without_credentials(text: str) -> str:
    """Text with `user:secret@` cut out of every URL in it."""
    return re.sub(r"(://)[^/\s]*@", r"\1", text)


def code(text: object) -> str:
    """`plain` as a Markdown code span, safe in a table cell."""
    flat = plain(text).replace("`", "'").replace("\\|", "U+005C|").replace("|", "\\|")
    return f"`{flat or ' '}`"
