"""The playground's pages as files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ledger.page.playground_pages import playground_pages
from registry.errors import TrapError


def write_pages(data: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the pages and return their paths, the contents page first; the same data
    gives the same bytes. TrapError where the folder cannot be written.
    """
    files = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in playground_pages(data).items():
            files.append(folder / name)
            files[-1].write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        what = f"the pages cannot be written: {error.strerror}"
        raise TrapError(what, where=str(folder), remedy="name a folder that you may write: --out DIR") from None
    return files
