"""Times as they stand in records: RFC 3339, UTC, up to microseconds.

A naive or local time is refused: `Z` is part of the form.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

_FORM = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z", re.ASCII)


def timestamp(moment: datetime) -> str:
    """`2026-01-31T12:00:00.000000Z` for an aware datetime."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def timestamp_of(unix_s: float) -> str:
    """The same form for Unix seconds."""
    return timestamp(datetime.fromtimestamp(unix_s, UTC))


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
