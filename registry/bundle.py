"""A registration with the session scripts that it names, as one value between processes.

Canonical JSON has no line break, so the scripts follow the registration on a line of
their own. In the study they are two files; the registration's digest is of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from modelf.cells import Cell
from registry.canonical import sha256_hex
from registry.draft_workload import Frozen, ScriptsFor, TraceSource
from registry.errors import DraftError
from registry.session_scripts import read_scripts
from registry.traces.scripting import block_tokens_of

FOLDER = "workloads"
_NAMED = re.compile(rb'"session_scripts":\{[^{}]*"sha256":"([0-9a-f]{64})"')


def scripts_path(sha256: str) -> str:
    """Place of a script file in a study."""
    return f"{FOLDER}/{sha256}.json"


def bundled(registration: bytes, scripts: bytes | None) -> bytes:
    """Both as one value; the registration alone where it names no scripts."""
    return registration if scripts is None else registration + b"\n" + scripts


def unbundled(data: bytes) -> tuple[bytes, bytes | None]:
    """The registration's bytes, and those of the scripts if they are there."""
    registration, line_break, scripts = data.partition(b"\n")
    return registration, scripts if line_break else None


def scripts_beside(registration: bytes | None, read: Callable[[str], bytes | None]) -> bytes | None:
    """The scripts that unread bytes seem to name, by `read` of a path in their
    commit; whether they are those is decided where the registration is read.
    """
    found = _NAMED.search(registration or b"")
    return read(scripts_path(found[1].decode())) if found else None


def frozen_scripts(facts: dict[str, Any], data: bytes | None) -> ScriptsFor:
    """The scripts of a registration: `facts` as it has them, `data` the file's bytes.

    Where they are read: DraftError if they are missing, others, or not as told.
    """
    counts = {key: count for key, count in facts.items() if key not in ("sha256", "block_tokens")}

    def frozen(trace: TraceSource, cell: Cell) -> Frozen:
        place = scripts_path(facts["sha256"])
        if data is None:
            raise DraftError("the session scripts that the registration names are not there", where=place)
        if sha256_hex(data) != facts["sha256"]:
            raise DraftError("the session scripts are not those that the registration names", where=place)
        scripts = read_scripts(data, place)
        told = (len(scripts.turns), len(scripts.wait_us), scripts.block_tokens, scripts.block_tokens)
        wanted = (facts["sessions"], facts["turns"], facts["block_tokens"], block_tokens_of(cell.cache_block_tokens))
        if told != wanted or trace.sessions != facts["sessions"]:
            raise DraftError("the session scripts are not what the registration says of them", where=place, value=told)
        return Frozen(data, scripts, counts)

    return frozen
