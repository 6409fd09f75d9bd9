"""Files that an author handed in, read so that none leads elsewhere."""

from __future__ import annotations

from pathlib import Path

from registry.errors import CapExceeded, RecordError


def short(value: object) -> str:
    """The first line of something hostile, cut to a line's length."""
    return (str(value).splitlines() or [""])[0][:200]


def bytes_inside(folder: Path, name: str, cap: int) -> bytes:
    """A regular file directly in `folder`; links out of it are refused."""
    path = folder / name
    if path.is_symlink() or folder.resolve() != folder.absolute():
        raise RecordError("a path leaves the study", where=str(path), remedy="no symbolic links among run files")
    if not path.is_file():
        raise RecordError(f"{name} is missing", where=str(folder))
    if path.stat().st_size > cap:
        raise CapExceeded("the file is too large", where=str(path), value=path.stat().st_size)
    return path.read_bytes()
