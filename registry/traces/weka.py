"""Weka traces (kv-cache-tester): one JSON file a session, or a folder of them.

A request has `t` (s from the session's start), `in` and `out` (tokens), `hash_ids` of
the prompt's whole blocks of `block_size` tokens, and may have `api_time` (how long the
answer took) and `think_time` (how long the client then waited: before this request).
Ids are of one file where `hash_id_scope` is local, else of the whole trace. An entry of
type `subagent` holds the requests of a session of its own, started by this one.

A think time runs from the last answer whose end is known; a request after one without
`api_time`, or that began before that answer's end, waits for the difference of `t`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from registry.plain_text import plain
from registry.traces.mooncake import BlockIds, Count
from registry.traces.session_table import MAX_SECONDS, Malformed, Oddity, Read, Reading, TraceTurn, shared_prefix

MAX_FILE_BYTES = 2**30
MAX_NESTED = 4
Seconds = Annotated[float, msgspec.Meta(ge=0, le=MAX_SECONDS)]


class Head(msgspec.Struct):
    """A file; its requests are decoded one by one, so that one bad one costs one."""

    requests: list[msgspec.Raw]
    block_size: Annotated[int, msgspec.Meta(ge=1, le=65536)]
    id: str = ""
    hash_id_scope: str = "local"


class Entry(msgspec.Struct, rename={"in_": "in"}):
    """A request, or a sub-agent with requests of its own."""

    t: Seconds = 0.0
    type: str = ""
    in_: Count | None = None
    out: Count | None = None
    hash_ids: BlockIds | None = None
    api_time: Seconds | None = None
    think_time: Seconds | None = None
    requests: list[msgspec.Raw] | None = None


def files_of(path: Path) -> list[Path]:
    """The files of a trace, by name."""
    return sorted(path.glob("*.json")) if path.is_dir() else [path]


def read(path: Path) -> Reading:
    """The turns of a session, or of all sessions of a folder."""
    for number, file in enumerate(files_of(path), 1):
        yield from _read_file(file, number)


def _read_file(file: Path, number: int) -> Iterator[Read]:
    if file.is_symlink() or not file.is_file():
        yield Malformed(file.name, "not a regular file")
        return
    if file.stat().st_size > MAX_FILE_BYTES:
        yield Malformed(file.name, "the file is too large for one session")
        return
    try:
        head = msgspec.json.decode(file.read_bytes(), type=Head)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        yield Malformed(file.name, plain(error, 200))
        return
    scope = number if head.hash_id_scope == "local" else 0
    name = f"{plain(head.id, 80) or 'session'}@{number}"
    yield from _session(head.requests, file.name, name, None, scope, head.block_size, 0.0)


def _session(
    entries: list[msgspec.Raw], where: str, name: str, parent: str | None, scope: int, block: int, began_s: float
) -> Iterator[Read]:
    turn = agents = 0
    last: Entry | None = None
    last_blocks: tuple[int, ...] = ()
    for place, raw in enumerate(entries, 1):
        at = f"{where}, request {place}"
        entry = _entry(raw, block)
        if isinstance(entry, str):
            yield Malformed(at, entry)
        elif entry.requests is not None:
            agents += 1
            if name.count("/") >= MAX_NESTED:
                yield Malformed(at, "sub-agents are nested too deeply")
                continue
            inner = f"{name}/{agents}"
            yield from _session(entry.requests, at, inner, name, scope, block, began_s + entry.t)
        else:
            turn += 1
            wait_s, measured, oddity = _wait(entry, last)
            if oddity:
                yield Oddity(oddity)
            assert entry.in_ is not None and entry.out is not None and entry.hash_ids is not None
            blocks = tuple(entry.hash_ids[: entry.in_ // block])
            kept = shared_prefix(blocks, last_blocks)
            if kept < len(last_blocks):
                yield Oddity("context_shrinks")
            yield TraceTurn(
                name,
                parent,
                turn,
                began_s + entry.t if turn == 1 else None,
                wait_s,
                measured,
                entry.in_,
                entry.out,
                blocks,
                kept,
                block,
                scope,
            )
            last, last_blocks = entry, blocks


def _wait(entry: Entry, last: Entry | None) -> tuple[float | None, bool, str | None]:
    """The wait before a request, whether the trace says it, and what is odd about it."""
    if last is None:
        return None, True, None
    difference = entry.t - last.t
    if difference < 0:
        return 0.0, False, "clock_resets"
    if last.api_time is not None and entry.think_time is not None:
        return entry.think_time, True, None
    if last.api_time is not None and difference >= last.api_time:
        return difference - last.api_time, True, None
    return difference, False, "overlapping_turns"


def _entry(raw: msgspec.Raw, block: int) -> Entry | str:
    try:
        entry = msgspec.json.decode(raw, type=Entry)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return plain(error, 200)
    if entry.requests is not None:
        return entry
    if entry.in_ is None or entry.out is None or entry.hash_ids is None:
        return "a request without in, out or hash_ids"
    if len(entry.hash_ids) < entry.in_ // block:
        return f"{len(entry.hash_ids)} block ids for {entry.in_} tokens"
    return entry
