"""A small trace, and the small rule file with it as workload."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from modelf.cells import Cell
from registry.draft_workload import Frozen, TraceSource
from registry.session_scripts import read_scripts, write_scripts
from registry.traces.digests import trace_sha256
from registry.traces.scripting import block_tokens_of
from tests.support import SMALL_RULE, WORKLOAD


def write_trace(folder: Path) -> Path:
    """Twelve sessions of one to four turns; all share a block, each pair another one."""
    rows, ids = [], 100
    for session in range(12):
        blocks = [0, 1 + session % 2, *range(ids, ids + 3)]
        for turn in range(1 + session % 4):
            at_ms = 1000.0 * session + 9000.0 * turn
            length = 512 * len(blocks) - 100 * turn
            rows.append({"timestamp": at_ms, "input_length": length, "output_length": 30 + session, "hash_ids": blocks})
            blocks = [*blocks[: length // 512], ids + 10 + turn, ids + 20 + turn]
        ids += 100
    path = folder / "trace.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in sorted(rows, key=lambda row: row["timestamp"])))
    return path


def rule_of(trace: Path, **more: Any) -> str:
    """The small rule file with ten of the trace's sessions, and `more` of its fields."""
    fields = {"file": str(trace), "sha256": trace_sha256(trace), "sample": {"sessions": 10, "seed": 3}} | more
    return SMALL_RULE.replace(WORKLOAD, f"\n  workload: {json.dumps({'trace': fields})}\n")


def made_scripts(source: TraceSource, cell: Cell) -> Frozen:
    """Scripts in the place of a trace that is not here: as many sessions as a rule file wants, of two turns."""
    block = block_tokens_of(cell.cache_block_tokens)
    turns = [[2 * block, 3, 0, 0, [0, 2]], [3 * block, 3, 10**6, 2, [2, 1]]]
    rows = []
    for session in range(source.sessions):
        own = [[*turn[:4], [turn[4][0] + 3 * session, turn[4][1]]] for turn in turns]
        rows.append({"arrival_us": session * 10**6, "turns": own})
    data = write_scripts(block, 0, rows)
    return Frozen(data, read_scripts(data, "made"), {"sessions": source.sessions, "turns": 2 * source.sessions})
