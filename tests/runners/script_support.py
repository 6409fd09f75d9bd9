"""Session scripts made by hand, or at random, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from registry.scripted_workload import ScriptedWorkload
from registry.session_scripts import SessionScripts, read_scripts, write_scripts
from registry.traces.session_table import shared_prefix

Turn = tuple[int, int, int, list[int]]
"""Prompt tokens, output tokens, wait (us), block ids."""

STEP_US = 15_625
"""1/64 s: sums of such times are exact."""

STEMS = ([], [0], [0, 1], [0, 1, 2], [0, 3], [0, 3, 4, 5])
SHARED = 6


def file_of(sessions: Sequence[Sequence[Turn]], block_tokens: int = 4, shared: int = SHARED) -> bytes:
    """A script file; every session arrives at 0."""
    rows = []
    for turns in sessions:
        last: list[int] = []
        written: list[Any] = []
        for prompt, output, wait_us, ids in turns:
            kept = shared_prefix(ids, last)
            runs = [number for block in ids[kept:] for number in (block, 1)]
            written.append([prompt, output, wait_us, kept, runs])
            last = ids
        rows.append({"arrival_us": 0, "turns": written})
    return write_scripts(block_tokens, shared, rows)


def scripts_of(sessions: Sequence[Sequence[Turn]], block_tokens: int = 4, shared: int = SHARED) -> SessionScripts:
    """The same, read."""
    return read_scripts(file_of(sessions, block_tokens, shared), "by hand")


@st.composite
def scripted_workloads(draw: Any, block_tokens: int = 4) -> ScriptedWorkload:
    """A few sessions whose prompts share beginnings, grow and shrink."""
    fresh = SHARED
    sessions = []
    for _ in range(draw(st.integers(1, 5))):
        ids = list(draw(st.sampled_from(STEMS)))
        turns = []
        for _ in range(draw(st.integers(1, 5))):
            ids = ids[: len(ids) - draw(st.sampled_from([0, 0, 0, 1, 3]))] if len(ids) > 3 else list(ids)
            new = draw(st.integers(0, 6))
            ids = ids + list(range(fresh, fresh + new))
            fresh += new
            prompt = max(1, block_tokens * len(ids) + draw(st.integers(0, 2 * block_tokens)))
            turns.append((prompt, draw(st.integers(1, 14)), STEP_US * draw(st.integers(1, 300)), ids))
        sessions.append(turns)
    return ScriptedWorkload.following(scripts_of(sessions, block_tokens))
