"""A sweep's folder: sweep.json, the session scripts that it names, and a lock."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from artifacts.attempt import sync
from cli.workflows.sweep_frozen import SWEEP_FILE, Sweep, differences, read_sweep
from cli.workflows.trace_scripts import scripts_from
from modelf.cells import Cell
from registry.bundle import FOLDER, bundled, scripts_beside, scripts_path, unbundled
from registry.draft_workload import Frozen, ScriptsFor, TraceSource, trace_source
from registry.errors import StudyError

PARTIAL = ".partial"


def load_sweep(folder: Path) -> Sweep:
    """The sweep of a folder; StudyError where it has none, DraftError where its
    session scripts are missing or others.
    """
    file = folder / SWEEP_FILE
    if not file.is_file():
        raise StudyError("the folder has no sweep", where=str(file), remedy="make one: trapkit sweep FILE --out DIR")
    data = file.read_bytes()
    return read_sweep(bundled(data, scripts_beside(data, lambda path: _read(folder / path))), str(file))


def prepare(out: Path, sweep: Sweep, data: bytes) -> None:
    """Freeze a new sweep in its folder, or see that it is the one there; `data`
    are its bytes, bundled with its scripts.
    """
    file, (own, scripts) = out / SWEEP_FILE, unbundled(data)
    if file.is_file():
        if (there := file.read_bytes()) != own:
            raise StudyError(
                "the folder holds another sweep",
                where=str(file),
                value=", ".join(differences(there, own)),
                remedy="name another folder, or repeat the command that this one was begun with",
            )
        load_sweep(out)
        return
    frozen = sweep.registration.draft.session_scripts
    path = scripts_path(frozen.scripts.sha256) if frozen else None
    if out.exists() and not out.is_dir():
        raise StudyError("a file stands in the folder's place", where=str(out), remedy="name another folder")
    if out.is_dir() and _holds_others(out, {FOLDER, path} if path else set()):
        raise StudyError("the folder is not empty, and holds no sweep", where=str(out), remedy="name another folder")
    # sweep.json comes last: it says that the scripts are there.
    if path and scripts is not None:
        _write_whole(out / path, scripts)
    _write_whole(file, own)


def known_scripts(out: Path, file: Path) -> ScriptsFor:
    """The scripts of a rule file's trace: those frozen in the sweep's folder, if
    they are of that very trace, so that nobody needs it to go on; else the trace's.
    """
    root = file.resolve().parent.parent
    if not (out / SWEEP_FILE).is_file():
        return scripts_from(root)

    def known(source: TraceSource, cell: Cell) -> Frozen:
        registration = load_sweep(out).registration
        frozen, there = (
            registration.draft.session_scripts,
            trace_source(registration.draft.source["design"]["workload"]),
        )
        same = there is not None and replace(there, replayed=source.replayed) == source and registration.cell == cell
        return frozen if frozen and same else scripts_from(root)(source, cell)

    return known


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Hold the sweep's lock: two programs would make every shard twice."""
    with (out / SWEEP_FILE).open("r+b") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StudyError("another program is making this sweep", where=str(out), remedy="wait for it") from None
        except OSError:
            pass  # a file system without locks: shards are whole there all the same
        yield


def _read(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


def _holds_others(out: Path, own: set[str]) -> bool:
    """Whether anything stands there but what a killed beginning may have left."""
    names = ((path.relative_to(out).as_posix(), path.name) for path in out.rglob("*"))
    return any(place not in own and not name.endswith(PARTIAL) for place, name in names)


def _write_whole(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}{PARTIAL}")
    partial.write_bytes(data)
    sync(partial)
    partial.replace(file)
