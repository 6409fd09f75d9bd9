"""The program that decodes tables, one request a line, with limits of its own.

Started as `python -m artifacts.decoder MEMORY_BYTES CPU_S`; see
`artifacts.decoding`. It says `ready`; then a request is a JSON list: folder, table, SHA-256. The
answer is a line of JSON, an error or a size, and then so many bytes of an
Arrow stream.
"""

from __future__ import annotations

import contextlib
import json
import resource
import sys
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from artifacts.table_file import read_table_file
from registry.errors import TrapError


def main() -> None:
    """Answer requests until there are no more."""
    memory_bytes, cpu_s = map(int, sys.argv[1:])
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    _limit(resource.RLIMIT_AS, memory_bytes)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    sys.stdout.buffer.write(b"ready\n")
    sys.stdout.buffer.flush()
    for line in sys.stdin.buffer:
        used = resource.getrusage(resource.RUSAGE_SELF)
        _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + cpu_s, soft=True)
        folder, name, sha256 = json.loads(line)
        _answer(Path(folder), name, sha256, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _limit(kind: int, value: int, *, soft: bool = False) -> None:
    """Set a limit where the system has it (macOS knows no limit of memory)."""
    _, hard = resource.getrlimit(kind)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (value, hard if soft else value))


def _answer(folder: Path, name: str, sha256: str, output: BinaryIO) -> None:
    try:
        table = read_table_file(folder, name, sha256)
    except TrapError as error:
        value = error.value if isinstance(error.value, int) else None if error.value is None else str(error.value)
        fields = {"what": error.what, "where": error.where, "value": value, "remedy": error.remedy}
        output.write(json.dumps({"error": type(error).__name__, **fields}).encode() + b"\n")
        return
    size = pa.MockOutputStream()
    _write(table, size)
    output.write(json.dumps({"bytes": size.size()}).encode() + b"\n")
    _write(table, output)


def _write(table: pa.Table, sink: BinaryIO | pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


if __name__ == "__main__":
    main()
