"""Reading an attempt that nobody trusts: digests, forms and caps first."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from artifacts.attempt import RUN_FILE, RUN_SCHEMA
from artifacts.records import GATE_EVENTS, SCHEMAS, TURN_OUTCOMES, stamped
from registry.errors import CapExceeded, RecordError

MAX_RUN_BYTES = 1_048_576
MAX_TABLE_BYTES = 1_073_741_824
MAX_ROWS = 20_000_000
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LFS = b"version https://git-lfs"


@dataclass(frozen=True)
class RunRecord:
    """A run.json: its own digest, its fields, and the digests of its files."""

    sha256: str
    fields: dict[str, Any]
    files: dict[str, str]


def read_run_record(folder: Path) -> RunRecord:
    """The attempt's run.json; RecordError where it is missing or malformed."""
    data = _bytes_inside(folder, RUN_FILE, MAX_RUN_BYTES)
    where = str(folder / RUN_FILE)
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        raise RecordError("run.json is not JSON", where=where) from None
    if not isinstance(fields, dict) or fields.get("schema") != RUN_SCHEMA:
        raise RecordError("not a run record of this version", where=where, remedy=RUN_SCHEMA)
    files = fields.get("files")
    expected = {f"{name}.parquet" for name in SCHEMAS}
    if not isinstance(files, dict) or set(files) != expected:
        raise RecordError("run.json names other files than a run has", where=where, value=sorted(map(str, files or {})))
    digests = {name: entry.get("sha256") if isinstance(entry, dict) else None for name, entry in files.items()}
    if not all(isinstance(d, str) and _SHA256.fullmatch(d) for d in digests.values()):
        raise RecordError("run.json holds a malformed digest", where=where)
    return RunRecord(hashlib.sha256(data).hexdigest(), fields, {k: str(v) for k, v in digests.items()})


def read_tables(folder: Path, record: RunRecord) -> dict[str, pa.Table]:
    """The attempt's tables, each checked against its digest and schema."""
    return {name: _read_table(folder, name, record.files[f"{name}.parquet"]) for name in SCHEMAS}


def _read_table(folder: Path, name: str, sha256: str) -> pa.Table:
    where = str(folder / f"{name}.parquet")
    data = _bytes_inside(folder, f"{name}.parquet", MAX_TABLE_BYTES)
    if data.startswith(_LFS):
        raise RecordError(
            "a Git LFS pointer stands in the file's place", where=where, remedy="fetch the file itself: git lfs pull"
        )
    if hashlib.sha256(data).hexdigest() != sha256:
        raise RecordError("the file differs from the digest in run.json", where=where)
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        if file.metadata.num_rows > MAX_ROWS:
            raise CapExceeded("the table has too many rows", where=where, value=file.metadata.num_rows)
        table = file.read()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise RecordError(f"not a readable Parquet file: {str(error).splitlines()[0]}", where=where) from None
    if not table.schema.equals(stamped(name), check_metadata=True):
        raise RecordError(f"the table is not {name} of this version", where=where)
    _check_words(name, table, where)
    return table


def _check_words(name: str, table: pa.Table, where: str) -> None:
    for field in table.schema:
        if not field.nullable and table.column(field.name).null_count:
            raise RecordError("a required column holds nulls", where=where, value=field.name)
    column, words = ("event", GATE_EVENTS) if name == "gate" else ("outcome", TURN_OUTCOMES)
    if column in table.column_names:
        unknown = set(table.column(column).unique().to_pylist()) - set(words)
        if unknown:
            raise RecordError(f"an unknown {column}", where=where, value=sorted(map(str, unknown))[0])


def _bytes_inside(folder: Path, name: str, cap: int) -> bytes:
    """A regular file directly in `folder`; links out of it are refused."""
    path = folder / name
    if path.is_symlink() or folder.resolve() != folder.absolute():
        raise RecordError("a path leaves the study", where=str(path), remedy="no symbolic links among run files")
    if not path.is_file():
        raise RecordError(f"{name} is missing", where=str(folder))
    if path.stat().st_size > cap:
        raise CapExceeded("the file is too large", where=str(path), value=path.stat().st_size)
    return path.read_bytes()
