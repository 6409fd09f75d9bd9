"""Tables decoded by another process, which a hostile file may break.

One process serves many files; where it dies, the next file gets a new one.
What it sends back has the table's schema, and is checked to be well formed.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from threading import Lock, Timer
from typing import Any

import pyarrow as pa

from artifacts.records import stamped
from registry.errors import CapExceeded, RecordError, TrapError

PROGRAM = "artifacts.decoder"
MEMORY_BYTES = 6_442_450_944
CPU_S = 120
LIMIT_S = 600.0
MAX_ANSWER_BYTES = 2_415_919_104
READY = b"ready\n"
_MAX_LINE_BYTES = 65_536
_FAREWELL_S = 5.0
_LARGE_BYTES = 268_435_456
"""After a table so large a new process begins, so that none is judged by what memory another left."""

_ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""One thread, and no pool that reserves address space ahead of need."""

_OUT_OF_LIMITS = {signal.SIGXCPU, signal.SIGKILL, signal.SIGABRT}
"""What ends a process that is over its limits; C++ aborts where it finds no memory."""


class Decoder:
    """A decoding process, started when it is first needed.

    `memory_bytes` bounds its address space, `cpu_s` its work on one table.
    """

    def __init__(self, memory_bytes: int = MEMORY_BYTES, cpu_s: int = CPU_S) -> None:
        self._limits = (str(memory_bytes), str(cpu_s))
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def decode(self, folder: Path, name: str, sha256: str) -> pa.Table:
        """Table `name` of an attempt; RecordError or CapExceeded, whatever the file holds."""
        where = str(folder / f"{name}.parquet")
        with self._lock:
            try:
                data = self._asked([str(folder.absolute()), name, sha256], where)
            except CapExceeded:
                self.close()
                raise
            if data.size > _LARGE_BYTES:
                self.close()
        try:
            table = pa.ipc.open_stream(data).read_all()
            table.validate(full=True)
        except (pa.ArrowException, OSError, ValueError):
            raise RecordError("the decoded table is malformed", where=where) from None
        if not table.schema.equals(stamped(name), check_metadata=True):
            raise RecordError(f"the table is not {name} of this version", where=where)
        return table

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    if pipe:
                        pipe.close()

    def _asked(self, request: list[str], where: str) -> pa.Buffer:
        process = self._process = self._process or self._start()
        assert process.stdin and process.stdout
        limit = Timer(LIMIT_S, process.kill)
        limit.start()
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline(_MAX_LINE_BYTES))
            if "error" not in answer:
                return self._received(process, int(answer["bytes"]), where)
        except (OSError, ValueError, KeyError, TypeError, EOFError):
            raise self._died(process, where) from None
        except BaseException:
            self.close()
            raise
        finally:
            limit.cancel()
        raise _error(answer)

    def _received(self, process: subprocess.Popen[bytes], size: int, where: str) -> pa.Buffer:
        if not 0 <= size <= MAX_ANSWER_BYTES:
            raise CapExceeded("the table is too large when decoded", where=where, value=size)
        buffer = pa.allocate_buffer(size)
        view, place = memoryview(buffer), 0
        assert process.stdout
        while place < size:
            count = process.stdout.readinto(view[place:])  # type: ignore[attr-defined]
            if not count:
                raise EOFError
            place += count
        return buffer

    def _died(self, process: subprocess.Popen[bytes], where: str) -> TrapError:
        """The error for a process that ended, or speaks nonsense; it is left."""
        try:
            code = process.wait(timeout=_FAREWELL_S)
        except subprocess.TimeoutExpired:
            code = 0
        self.close()
        if code < 0 and -code in _OUT_OF_LIMITS:
            return CapExceeded("the table takes too much memory or time to decode", where=where)
        ended = signal.Signals(-code).name if code < 0 else f"code {code}"
        return RecordError(f"not a readable Parquet file: its decoder ended with {ended}", where=where)

    def _start(self) -> subprocess.Popen[bytes]:
        # No module of the current folder, which may be the study's, is to be imported.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", PROGRAM, *self._limits],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=os.path.sep,
            env={**os.environ, **_ENVIRONMENT},
        )
        assert process.stdout
        if process.stdout.readline(_MAX_LINE_BYTES) != READY:
            self._process = process
            self.close()
            raise CapExceeded("no table can be decoded: the decoder does not start", where=PROGRAM)
        return process


def _error(answer: dict[str, Any]) -> TrapError:
    kind = CapExceeded if answer["error"] == "CapExceeded" else RecordError
    return kind(
        str(answer.get("what")), where=answer.get("where"), value=answer.get("value"), remedy=answer.get("remedy")
    )


@cache
def _shared() -> Decoder:
    decoder = Decoder()
    atexit.register(decoder.close)
    return decoder


def decode(folder: Path, name: str, sha256: str) -> pa.Table:
    """As `Decoder.decode`, by the one process that serves this program."""
    return _shared().decode(folder, name, sha256)
