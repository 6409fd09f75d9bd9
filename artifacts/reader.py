"""Reading an attempt that nobody trusts: digests, forms and caps first."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from artifacts.attempt import RUN_FILE, RUN_SCHEMA
from artifacts.records import GATE_EVENTS, SCHEMAS, TURN_OUTCOMES, stamped
from registry.errors import CapExceeded, RecordError

MAX_RUN_BYTES = 1_048_576
MAX_TABLE_BYTES = 1_073_741_824
MAX_ROWS = 20_000_000
MAX_TEXT_BYTES = 4096
MAX_SECONDS = 1e9
MAX_COUNT = 2**53
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
        fields = json.loads(data, parse_constant=_refuse)
        json.dumps(fields, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise RecordError("run.json is not JSON", where=where) from None
    if not isinstance(fields, dict) or fields.get("schema") != RUN_SCHEMA:
        raise RecordError("not a run record of this version", where=where, remedy=RUN_SCHEMA)
    engine, files = fields.get("engine"), fields.get("files")
    if not isinstance(engine, dict) or type(engine.get("simulated")) is not bool:
        raise RecordError("run.json does not say whether its engine is simulated", where=where)
    expected = {f"{name}.parquet" for name in SCHEMAS}
    if not isinstance(files, dict) or set(files) != expected:
        raise RecordError("run.json names other files than a run has", where=where, value=_short(files))
    digests = {name: entry.get("sha256") if isinstance(entry, dict) else None for name, entry in files.items()}
    if not all(isinstance(d, str) and _SHA256.fullmatch(d) for d in digests.values()):
        raise RecordError("run.json holds a malformed digest", where=where)
    return RunRecord(hashlib.sha256(data).hexdigest(), fields, {k: str(v) for k, v in digests.items()})


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def read_tables(folder: Path, record: RunRecord) -> dict[str, pa.Table]:
    """The attempt's tables, each checked against its digest and schema."""
    return {name: read_table(folder, record, name) for name in SCHEMAS}


def read_table(folder: Path, record: RunRecord, name: str) -> pa.Table:
    """One table of the attempt, checked against its digest and schema."""
    return _read_table(folder, name, record.files[f"{name}.parquet"])


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
        return _decoded(name, data, where)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise RecordError(f"not a readable Parquet file: {_short(error)}", where=where) from None


def _decoded(name: str, data: bytes, where: str) -> pa.Table:
    """The table in a file's bytes. Texts are decoded as dictionaries first: a
    small file can say one long text a million times over.
    """
    schema = stamped(name)
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    file = pq.ParquetFile(pa.BufferReader(data), read_dictionary=texts)
    if file.metadata.num_rows > MAX_ROWS:
        raise CapExceeded("the table has too many rows", where=where, value=file.metadata.num_rows)
    found = file.schema_arrow
    if found.names != schema.names or found.metadata != schema.metadata:
        raise RecordError(f"the table is not {name} of this version", where=where)
    table = file.read()
    table.validate(full=True)
    for column in texts:
        for chunk in table.column(column).chunks:
            words = chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk
            if (pc.max(pc.binary_length(words)).as_py() or 0) > MAX_TEXT_BYTES:
                raise CapExceeded("a text in the table is too long", where=where, value=column)
    plain = {field.name: table.column(field.name) for field in table.schema}
    plain |= {c: plain[c].cast(pa.string()) for c in texts if pa.types.is_dictionary(plain[c].type)}
    types = {field.name: pa.string() if field.name in texts else field.type for field in table.schema}
    fields = [pa.field(field.name, types[field.name], field.nullable) for field in table.schema]
    table = pa.table(list(plain.values()), schema=pa.schema(fields, metadata=found.metadata))
    if not table.schema.equals(schema, check_metadata=True):
        raise RecordError(f"the table is not {name} of this version", where=where)
    table.validate(full=True)
    _check_words(name, table, where)
    return table


def _check_words(name: str, table: pa.Table, where: str) -> None:
    for field in table.schema:
        if not field.nullable and table.column(field.name).null_count:
            raise RecordError("a required column holds nulls", where=where, value=field.name)
        if not pa.types.is_string(field.type):
            _check_range(table.column(field.name), field, where)
    column, words = ("event", GATE_EVENTS) if name == "gate" else ("outcome", TURN_OUTCOMES)
    if column in table.column_names:
        unknown = set(table.column(column).unique().to_pylist()) - set(words)
        if unknown:
            raise RecordError(f"an unknown {column}", where=where, value=sorted(map(str, unknown))[0])


def _check_range(column: pa.ChunkedArray, field: pa.Field, where: str) -> None:
    """No NaN, no infinity, nothing so large that a sum of it would break."""
    limit = MAX_SECONDS if pa.types.is_floating(field.type) else min(MAX_COUNT, 2 ** (field.type.bit_width - 1) - 1)
    inside = pc.and_(pc.less_equal(column, limit), pc.greater_equal(column, -limit))
    if pc.all(inside).as_py() is False:
        raise RecordError("a column holds a number that is none of a run", where=where, value=field.name)


def _short(value: object) -> str:
    """The first line of something hostile, cut to a line's length."""
    return (str(value).splitlines() or [""])[0][:200]


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
