"""Session scripts from the trace that a rule file names."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from modelf.cells import Cell
from registry.draft_workload import Frozen, ScriptsFor, TraceSource
from registry.errors import StudyError
from registry.session_scripts import read_scripts
from registry.traces.digests import trace_sha256
from registry.traces.formats import format_of, read_trace
from registry.traces.scripting import block_tokens_of, script_trace
from registry.traces.weka import files_of


def scripts_from(root: Path) -> ScriptsFor:
    """Scripts of traces whose files are named from `root`, the study's folder."""

    def made(source: TraceSource, cell: Cell) -> Frozen:
        return _made(root / Path(source.file).expanduser(), source, cell.cache_block_tokens, cell.pool_tokens)

    return made


@lru_cache(maxsize=4)
def _made(path: Path, source: TraceSource, cache_block_tokens: int, pool_tokens: int) -> Frozen:
    if not path.exists():
        raise StudyError("no such trace", where=str(path), remedy="put it there, or name another file in the rule file")
    found = trace_sha256(path)
    if found != source.sha256:
        raise StudyError(
            "the trace is not the one that the rule file names",
            where=str(path),
            value=found,
            remedy="take the trace with the named sha256, or write this one into the rule file",
        )
    _check_clock(path, source)
    made = script_trace(
        lambda: read_trace(path, source.kind),
        source.scaling,
        block_tokens_of(cache_block_tokens),
        pool_tokens,
        source.sessions,
        source.seed,
    )
    counts = {
        "sessions": made.sessions,
        "turns": made.turns,
        "sessions_read": made.sessions_read,
        "excluded": made.excluded,
        "malformed": made.malformed,
    }
    return Frozen(made.data, read_scripts(made.data, str(path)), counts)


def _check_clock(path: Path, source: TraceSource) -> None:
    """StudyError where sessions shall be replayed that have no clock in common."""
    if source.replayed and (source.kind or format_of(path)) == "weka" and len(files_of(path)) > 1:
        raise StudyError(
            "the sessions of this trace have no clock in common: the times of a Weka file count from its own beginning",
            where=str(path),
            value="arrivals: replayed",
            remedy="arrivals: re-timed (the plan draws Poisson arrivals at each rate)",
        )
