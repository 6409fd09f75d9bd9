"""A table's file, decoded under caps: run only in a process of its own.

Digest, form and sizes come first. Parquet is a format in which a few bytes
can stand for gigabytes, and its decoder is a large body of C++.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from artifacts.files import bytes_inside, short
from artifacts.records import stamped
from registry.errors import CapExceeded, RecordError, TrapError

MAX_TABLE_BYTES = 1_073_741_824
MAX_ROWS = 20_000_000
MAX_TEXT_BYTES = 4096
MAX_DECODED_BYTES = 2_147_483_647
_MAX_FOOTER_TEXT_BYTES = 1_048_576
_MAX_FOOTER_ITEMS = 100_000
_LFS = b"version https://git-lfs"


def read_table_file(folder: Path, name: str, sha256: str) -> pa.Table:
    """Table `name` of an attempt, with the schema of this version.

    RecordError where it is missing, differs from its digest or is no such
    table; CapExceeded where it is over a cap.
    """
    where = str(folder / f"{name}.parquet")
    data = bytes_inside(folder, f"{name}.parquet", MAX_TABLE_BYTES)
    if data.startswith(_LFS):
        raise RecordError(
            "a Git LFS pointer stands in the file's place", where=where, remedy="fetch the file itself: git lfs pull"
        )
    if hashlib.sha256(data).hexdigest() != sha256:
        raise RecordError("the file differs from the digest in run.json", where=where)
    try:
        return _decoded(name, data, where)
    except MemoryError:
        raise CapExceeded("the table takes too much memory to decode", where=where) from None
    except TrapError:
        raise
    except Exception as error:  # of many kinds: the decoder looks names up that a hostile file lacks
        raise RecordError(f"not a readable Parquet file: {short(error)}", where=where) from None


def _decoded(name: str, data: bytes, where: str) -> pa.Table:
    """The table in a file's bytes. Texts are decoded as dictionaries first: a
    small file can say one long text a million times over.
    """
    schema = stamped(name)
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    file = pq.ParquetFile(
        pa.BufferReader(data),
        read_dictionary=texts,
        thrift_string_size_limit=_MAX_FOOTER_TEXT_BYTES,
        thrift_container_size_limit=_MAX_FOOTER_ITEMS,
    )
    if file.metadata.num_rows > MAX_ROWS:
        raise CapExceeded("the table has too many rows", where=where, value=file.metadata.num_rows)
    found = file.schema_arrow
    if found.names != schema.names or found.metadata != schema.metadata:
        raise RecordError(f"the table is not {name} of this version", where=where)
    table = file.read(use_threads=False)
    table.validate(full=True)
    plain = {field.name: table.column(field.name) for field in table.schema}
    for column in texts:
        if pa.types.is_dictionary(plain[column].type):
            _check_texts(plain[column], column, where)
            plain[column] = plain[column].cast(pa.string())
    table = pa.table(list(plain.values()), schema=_plain_schema(table.schema, texts, found.metadata))
    if not table.schema.equals(schema, check_metadata=True):
        raise RecordError(f"the table is not {name} of this version", where=where)
    if table.nbytes > MAX_DECODED_BYTES:
        raise CapExceeded("the table is too large when decoded", where=where, value=table.nbytes)
    return table


def _plain_schema(found: pa.Schema, texts: list[str], metadata: dict[bytes, bytes]) -> pa.Schema:
    """The schema found, its texts as plain texts."""
    types = {field.name: pa.string() if field.name in texts else field.type for field in found}
    return pa.schema([pa.field(f.name, types[f.name], f.nullable) for f in found], metadata=metadata)


def _check_texts(column: pa.ChunkedArray, name: str, where: str) -> None:
    """No text over the cap, and not too many bytes of them written out."""
    total = 0
    for chunk in column.chunks:
        lengths = pc.binary_length(chunk.dictionary)
        if (pc.max(lengths).as_py() or 0) > MAX_TEXT_BYTES:
            raise CapExceeded("a text in the table is too long", where=where, value=name)
        total += pc.sum(lengths.take(chunk.indices)).as_py() or 0
    if total > MAX_DECODED_BYTES:
        raise CapExceeded("the table is too large when decoded", where=where, value=total)
