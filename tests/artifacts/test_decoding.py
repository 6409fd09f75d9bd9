"""Hostile tables break a process of their own, and never the one that judges."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from artifacts import decoding
from artifacts.decoding import Decoder
from artifacts.records import stamped
from registry.errors import CapExceeded, RecordError, TrapError

SCHEMA = stamped("gate")


@pytest.fixture(scope="module")
def decoder() -> Iterator[Decoder]:
    decoder = Decoder(memory_bytes=450_000_000)
    yield decoder
    decoder.close()


def gate(sessions: pa.Array) -> pa.Table:
    """A gate log of one event, with these sessions."""
    count = len(sessions)
    events = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), ["admitted"])
    fields = [SCHEMA.field(0), pa.field("event", events.type, False), pa.field("session", sessions.type)]
    return pa.table([pa.array(np.zeros(count)), events, sessions], pa.schema(fields, metadata=SCHEMA.metadata))


def repeated(text: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), [text])


def encoded(table: pa.Table, **options: object) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", **options)
    return sink.getvalue().to_pybytes()


def decoded(decoder: Decoder, folder: Path, data: bytes) -> pa.Table:
    (folder / "gate.parquet").write_bytes(data)
    return decoder.decode(folder, "gate", hashlib.sha256(data).hexdigest())


FINE = encoded(gate(repeated("b-1", 10)))


def growing_page(size: int) -> bytes:
    """One text of so many bytes, a few thousand when compressed."""
    return encoded(gate(pa.array(["y" * size])), use_dictionary=False, write_statistics=False)


def with_footer(footer: bytes) -> bytes:
    """FINE with another footer."""
    size = struct.unpack("<I", FINE[-8:-4])[0]
    return FINE[: -8 - size] + footer + struct.pack("<I", len(footer)) + b"PAR1"


def footer_with_rows(count: bytes) -> Iterator[bytes]:
    """FINE with each number 10 of its footer replaced."""
    size = struct.unpack("<I", FINE[-8:-4])[0]
    footer = FINE[-8 - size : -8]
    for place in range(len(footer) - 1):
        if footer[place : place + 2] == b"\x16\x14":
            yield with_footer(footer[: place + 1] + count + footer[place + 2 :])


def nested(levels: int) -> pa.Table:
    kind = pa.int8()
    for _ in range(levels):
        kind = pa.list_(kind)
    return pa.table({"a": pa.array([], kind)})


def test_one_process_serves_many_tables(decoder: Decoder, tmp_path: Path) -> None:
    processes = set()
    for count in (1, 10, 100):
        table = decoded(decoder, tmp_path, encoded(gate(repeated("b-1", count))))
        assert table.schema.equals(SCHEMA, check_metadata=True)
        assert table.column("session").to_pylist() == ["b-1"] * count
        assert decoder._process
        processes.add(decoder._process.pid)
    assert len(processes) == 1


@pytest.mark.parametrize(
    ("bomb", "reason"),
    [
        (lambda: encoded(gate(repeated("x" * 4000, 600_000))), "too large when decoded"),
        (lambda: encoded(gate(repeated("x" * 4097, 10))), "too long"),
        (
            lambda: encoded(gate(pa.array(["y" * 100_000_000])), use_dictionary=False, write_statistics=False),
            "too much memory",
        ),
        (lambda: next(footer_with_rows(b"\x80\xa8\xd6\xb9\x07")), "too many rows"),
    ],
    ids=["a text said often", "a long text", "a page that grows", "a billion rows"],
)
def test_a_bomb_is_over_a_cap_and_the_next_table_is_read(
    decoder: Decoder, tmp_path: Path, bomb: Callable[[], bytes], reason: str
) -> None:
    data = bomb()
    assert len(data) < 1_000_000
    with pytest.raises(CapExceeded, match=reason):
        decoded(decoder, tmp_path, data)
    assert decoded(decoder, tmp_path, FINE).num_rows == 10


@pytest.mark.parametrize(
    "data",
    [
        b"",
        FINE[:-1],
        encoded(nested(90)),
        with_footer(b"\x1c" * 1_000_000),
        with_footer(b"\x15\x04\x19" + b"\x19\x1c" * 5000),
        with_footer(b""),
        b"version https://git-lfs.github.com/spec/v1\n",
    ],
    ids=["nothing", "cut short", "a deep schema", "a deep footer", "deep lists", "no footer", "a pointer"],
)
def test_a_malformed_table_is_refused_in_words(decoder: Decoder, tmp_path: Path, data: bytes) -> None:
    with pytest.raises(RecordError):
        decoded(decoder, tmp_path, data)


def test_numbers_of_rows_that_lie_give_no_other_table(decoder: Decoder, tmp_path: Path) -> None:
    for data in footer_with_rows(b"\x16"):
        try:
            assert decoded(decoder, tmp_path, data).num_rows in (10, 11)
        except TrapError:
            continue


def test_changed_bytes_give_a_table_or_a_refusal(decoder: Decoder, tmp_path: Path) -> None:
    chance = random.Random(7)
    for _ in range(150):
        data = bytearray(FINE)
        for _ in range(chance.choice((1, 2, 8))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            table = decoded(decoder, tmp_path, bytes(data))
            assert table.schema.equals(SCHEMA, check_metadata=True)
        except TrapError as error:
            assert error.where and error.where.endswith("gate.parquet")


def test_another_digest_is_refused(decoder: Decoder, tmp_path: Path) -> None:
    (tmp_path / "gate.parquet").write_bytes(FINE)
    with pytest.raises(RecordError, match="differs from the digest"):
        decoder.decode(tmp_path, "gate", "0" * 64)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (signal.SIGSEGV, RecordError),
        (signal.SIGXCPU, CapExceeded),
        (signal.SIGKILL, CapExceeded),
        (signal.SIGABRT, CapExceeded),
    ],
)
def test_a_process_that_dies_is_replaced(
    decoder: Decoder, tmp_path: Path, number: signal.Signals, kind: type[TrapError]
) -> None:
    decoded(decoder, tmp_path, FINE)
    assert decoder._process
    os.kill(decoder._process.pid, number)
    with pytest.raises(kind):
        decoded(decoder, tmp_path, FINE)
    assert decoded(decoder, tmp_path, FINE).num_rows == 10


def test_a_process_that_hangs_is_ended(decoder: Decoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded(decoder, tmp_path, FINE)
    assert decoder._process
    os.kill(decoder._process.pid, signal.SIGSTOP)
    monkeypatch.setattr(decoding, "LIMIT_S", 0.05)
    with pytest.raises(CapExceeded, match="memory or time"):
        decoded(decoder, tmp_path, FINE)


def test_a_decoder_that_does_not_start_refutes_nothing(
    decoder: Decoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder.close()
    monkeypatch.setattr(decoding, "PROGRAM", "artifacts.no_such_program")
    with pytest.raises(CapExceeded, match="does not start"):
        decoded(decoder, tmp_path, FINE)


def test_no_code_of_the_current_folder_is_run(
    decoder: Decoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pyarrow.py", "json.py", "artifacts.py"):
        (tmp_path / name).write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    decoder.close()
    assert decoded(decoder, Path(), FINE).num_rows == 10


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="limits are read from /proc")
def test_the_process_is_limited(decoder: Decoder, tmp_path: Path) -> None:
    decoded(decoder, tmp_path, FINE)
    assert decoder._process
    limits = Path(f"/proc/{decoder._process.pid}/limits").read_text().splitlines()
    soft = {line[:26].strip(): line[26:47].strip() for line in limits}
    assert soft["Max address space"] == "450000000"
    assert soft["Max file size"] == soft["Max core file size"] == "0"
    assert 0 < int(soft["Max cpu time"]) <= decoding.CPU_S + 5
