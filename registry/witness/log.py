"""Reading a push log: JSON lines, each holding the digest of the line before.

A row that was removed, edited, moved or written twice breaks the numbering or
the chain. What the chain cannot show, rows cut off at the end or a log that
was written anew, an earlier copy or checkpoint shows.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from registry.canonical import load_json, sha256_hex
from registry.errors import TrapError, WitnessError
from registry.timestamps import parse_timestamp
from registry.witness.rows import PushRow

LOG_NAME = "push-log.jsonl"
MAX_LOG_BYTES = 33_554_432
NO_ROW = "0" * 64
"""Stands for the digest of a row where there is none before."""

_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REF = re.compile(r"refs/[^\x00-\x20\x7f]{1,4096}")
_ACTIVITY = re.compile(r"[a-z_]{1,40}")


def parse_log(data: bytes, name: str) -> list[PushRow]:
    """The rows of a push log, oldest first; `name` stands in errors.

    WitnessError where numbering, chain, times or a row's form do not hold.
    """
    rows: list[PushRow] = []
    previous, latest = NO_ROW, None
    for number, line in enumerate(log_lines(data, name), 1):
        where = f"{name}, line {number}"
        row, at = _row(line, where)
        if row.id != number:
            raise WitnessError("the push log is not numbered in order", where=where, value=row.id)
        if row.previous != previous:
            raise WitnessError("the push log's chain is broken: a row before was changed", where=where)
        if latest is not None and at < latest:
            raise WitnessError("the push log's times step back", where=where, value=row.timestamp)
        rows.append(row)
        previous, latest = sha256_hex(line), at
    return rows


def log_lines(data: bytes, name: str) -> list[bytes]:
    """The lines of a log without their ends; WitnessError where it is too
    large or ends in mid-line.
    """
    if len(data) > MAX_LOG_BYTES:
        raise WitnessError("the push log is too large", where=name, value=len(data))
    lines = data.split(b"\n")
    if lines.pop():
        raise WitnessError("the push log ends in the middle of a line", where=name)
    return lines


def head_of(lines: list[bytes]) -> str:
    """The SHA-256 of the last line, of `NO_ROW` where there is none."""
    return sha256_hex(lines[-1]) if lines else NO_ROW


def _row(line: bytes, where: str) -> tuple[PushRow, datetime]:
    try:
        value = load_json(line, where)
        row = PushRow(**value)
    except TypeError as error:
        raise WitnessError(f"not a row of the push log: {error}", where=where) from None
    except TrapError as error:
        raise WitnessError(f"not a row of the push log: {error.what}", where=where) from None
    at = parse_timestamp(row.timestamp)
    if at is None or type(row.id) is not int or not _well_formed(row):
        raise WitnessError("a malformed row of the push log", where=where)
    if row.beacon is not None and not _fits(_SHA256, row.beacon):
        raise WitnessError("the beacon is not 32 bytes in hex", where=where)
    return row, at


def _well_formed(row: PushRow) -> bool:
    return (
        _fits(_REF, row.ref)
        and _fits(_OID, row.before)
        and _fits(_OID, row.after)
        and _fits(_ACTIVITY, row.activity_type)
        and _fits(_SHA256, row.previous)
    )


def _fits(form: re.Pattern[str], text: Any) -> bool:
    return isinstance(text, str) and form.fullmatch(text) is not None
