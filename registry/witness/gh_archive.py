"""GH Archive: a public record of GitHub's events, kept by others.

A push that stands there was public at its hour. One that does not stand there
proves nothing: the archive has gaps, and private repositories are not in it.
Fields: GitHub's documentation of PushEvent (no list of commits since 2025).
"""

from __future__ import annotations

import gzip
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from registry.canonical import load_json
from registry.errors import TrapError, WitnessError
from registry.plain_text import plain
from registry.timestamps import parse_timestamp
from registry.witness import http
from registry.witness.rows import PushRow, in_order

MAX_FILE_BYTES = 1_073_741_824
MAX_HOUR_BYTES = 8_589_934_592
MAX_LINE_BYTES = 4_194_304
DEADLINE_S = 1800.0
_GZIP = b"\x1f\x8b"
_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF = re.compile(r"refs/[!-~]{1,1000}")

Download = Callable[..., None]
"""`http.download`, or a stand-in for it."""


@dataclass(frozen=True)
class Found:
    """Pushes to one repository, by time; and what of the files could not be read.

    `skipped` counts malformed or overlong lines that might have been such
    pushes; `broken` says of files why they could not be read to their end.
    """

    rows: tuple[PushRow, ...]
    skipped: int
    broken: tuple[str, ...]


def hour_name(moment: datetime) -> str:
    """The archive's file for the hour of a moment: `2026-11-30-4.json.gz`, UTC, hour not padded."""
    hour = moment.astimezone(UTC)
    return f"{hour:%Y-%m-%d}-{hour.hour}.json.gz"


def fetch_hour(base_url: str, moment: datetime, folder: Path, *, download: Download = http.download) -> Path:
    """The file for an hour in `folder`, downloaded where it is not there yet; whole or not at all.

    Raises WitnessError; a StatusError with 404 is a gap, or an hour to come.
    """
    name = hour_name(moment)
    path = folder / name
    if path.is_file():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    url = f"{base_url.rstrip('/')}/{name}"
    with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{name}.", delete=False) as file:
        part = Path(file.name)
        try:
            download(url, file, hosts=(http.host_of(url),), cap_bytes=MAX_FILE_BYTES, deadline_s=DEADLINE_S)
            file.flush()
            file.seek(0)
            if file.read(2) != _GZIP:
                raise WitnessError("the archive's file is not compressed by gzip", where=url)
            os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    return path


def find_pushes(files: Iterable[Path], repository_id: int) -> Found:
    """Every push to the repository of this number, whatever it was called at the time."""
    rows: dict[int, PushRow] = {}
    skipped, broken = 0, []
    digits = str(repository_id).encode()
    for path in files:
        try:
            with path.open("rb") as file:
                for line in _lines(file):
                    if line is not None and not (digits in line and b"PushEvent" in line):
                        continue
                    try:
                        row = None if line is None else _push(line, repository_id)
                    except TrapError:
                        skipped += 1
                        continue
                    skipped += line is None
                    if row is not None:
                        rows.setdefault(row.id, row)
        except (OSError, EOFError, zlib.error) as error:
            broken.append(f"{plain(path.name, 100)}: {plain(error, 200)}")
    return Found(tuple(in_order(rows.values())), skipped, tuple(broken))


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """The lines of a compressed file; None for one over the cap."""
    total = 0
    with gzip.open(file) as lines:
        while line := lines.readline(MAX_LINE_BYTES):
            total += len(line)
            if total > MAX_HOUR_BYTES:
                raise OSError(f"over {MAX_HOUR_BYTES} bytes when decompressed")
            if len(line) < MAX_LINE_BYTES or line.endswith(b"\n"):
                yield line
                continue
            while (rest := lines.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                total += len(rest)
                if total > MAX_HOUR_BYTES:
                    raise OSError(f"over {MAX_HOUR_BYTES} bytes when decompressed")
            yield None


def _push(line: bytes, repository_id: int) -> PushRow | None:
    """The push of a line; None where it is another event or another repository's."""
    event = _mapping(load_json(line, "GH Archive"))
    if event.get("type") != "PushEvent" or _mapping(event.get("repo")).get("id") != repository_id:
        return None
    payload = _mapping(event.get("payload"))
    if payload.get("repository_id", repository_id) != repository_id:
        raise WitnessError("the event names two repositories", where="GH Archive")
    number, ref = payload.get("push_id"), payload.get("ref")
    before, after, time = payload.get("before"), payload.get("head"), event.get("created_at")
    well_formed = (
        type(number) is int
        and isinstance(ref, str)
        and _REF.fullmatch(ref)
        and all(isinstance(each, str) and _OID.fullmatch(each) for each in (before, after))
        and parse_timestamp(time)
    )
    if not well_formed:
        raise WitnessError("a malformed push", where="GH Archive", value=event.get("id"))
    return PushRow(number, time, ref, before, after, "push")  # type: ignore[arg-type]


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WitnessError("not a mapping", where="GH Archive")
    return value
