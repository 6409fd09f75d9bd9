"""Lines of a hostile text file: capped, numbered, read one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from registry.traces.session_table import MAX_LINE_BYTES


def lines_of(file: Path) -> Iterator[tuple[int, bytes | None]]:
    """Number (from 1) and bytes of each line without its end; None for one that
    is longer than a turn can be. Empty lines are left out.
    """
    with file.open("rb") as stream:
        number = 0
        while line := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                while line and not line.endswith(b"\n"):
                    line = stream.readline(MAX_LINE_BYTES + 1)
                yield number, None
            elif stripped := line.strip():
                yield number, stripped
