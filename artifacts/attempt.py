"""Writing one attempt: tables first, run.json last and atomically.

An attempt is one engine life. It is complete when its run.json is there; a
process killed at any moment before leaves an abandoned attempt, never a half
one that counts.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from artifacts.records import RECORDS_VERSION, SCHEMAS, stamped
from registry.errors import RecordError

RUN_FILE = "run.json"
RUN_SCHEMA = "trap-run-1"
PROGRESS_FILE = "progress.jsonl"
JOB_FILE = "job.json"
ABANDONED_FILE = "abandoned.json"
ABANDONED_SCHEMA = "trap-abandoned-1"


@dataclass(frozen=True)
class FileDigest:
    """One file of an attempt: SHA-256 (hex), size in bytes, rows."""

    sha256: str
    bytes: int
    rows: int


def sha256_file(path: Path) -> str:
    """Hex SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def attempt_folder(runs: Path, registration: str, run_path: str, attempt: int) -> Path:
    """`<runs>/<registration>/<arm>/<rate>/<seed>/attempt-<n>`."""
    return runs / registration / run_path / f"attempt-{attempt}"


def attempt_numbers(run_folder: Path) -> list[int]:
    """The attempt numbers present below a run's folder, ascending."""
    if not run_folder.is_dir():
        return []
    names = [p.name.removeprefix("attempt-") for p in run_folder.glob("attempt-*")]
    return sorted(int(name) for name in names if name.isdecimal())


def is_complete(folder: Path) -> bool:
    """Whether the attempt's final record is there."""
    return (folder / RUN_FILE).is_file()


class AttemptWriter:
    """Creates an attempt's folder exclusively and fills it.

    RecordError where the folder exists: two writers never share an attempt.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            folder.mkdir()
        except FileExistsError:
            raise RecordError(
                "the attempt exists already", where=str(folder), remedy="run again: the next number is taken"
            ) from None

    def write_tables(self, tables: dict[str, pa.Table]) -> dict[str, FileDigest]:
        """Write every table of the records; returns their digests by file."""
        digests = {}
        for name in SCHEMAS:
            table = tables[name]
            if not table.schema.equals(stamped(name), check_metadata=True):
                raise RecordError(f"table {name} does not have its schema", where=str(self.folder))
            path = self.folder / f"{name}.parquet"
            pq.write_table(table, path, compression="zstd")
            sync(path)
            digests[path.name] = FileDigest(sha256_file(path), path.stat().st_size, table.num_rows)
        return digests

    def finish(self, record: dict[str, Any], files: dict[str, FileDigest]) -> str:
        """Write run.json, the last and deciding step; returns its SHA-256."""
        document = {
            "schema": RUN_SCHEMA,
            "records_version": RECORDS_VERSION,
            **record,
            "files": {name: vars(digest) for name, digest in sorted(files.items())},
        }
        data = json.dumps(document, indent=1, sort_keys=True, allow_nan=False).encode() + b"\n"
        write_whole(self.folder / RUN_FILE, data)
        return hashlib.sha256(data).hexdigest()


def abandon(folder: Path, reason: str, cause: str | None, files: dict[str, FileDigest] | None = None) -> None:
    """Write abandoned.json: why an attempt ended without a result, and the
    tables that it left. `cause` is one of `registry.attempt_log.CAUSES` where
    the attempt's own records show it.
    """
    kept = {name: vars(digest) for name, digest in sorted((files or {}).items())}
    document = {"schema": ABANDONED_SCHEMA, "reason": reason, "cause": cause, "files": kept}
    write_whole(folder / ABANDONED_FILE, json.dumps(document, indent=1, sort_keys=True).encode() + b"\n")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all, whatever happens."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(data)
    sync(partial)
    partial.replace(path)
    sync(path.parent)


def abandoned_cause(folder: Path) -> str | None:
    """The cause in an attempt's abandoned.json; None where none is shown."""
    return _text(_document(folder / ABANDONED_FILE).get("cause"))


def abandoned_reason(folder: Path) -> str | None:
    """The reason in an attempt's abandoned.json; None where it has none."""
    return _text(_document(folder / ABANDONED_FILE).get("reason"))


def job_of(folder: Path) -> dict[str, Any]:
    """The job that an attempt said it runs in, from its job.json; empty where none."""
    return _document(folder / JOB_FILE)


def _document(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def sync(path: Path) -> None:
    """Return when the file or folder is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
