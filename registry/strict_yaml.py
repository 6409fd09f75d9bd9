"""YAML without its traps: one reading of every file, or a refusal.

Refused, with line and remedy: anchors, aliases, merge keys, tags, several
documents, duplicate keys, keys that are not plain text, and plain scalars
that YAML 1.1 and 1.2 read differently (`on`, `010`, `12:30:45`, `1_000`,
`2026-01-01`, `.nan`). Numbers are read as YAML 1.2 reads them: `1e3` is
1000.0. Size, depth and node count are capped, since rule files are hostile
input to an auditor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from registry.errors import CapExceeded, DraftError

MAX_BYTES = 262_144
MAX_DEPTH = 24
MAX_NODES = 20_000

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_AMBIGUOUS = [
    (re.compile(r"(?i)y|n|yes|no|on|off"), "YAML 1.1 reads it as true or false"),
    (re.compile(r"(True|TRUE|False|FALSE|~|Null|NULL)"), "write true, false or null"),
    (re.compile(r"[-+]?0[0-9_]+(\.[0-9_]*)?([eE][-+]?[0-9]+)?"), "YAML 1.1 reads a leading 0 as octal"),
    (re.compile(r"[-+]?0[xXbBoO][0-9a-fA-F_]+"), "write the number in decimal"),
    (re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"), "YAML 1.1 reads it in base 60"),
    (re.compile(r"(?=.*_)[-+]?\.?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?"), "YAML 1.1 drops the underscores"),
    (re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*"), "YAML 1.1 reads it as a date"),
    (re.compile(r"(?i)[-+]?\.(inf|nan)"), "only finite numbers are allowed"),
    (re.compile(r"(<<|=)"), "merge keys are not allowed"),
]
_UNSAFE_TEXT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)

Path = tuple[str | int, ...]


@dataclass
class Document:
    """A loaded file: its values, and the line of every field.

    `lines` maps a path such as ("design", "rates", 0) to its 1-based line.
    """

    name: str
    value: Any
    lines: dict[Path, int] = field(default_factory=dict)

    def where(self, path: Path) -> str:
        """`FILE, line N, field a.b[0]`, for messages."""
        known = path
        while known not in self.lines and known:
            known = known[:-1]
        line = self.lines.get(known, 1)
        place = f"{self.name}, line {line}"
        return f"{place}, field {dotted(path)}" if path else place


def dotted(path: Path) -> str:
    """`design.rates[0]` for ("design", "rates", 0)."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def load(text: bytes, name: str) -> Document:
    """Load one YAML document strictly.

    `name` is the file's name for messages. Raises DraftError, or CapExceeded
    for a file over the caps.
    """
    if len(text) > MAX_BYTES:
        raise CapExceeded("the file is too large", where=name, value=len(text), remedy=f"at most {MAX_BYTES} bytes")
    try:
        source = text.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"{name}, line {1 + text[: error.start].count(10)}, byte {error.start}"
        raise DraftError("the file is not UTF-8", where=where, remedy="save it as UTF-8") from None
    builder = _Builder(name)
    try:
        return builder.document(source)
    except yaml.reader.ReaderError as error:
        line = source.count("\n", 0, error.position) + 1
        raise DraftError(
            "control characters are not allowed",
            where=f"{name}, line {line}",
            value=f"U+{ord(source[error.position]):04X}",
            remedy="remove the character",
        ) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else builder.line
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise DraftError(f"not YAML: {problem}", where=f"{name}, line {line}") from None
    except (ValueError, OverflowError):
        raise DraftError("not YAML: a number out of range", where=f"{name}, line {builder.line}") from None


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


class _Builder:
    """Builds values from parse events, where anchors and tags still show."""

    def __init__(self, name: str) -> None:
        self.line = 1
        self._events: Iterator[yaml.Event] = iter(())
        self._document = Document(name, None)
        self._nodes = 0

    def _read(self, source: str) -> Iterator[yaml.Event]:
        for event in yaml.parse(source, Loader=yaml.SafeLoader):
            self.line = _line(event)
            yield event

    def document(self, source: str) -> Document:
        self._events = self._read(source)
        next(self._events)
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise DraftError("the file is empty", where=f"{self._document.name}, line 1")
        self._document.value = self._node(next(self._events), ())
        next(self._events)
        if not isinstance(event := next(self._events), yaml.StreamEndEvent):
            raise self._error("a second document", event, "keep one document a file")
        return self._document

    def _error(self, what: str, event: yaml.Event, remedy: str, value: object = None) -> DraftError:
        line = _line(event)
        where = f"{self._document.name}, line {line}"
        return DraftError(what, where=where, value=value, remedy=remedy)

    def _node(self, event: yaml.Event, path: Path) -> Any:
        self._nodes += 1
        if self._nodes > MAX_NODES or len(path) > MAX_DEPTH:
            raise CapExceeded(
                "too many or too deeply nested values",
                where=f"{self._document.name}, line {_line(event)}",
                remedy=f"at most {MAX_NODES} values, {MAX_DEPTH} levels",
            )
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise self._error("anchors and aliases are not allowed", event, "write the value out")
        if tag := getattr(event, "tag", None):
            raise self._error("tags are not allowed", event, "leave the tag out", tag)
        self._document.lines.setdefault(path, _line(event))
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path)
        assert isinstance(event, yaml.ScalarEvent)
        return self._scalar(event)

    def _mapping(self, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event)
            if key in result:
                raise self._error("the key stands twice", event, "keep one of the two", key)
            self._document.lines[(*path, key)] = _line(event)
            result[key] = self._node(next(self._events), (*path, key))
        return result

    def _key(self, event: yaml.Event) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise self._error("a key must be plain text", event, "write a name before the colon")
        if event.anchor or event.tag:
            raise self._error("anchors and tags are not allowed", event, "leave them out")
        key = self._scalar(event)
        if not isinstance(key, str):
            raise self._error("a key must be text", event, f"quote it: '{event.value}'", event.value)
        return key

    def _sequence(self, path: Path) -> list[Any]:
        result: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            result.append(self._node(event, (*path, len(result))))
        return result

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        text: str = event.value
        if unsafe := _UNSAFE_TEXT.search(text):
            raise self._error(
                "control or direction characters are not allowed",
                event,
                "remove the character",
                f"U+{ord(unsafe.group()):04X}",
            )
        if event.style in ("'", '"', "|", ">"):
            return text
        return self._plain(text, event)

    def _plain(self, text: str, event: yaml.ScalarEvent) -> Any:
        if text in ("true", "false"):
            return text == "true"
        if text in ("null", ""):
            return None
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return self._finite(text, event)
        for pattern, reason in _AMBIGUOUS:
            if pattern.fullmatch(text):
                raise self._error(f"an ambiguous value ({reason})", event, f"for text, quote it: '{text}'", text)
        return text

    def _finite(self, text: str, event: yaml.ScalarEvent) -> float:
        value = float(text)
        if value in (float("inf"), float("-inf")):
            raise self._error("the number is too large", event, "write a finite number", text)
        return value
