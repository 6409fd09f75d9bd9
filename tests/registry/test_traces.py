"""Readers of traces: what each format's lines mean, and that nothing is dropped in silence."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.workflows import trace_table
from cli.workflows.trace_table import write_table
from registry.errors import RecordError, StudyError
from registry.traces.description import describe
from registry.traces.formats import format_of, read_trace
from registry.traces.session_table import SESSION_TABLE, Malformed, Oddity, TraceTurn, table_of
from tests.support import command

SAMPLES = Path(os.environ.get("TRAP_TRACES", Path(__file__).parents[3] / "shared/traces"))
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="no samples: TRAP_TRACES names their folder")


def turns(path: Path) -> list[TraceTurn]:
    return [item for item in read_trace(path) if isinstance(item, TraceTurn)]


def problems(path: Path) -> list[Malformed]:
    return [item for item in read_trace(path) if isinstance(item, Malformed)]


def oddities(path: Path) -> list[str]:
    return [item.kind for item in read_trace(path) if isinstance(item, Oddity)]


def mooncake(tmp_path: Path, *requests: tuple[int, int, list[int]]) -> Path:
    """Requests as (ms, prompt tokens, block ids)."""
    file = tmp_path / "trace.jsonl"
    lines = [
        json.dumps({"timestamp": at, "input_length": tokens, "output_length": 10, "hash_ids": ids})
        for at, tokens, ids in requests
    ]
    file.write_text("\n".join(lines) + "\n")
    return file


def tracelab(tmp_path: Path, *rows: str) -> Path:
    file = tmp_path / "trace.csv"
    head = "session_id,arrival_time,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms"
    file.write_text("\n".join([head, *rows]) + "\n")
    return file


def weka(tmp_path: Path, requests: list[dict[str, Any]], **head: Any) -> Path:
    file = tmp_path / "session.json"
    file.write_text(json.dumps({"id": "a", "block_size": 64, "hash_id_scope": "local", "requests": requests, **head}))
    return file


def request(t: float, ids: list[int], out: int = 5, **more: Any) -> dict[str, Any]:
    return {"t": t, "type": "n", "in": 64 * len(ids) + 3, "out": out, "hash_ids": ids, **more}


def test_mooncake_requests_are_linked_by_their_blocks(tmp_path: Path) -> None:
    file = mooncake(
        tmp_path,
        (0, 1024 + 9, [0, 1, 2]),
        (500, 512 + 9, [0, 5]),
        (2000, 1536 + 9, [0, 1, 3, 4]),
        (3000, 2048 + 1, [0, 1, 3, 6, 7]),
        (4000, 1024 + 9, [0, 1, 8]),
    )
    found = turns(file)
    assert [(t.session, t.turn) for t in found] == [("s1", 1), ("s2", 1), ("s1", 2), ("s1", 3), ("s3", 1)]
    assert [t.wait_s for t in found] == [None, None, 2.0, 1.0, None]
    assert [t.arrival_s for t in found] == [0.0, 0.5, None, None, 4.0]
    assert found[2].prefix_blocks == 2 and not found[2].wait_measured
    assert oddities(file) == ["linked_turns", "linked_turns"]


def test_blocks_that_all_requests_share_link_nothing(tmp_path: Path) -> None:
    file = mooncake(tmp_path, (0, 512, [0]), (1, 1024, [0, 1]), (2, 1024, [0, 2]))
    assert [t.session for t in turns(file)] == ["s1", "s2", "s3"]


def test_a_clock_that_goes_back_takes_no_time_with_it(tmp_path: Path) -> None:
    file = mooncake(tmp_path, (9000, 512, [0]), (1000, 512, [1]), (3000, 512, [2]))
    assert [t.arrival_s for t in turns(file)] == [9.0, 9.0, 11.0]
    assert oddities(file) == ["clock_resets"]


def test_the_last_block_of_a_prompt_counts_what_it_holds(tmp_path: Path) -> None:
    found = describe(read_trace(mooncake(tmp_path, (0, 700, [0, 1]), (1, 700, [0, 1]))))
    assert (found.prompt_tokens, found.reused_tokens, found.infinite_cache_hit_fraction) == (1400, 700, 0.5)


def test_tracelab_prefixes_become_blocks_of_the_session(tmp_path: Path) -> None:
    file = tracelab(tmp_path, "7,1000,0,0,40,20,300", "7,1000,1,60,30,1,0", "8,1500,0,0,40,20,0", "7,1000,2,32,10,1,5")
    first, second, other, third = turns(file)
    assert (first.arrival_s, first.wait_s, first.prompt_tokens) == (1.0, None, 40)
    assert (second.session, second.turn, second.wait_s, second.prompt_tokens) == ("7", 2, 0.3, 90)
    assert second.blocks[:2] == first.blocks and second.prefix_blocks == 2 and len(second.blocks) == 5
    assert other.scope != first.scope
    assert third.prompt_tokens == 42 and third.prefix_blocks == 2
    assert oddities(file) == ["context_shrinks"]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("7,0,2,0,1,1,0", "round 2 follows round 0"),
        ("7,0,1,9999,1,1,0", "longer than the session's context"),
        ("7,0,1,0,-1,1,0", "input_len is -1"),
        ("7,0,1,0,1.5,1,0", "no whole number"),
        ("7,0,1,0,nan,1,0", "NaN"),
        ("7,0,1", "not a row"),
        (",0,0,0,1,1,0", "session_id is empty"),
    ],
)
def test_a_bad_row_costs_itself_alone(tmp_path: Path, row: str, told: str) -> None:
    file = tracelab(tmp_path, "7,0,0,0,40,20,0", row, "7,0,1,60,4,1,0")
    assert [turn.turn for turn in turns(file)] == [1, 2]
    (problem,) = problems(file)
    assert problem.where == "trace.csv:3" and told in problem.why


def test_weka_waits_are_the_clients_where_the_trace_knows(tmp_path: Path) -> None:
    file = weka(
        tmp_path,
        [
            request(0, [1], api_time=2.0),
            request(5, [1, 2], think_time=2.5),
            request(9, [1, 2, 3], api_time=9.0, think_time=1.0),
            request(12, [1, 2, 3, 4]),
            request(30, [1, 9], api_time=1.0, out=0),
            request(40, [1, 9]),
        ],
    )
    found = turns(file)
    assert [t.wait_s for t in found] == [None, 2.5, 4.0, 3.0, 18.0, 9.0]
    assert [t.wait_measured for t in found[1:]] == [True, False, False, False, True]
    assert [t.prefix_blocks for t in found] == [0, 1, 2, 3, 1, 2]
    assert oddities(file) == ["overlapping_turns", "overlapping_turns", "overlapping_turns", "context_shrinks"]
    assert describe(read_trace(file)).zero_outputs == 1


def test_a_sub_agent_is_a_session_of_its_own(tmp_path: Path) -> None:
    inner = {"t": 4.0, "type": "subagent", "requests": [request(0, [1, 7]), request(2, [1, 7, 8])]}
    file = weka(tmp_path, [request(0, [1, 2]), inner, request(9, [1, 2, 3])])
    found = turns(file)
    assert [(t.session, t.parent, t.turn) for t in found] == [
        ("a@1", None, 1),
        ("a@1/1", "a@1", 1),
        ("a@1/1", "a@1", 2),
        ("a@1", None, 2),
    ]
    assert found[1].arrival_s == 4.0 and {t.scope for t in found} == {1}
    assert describe(read_trace(file)).sub_agents == 1


def test_ids_of_a_file_are_its_own_unless_it_says_otherwise(tmp_path: Path) -> None:
    for name in ("one", "two"):
        weka(tmp_path, [request(0, [1, 2])]).rename(tmp_path / f"{name}.json")
    assert describe(read_trace(tmp_path)).reused_tokens == 0
    for name in ("one", "two"):
        weka(tmp_path, [request(0, [1, 2])], hash_id_scope="global").rename(tmp_path / f"{name}.json")
    assert describe(read_trace(tmp_path)).reused_tokens == 128


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ({"t": 1, "in": 64, "out": 1}, "without in, out or hash_ids"),
        ({"t": 1, "in": 640, "out": 1, "hash_ids": [1]}, "1 block ids for 640 tokens"),
        ({"t": -1, "in": 64, "out": 1, "hash_ids": [1]}, ">= 0"),
        ({"t": 1, "in": 64, "out": 1, "hash_ids": [-1]}, ">= 0"),
        ({"t": 1, "in": 64.5, "out": 1, "hash_ids": [1]}, "Expected `int"),
        ("text", "Expected `object`"),
    ],
)
def test_a_bad_request_costs_itself_alone(tmp_path: Path, bad: Any, told: str) -> None:
    file = weka(tmp_path, [request(0, [1]), bad, request(3, [1, 2])])
    assert [turn.turn for turn in turns(file)] == [1, 2]
    (problem,) = problems(file)
    assert problem.where == "session.json, request 2" and told in problem.why


def test_sub_agents_end_somewhere(tmp_path: Path) -> None:
    entry: dict[str, Any] = request(0, [1])
    for _ in range(40):
        entry = {"t": 0, "type": "subagent", "requests": [entry]}
    (problem,) = problems(weka(tmp_path, [entry]))
    assert "nested too deeply" in problem.why


@pytest.mark.parametrize("text", ["", "{}", "[]", "\x00", '{"requests": 3, "block_size": 64}', "[" * 100_000])
def test_a_file_that_is_no_session(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    assert len(problems(tmp_path)) == 1 and turns(tmp_path) == []


def test_what_is_no_trace_is_told(tmp_path: Path) -> None:
    for path, told in ((tmp_path, "holds no sessions"), (tmp_path / "x.txt", "no such trace")):
        with pytest.raises(RecordError, match=told):
            format_of(path)
    (tmp_path / "x.txt").touch()
    with pytest.raises(RecordError, match="not a trace by its name"):
        format_of(tmp_path / "x.txt")


LINES = [
    json.dumps({"timestamp": 100 * n, "input_length": 512 * n, "output_length": n, "hash_ids": list(range(n))}).encode()
    for n in range(1, 7)
]
ROWS = [f"{n % 3},{n},{n // 3},{0 if n < 3 else 30},{10 + n},20,1".encode() for n in range(9)]


def mutated(lines: list[bytes]) -> st.SearchStrategy[list[bytes]]:
    """Lines in another order, cut, and with bytes changed."""
    cut = st.tuples(st.sampled_from(lines), st.integers(0, 120)).map(lambda pair: pair[0][: pair[1]])
    changed = st.tuples(st.sampled_from(lines), st.integers(0, 200), st.integers(0, 255)).map(
        lambda t: t[0][: t[1]] + bytes([t[2]]) + t[0][t[1] + 1 :]
    )
    kept = st.lists(st.one_of(st.sampled_from(lines), cut, changed, st.binary(max_size=40)), max_size=12)
    return kept.map(lambda found: [line.replace(b"\n", b" ") for line in found])


@given(mutated(LINES))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
def test_every_line_is_a_turn_or_malformed(tmp_path: Path, lines: list[bytes]) -> None:
    file = tmp_path / "fuzz.jsonl"
    file.write_bytes(b"\n".join(lines))
    found = describe(read_trace(file))
    # Only a line feed ends a line; what is white space alone is none.
    assert found.turns + found.malformed == sum(bool(line.strip()) for line in lines)


@given(mutated(ROWS))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
def test_every_row_is_a_turn_or_malformed(tmp_path: Path, lines: list[bytes]) -> None:
    file = tracelab(tmp_path, *[])
    file.write_bytes(file.read_bytes() + b"\n".join(lines))
    found = describe(read_trace(file))
    assert found.turns + found.malformed == sum(bool(line.strip()) for line in lines)


@given(st.binary(max_size=400), st.integers(0, 2000), st.integers(0, 2000))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
def test_a_mangled_session_file_is_no_traceback(tmp_path: Path, put: bytes, first: int, last: int) -> None:
    whole = weka(tmp_path, [request(n, list(range(n + 1)), think_time=1.0) for n in range(8)]).read_bytes()
    (tmp_path / "session.json").write_bytes(whole[:first] + put + whole[last:])
    found = describe(read_trace(tmp_path))
    assert found.turns + found.malformed >= 1


def test_the_session_table_has_a_row_a_turn(tmp_path: Path) -> None:
    found = turns(mooncake(tmp_path, (0, 512, [3]), (1, 1024, [3, 4])))
    table = table_of(found)
    assert table.schema == SESSION_TABLE and table.to_pylist()[0]["blocks"] == [3] and len(table) == 2


@needs_samples
@pytest.mark.parametrize(
    ("name", "counts", "fraction"),
    [
        ("weka", (47, 1087), 0.913),
        ("mooncake_conversation.jsonl", (8101, 12_031), 0.374),
        ("tracelab_multi_session_large.csv", (48, 303), 0.772),
    ],
)
def test_the_public_samples(name: str, counts: tuple[int, int], fraction: float) -> None:
    found = describe(read_trace(SAMPLES / name))
    assert (found.sessions, found.turns, found.malformed) == (*counts, 0)
    assert found.infinite_cache_hit_fraction == pytest.approx(fraction, abs=5e-4)


def test_a_trace_becomes_a_table_and_the_same_bytes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tracelab(tmp_path, *(f"s{i % 3},{1000 * i},{i // 3},0,{100 + i},5,2000" for i in range(11)))
    for name in ("one", "again"):
        done = command(tmp_path, "workload", "table", str(file), f"{name}.parquet")
        assert (done.code, done.out) == (0, f"11 turns of 3 sessions: {name}.parquet\n"), done.text
    written = (tmp_path / "one.parquet").read_bytes()
    assert written == (tmp_path / "again.parquet").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"trace.csv", "one.parquet", "again.parquet"}
    table = pq.read_table(tmp_path / "one.parquet")
    assert table.schema.equals(SESSION_TABLE) and table.equals(table_of(turns(file)))
    rows = [TraceTurn(**{**row, "blocks": tuple(row["blocks"])}) for row in table.to_pylist()]
    assert rows == turns(file)
    assert pd.read_parquet(tmp_path / "one.parquet")["prompt_tokens"].tolist() == [100 + i for i in range(11)]


@pytest.mark.parametrize(("batch_turns", "batch_blocks", "groups"), [(4, 10**6, 3), (10**6, 12, 6)])
def test_a_table_is_written_while_the_trace_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_turns: int, batch_blocks: int, groups: int
) -> None:
    monkeypatch.setattr(trace_table, "BATCH_TURNS", batch_turns)
    monkeypatch.setattr(trace_table, "BATCH_BLOCKS", batch_blocks)
    file = tracelab(tmp_path, *(f"s{i},{1000 * i},0,0,100,5,0" for i in range(11)))
    ahead: list[int] = []
    write, unwritten = pq.ParquetWriter.write_table, 0

    def counted(writer: Any, table: Any) -> None:
        nonlocal unwritten
        unwritten -= table.num_rows
        write(writer, table)

    def read() -> Iterator[Any]:
        nonlocal unwritten
        for item in read_trace(file):
            ahead.append(unwritten)
            unwritten += 1
            yield item

    monkeypatch.setattr(pq.ParquetWriter, "write_table", counted)
    assert write_table(read(), tmp_path / "out.parquet").turns == 11
    assert max(ahead) < 4 and unwritten == 0
    assert pq.read_metadata(tmp_path / "out.parquet").num_row_groups == groups
    assert pq.read_table(tmp_path / "out.parquet").equals(table_of(turns(file)))


@pytest.mark.parametrize("there", ["file", "folder", "broken link"])
def test_a_table_replaces_nothing(tmp_path: Path, there: str) -> None:
    file, out = mooncake(tmp_path, (0, 700, [0, 1])), tmp_path / "out.parquet"
    {
        "file": lambda: out.write_text("thesis"),
        "folder": lambda: out.mkdir(),
        "broken link": lambda: out.symlink_to("nowhere"),
    }[there]()
    done = command(tmp_path, "workload", "table", str(file), "out.parquet")
    assert done.code == 2 and "is there already" in done.err
    assert len(list(tmp_path.iterdir())) == 2 and (there != "file" or out.read_text() == "thesis")


@pytest.mark.parametrize("links", [True, False])
def test_a_table_replaces_nothing_that_came_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    file, out = mooncake(tmp_path, (0, 700, [0, 1])), tmp_path / "out.parquet"

    def no_link(*_: object) -> None:
        raise PermissionError

    if not links:
        monkeypatch.setattr(os, "link", no_link)

    def read() -> Iterator[Any]:
        yield from read_trace(file)
        out.write_text("thesis")

    with pytest.raises(StudyError, match="is there already"):
        write_table(read(), out)
    assert out.read_text() == "thesis" and len(list(tmp_path.iterdir())) == 2
    out.unlink()
    assert write_table(read_trace(file), out).turns == 1 and len(list(tmp_path.iterdir())) == 2


def test_a_table_tells_what_it_could_not_read(tmp_path: Path) -> None:
    file = mooncake(tmp_path, (0, 700, [0, 1]))
    with file.open("a") as stream:
        stream.write("{\n" * 22)
    done = command(tmp_path, "workload", "table", str(file), "out.parquet")
    assert done.code == 1 and "malformed: 22" in done.out and "and 2 more" in done.out
    assert f"{file.name}:2:" in done.out and pq.read_table(tmp_path / "out.parquet").num_rows == 1
    file.write_text("{\n")
    done = command(tmp_path, "workload", "table", str(file), "none.parquet")
    assert done.code == 2 and "no turn was read" in done.out and f"{file.name}:1:" in done.out
    done = command(tmp_path, "workload", "table", str(file), "nowhere/none.parquet")
    assert done.code == 2 and "no such folder" in done.err
    assert {path.name for path in tmp_path.iterdir()} == {file.name, "out.parquet"}


def test_a_table_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def read() -> Iterator[Any]:
        yield from read_trace(mooncake(tmp_path, (0, 700, [0, 1])))
        raise RecordError("no more")

    with pytest.raises(RecordError):
        write_table(read(), tmp_path / "out.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["trace.jsonl"]


def test_describe_tells_what_it_could_not_read(tmp_path: Path) -> None:
    file = mooncake(tmp_path, (0, 512, [3]), (1, 1024, [3, 4]))
    done = command(tmp_path, "workload", "describe", str(file), "--json")
    value = json.loads(done.out)
    assert done.code == 0 and value["malformed"] == 0 and value["turns"] == 2
    assert {"sessions", "prompt_tokens", "output_tokens", "infinite_cache_hit_fraction"} <= set(value)
    file.write_text(file.read_text() + "{\x1b[2J\n")
    done = command(tmp_path, "workload", "describe", str(file))
    assert done.code == 1 and "trace.jsonl:3: " in done.out and "\x1b" not in done.out
    file.write_text("nothing\n")
    assert command(tmp_path, "workload", "describe", str(file)).code == 2
