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

from artifacts.attempt import RUN_FILE, RUN_SCHEMA
from artifacts.decoding import decode
from artifacts.files import bytes_inside, short
from artifacts.records import GATE_EVENTS, SCHEMAS, TURN_OUTCOMES
from registry.errors import RecordError

MAX_RUN_BYTES = 1_048_576
MAX_SECONDS = 1e9
MAX_COUNT = 2**53
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class RunRecord:
    """A run.json: its own digest, its fields, and the digests of its files."""

    sha256: str
    fields: dict[str, Any]
    files: dict[str, str]


def read_run_record(folder: Path) -> RunRecord:
    """The attempt's run.json; RecordError where it is missing or malformed."""
    data = bytes_inside(folder, RUN_FILE, MAX_RUN_BYTES)
    where = str(folder / RUN_FILE)
    try:
        fields = json.loads(data, parse_constant=_refuse, object_pairs_hook=_unique)
        json.dumps(fields, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise RecordError(f"run.json is not JSON: {short(error)}", where=where) from None
    if not isinstance(fields, dict) or fields.get("schema") != RUN_SCHEMA:
        raise RecordError("not a run record of this version", where=where, remedy=RUN_SCHEMA)
    engine, files = fields.get("engine"), fields.get("files")
    if not isinstance(engine, dict) or type(engine.get("simulated")) is not bool:
        raise RecordError("run.json does not say whether its engine is simulated", where=where)
    expected = {f"{name}.parquet" for name in SCHEMAS}
    if not isinstance(files, dict) or set(files) != expected:
        raise RecordError("run.json names other files than a run has", where=where, value=short(files))
    digests = {name: entry.get("sha256") if isinstance(entry, dict) else None for name, entry in files.items()}
    if not all(isinstance(d, str) and _SHA256.fullmatch(d) for d in digests.values()):
        raise RecordError("run.json holds a malformed digest", where=where)
    return RunRecord(hashlib.sha256(data).hexdigest(), fields, {k: str(v) for k, v in digests.items()})


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys stand once: readers differ about which one counts."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


def read_tables(folder: Path, record: RunRecord) -> dict[str, pa.Table]:
    """The attempt's tables, each checked against its digest and schema."""
    return {name: read_table(folder, record, name) for name in SCHEMAS}


def read_table(folder: Path, record: RunRecord, name: str) -> pa.Table:
    """One table of the attempt, checked against its digest and schema.

    Another process decodes it; here its values are judged.
    """
    table = decode(folder, name, record.files[f"{name}.parquet"])
    _check_words(name, table, str(folder / f"{name}.parquet"))
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
