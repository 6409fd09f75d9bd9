"""The session table of a trace as one Parquet file, written as the trace is read.

Memory is that of a batch and of the reader; the file gets its name when it is whole.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

from artifacts.attempt import sync
from registry.errors import StudyError
from registry.traces.description import MOST_SHOWN
from registry.traces.session_table import SESSION_TABLE, Malformed, Reading, TraceTurn, table_of

BATCH_TURNS, BATCH_BLOCKS = 4096, 500_000
"""A batch, which is a row group, is full at so many turns or block ids."""


@dataclass
class TableWritten:
    """What went into a table; `problems` are the first of the malformed ones."""

    turns: int = 0
    sessions: int = 0
    malformed: int = 0
    problems: list[Malformed] = field(default_factory=list)


def write_table(reading: Reading, out: Path) -> TableWritten:
    """Write the turns of a trace to `out`, in the trace's order; nothing where
    there are none. The same trace gives the same bytes.

    StudyError where `out` is there already, or its folder is not.
    """
    _check_free(out)
    if not out.parent.is_dir():
        raise StudyError("there is no such folder", where=str(out.parent), remedy="make it, or name another file")
    written = TableWritten()
    partial = out.with_name(f".{out.name}.{secrets.token_hex(4)}.partial")
    try:
        with pq.ParquetWriter(partial, SESSION_TABLE, compression="zstd") as writer:
            for batch in _batches(reading, written):
                writer.write_table(table_of(batch))
        if written.turns:
            sync(partial)
            _name(partial, out)
    finally:
        partial.unlink(missing_ok=True)
    return written


def _batches(reading: Reading, written: TableWritten) -> Iterator[list[TraceTurn]]:
    """The turns by batches; everything that is read is counted."""
    batch: list[TraceTurn] = []
    blocks = 0
    for item in reading:
        if isinstance(item, Malformed):
            written.malformed += 1
            if len(written.problems) < MOST_SHOWN:
                written.problems.append(item)
        elif isinstance(item, TraceTurn):
            written.turns += 1
            written.sessions += item.turn == 1
            batch.append(item)
            blocks += len(item.blocks)
            if len(batch) >= BATCH_TURNS or blocks >= BATCH_BLOCKS:
                yield batch
                batch, blocks = [], 0
    if batch:
        yield batch


def _check_free(out: Path) -> None:
    if os.path.lexists(out):
        raise StudyError("the file is there already", where=str(out), remedy="name another, or remove it")


def _name(partial: Path, out: Path) -> None:
    """Give the file its name; what came to be there meanwhile stays."""
    try:
        os.link(partial, out)
    except FileExistsError:
        _check_free(out)
    except OSError:  # a file system without hard links
        _check_free(out)
        partial.rename(out)
