"""Which reader a trace needs, by its name and form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from registry.errors import RecordError
from registry.traces import mooncake, tracelab, weka
from registry.traces.session_table import Reading

READERS: dict[str, Callable[[Path], Reading]] = {
    "weka": weka.read,
    "mooncake": mooncake.read,
    "tracelab": tracelab.read,
}
_BY_SUFFIX = {".json": "weka", ".jsonl": "mooncake", ".csv": "tracelab"}


def format_of(path: Path) -> str:
    """The format of a file, or of a folder of session files; RecordError for neither."""
    if path.is_dir():
        if any(path.glob("*.json")):
            return "weka"
        raise RecordError("the folder holds no sessions", where=str(path), remedy="a folder of <session>.json files")
    if not path.is_file():
        raise RecordError("no such trace", where=str(path))
    if path.suffix not in _BY_SUFFIX:
        raise RecordError(
            "not a trace by its name",
            where=str(path),
            remedy=".json: one session (Weka); .jsonl: Mooncake; .csv: TraceLab; or name it with --format",
        )
    return _BY_SUFFIX[path.suffix]


def read_trace(path: Path, kind: str | None = None) -> Reading:
    """The turns of a trace, in its own order."""
    return READERS[kind or format_of(path)](path)
