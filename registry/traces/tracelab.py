"""TraceLab traces: a CSV with a row a round.

`session_id, arrival_time` (of the session, ms), `round_idx` from 0, `prefix_len`,
`input_len`, `output_len` (tokens), `tool_wait_after_ms`. A prompt is the prefix, which
the session had before, and the new input; the wait after a round comes before the next.

The trace has no block ids: a session's own are made, 16 tokens each. A block keeps
its id while the prefix covers it whole and it stood in a prompt before; what the
engine generated was in none, so it is counted as new.
"""

from __future__ import annotations

import csv
import io
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from registry.plain_text import plain
from registry.traces.lines import lines_of
from registry.traces.session_table import MAX_SECONDS, MAX_TOKENS, Malformed, Oddity, Reading, TraceTurn

BLOCK_TOKENS = 16
COLUMNS = ("session_id", "arrival_time", "round_idx", "prefix_len", "input_len", "output_len", "tool_wait_after_ms")
MOST_OPEN = 100_000
"""So many sessions are remembered; a row of one that was forgotten begins a new one."""


@dataclass(slots=True)
class _Session:
    """What the next round needs: blocks of the last prompt, the context's tokens, the wait."""

    scope: int
    name: str
    round: int
    turn: int
    blocks: tuple[int, ...]
    made: int
    context_tokens: int
    wait_s: float


def read(file: Path) -> Reading:
    """The turns of a trace; TraceTurn.session is the CSV's id."""
    lines = lines_of(file)
    _, head = next(lines, (1, b""))
    names = _cells(head or b"")
    if missing := [name for name in COLUMNS if name not in names]:
        yield Malformed(f"{file.name}:1", f"columns are missing: {', '.join(missing)}")
        return
    places = [names.index(name) for name in COLUMNS]
    open_sessions: OrderedDict[str, _Session] = OrderedDict()
    seen = 0
    for number, line in lines:
        row = _row(line, places)
        if isinstance(row, str):
            yield Malformed(f"{file.name}:{number}", row)
            continue
        identity, (arrival, round_index, prefix, new, output, wait) = row
        last = open_sessions.pop(identity, None)
        if last is None and round_index:
            yield Oddity("forgotten_sessions")
        if last and round_index != last.round + 1:
            yield Malformed(f"{file.name}:{number}", f"round {round_index:.0f} follows round {last.round}")
            open_sessions[identity] = last
            continue
        if last and prefix > last.context_tokens:
            yield Malformed(f"{file.name}:{number}", "the prefix is longer than the session's context")
            open_sessions[identity] = last
            continue
        if last is None:
            seen += 1
        elif prefix < last.context_tokens:
            yield Oddity("context_shrinks")
        turn, state = _turn(identity, last, seen, int(round_index), int(prefix), int(new), int(output), wait, arrival)
        open_sessions[identity] = state
        if len(open_sessions) > MOST_OPEN:
            open_sessions.popitem(last=False)
        yield turn


def _turn(
    identity: str,
    last: _Session | None,
    seen: int,
    round_index: int,
    prefix: int,
    new: int,
    output: int,
    wait_ms: float,
    arrival_ms: float,
) -> tuple[TraceTurn, _Session]:
    prompt = prefix + new
    kept = last.blocks[: prefix // BLOCK_TOKENS] if last else ()
    made = last.made if last else 0
    fresh = prompt // BLOCK_TOKENS - len(kept)
    blocks = kept + tuple(range(made, made + fresh))
    name = identity if last is None or last.name == identity else last.name
    if last is None and round_index:
        name = f"{identity}@{seen}"
    state = _Session(
        last.scope if last else seen,
        name,
        round_index,
        last.turn + 1 if last else 1,
        blocks,
        made + fresh,
        prompt + output,
        wait_ms / 1000,
    )
    turn = TraceTurn(
        name,
        None,
        state.turn,
        None if last else arrival_ms / 1000,
        last.wait_s if last else None,
        True,
        prompt,
        output,
        blocks,
        len(kept),
        BLOCK_TOKENS,
        state.scope,
    )
    return turn, state


def _cells(line: bytes) -> list[str]:
    return next(csv.reader(io.StringIO(line.decode("utf-8", "replace"))), [])


def _row(line: bytes | None, places: list[int]) -> tuple[str, tuple[float, ...]] | str:
    """The session's id and the other columns as numbers, or why there are none."""
    if line is None:
        return "the line is too long"
    try:
        cells = _cells(line)
        identity, *texts = [cells[place] for place in places]
        values = tuple(_number(text) for text in texts)
    except (IndexError, ValueError, csv.Error) as error:
        return plain(f"not a row of {len(COLUMNS)} columns: {error}", 200)
    limits = (MAX_SECONDS * 1000, MAX_TOKENS, MAX_TOKENS, MAX_TOKENS, MAX_TOKENS, MAX_SECONDS * 1000)
    for name, value, limit in zip(COLUMNS[1:], values, limits, strict=True):
        if not 0 <= value <= limit:
            return f"{name} is {value:g}"
        if name in COLUMNS[2:6] and value != int(value):
            return f"{name} is no whole number"
    if not identity.strip():
        return "session_id is empty"
    return plain(identity, 100), values


def _number(text: str) -> float:
    value = float(text)
    if value != value:
        raise ValueError("NaN")
    return value
