"""Times as they stand in records: RFC 3339, UTC, up to microseconds.

A naive or local time is refused: `Z` is part of the form.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

_FORM = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z", re.ASCII)
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,6})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def timestamp(moment: datetime) -> str:
    """`2026-01-31T12:00:00.000000Z` for an aware datetime."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def now() -> str:
    """The time by this machine's clock: its owner's word."""
    return timestamp(datetime.now(UTC))


def parse_timestamp(text: object) -> datetime | None:
    """The moment, or None for anything of another form or no real date."""
    if not isinstance(text, str) or not _FORM.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def moment(text: str) -> datetime:
    """The moment of a text that was checked where it was read."""
    parsed = parse_timestamp(text)
    assert parsed is not None
    return parsed


def from_rfc3339(text: object) -> str | None:
    """A time of RFC 3339 with any offset, in the form of records, in UTC.

    None for anything else, a local time without offset above all. A time that
    already has the form stays as it is.
    """
    if not isinstance(text, str) or parse_timestamp(text):
        return text if isinstance(text, str) else None
    if not _RFC3339.fullmatch(text):
        return None
    try:
        shown = timestamp(datetime.fromisoformat(text.upper()))
    except (ValueError, OverflowError):
        return None
    return shown if parse_timestamp(shown) else None
