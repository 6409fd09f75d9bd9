"""Compilation of the simulator's core, kept on disk between processes.

The core is written in the part of Python that numba compiles. The same source
runs interpreted where NUMBA_DISABLE_JIT is 1, with the same results to the
bit: no fast-math, no parallelism, and only IEEE basic operations and the
square root on floats.

numba keeps machine code by the file of each function, and does not see a
change in another file that was compiled into it. So the folder's name carries
a digest over every source file of the core: changed code is never served old.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import config

Function = TypeVar("Function", bound=Callable[..., Any])

Table = Any
"""Records of one kind: a structured array, or a list where interpreted."""

Record = Any
"""One record of a table."""

_config: Any = config
INTERPRETED = bool(_config.DISABLE_JIT)


def cache_folder() -> str:
    """Where machine code of exactly these sources is kept.

    Below NUMBA_CACHE_DIR, XDG_CACHE_HOME or ~/.cache; where that cannot be
    written, a new temporary folder of this process's own.
    """
    here = Path(__file__).resolve().parent
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted([*here.glob("*.py"), here.parent / "gate_rules.py"]):
        digest.update(path.name.encode() + path.read_bytes())
    name = f"trapkit-{digest.hexdigest()[:16]}"
    root = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    folder = Path(root) / "trapkit" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        # Machine code is unpickled: never from a place that another user could have filled.
        folder = Path(tempfile.mkdtemp(prefix="trapkit-"))
    return str(folder)


_FOLDER = cache_folder()
_njit: Any = numba.njit


def compiled(function: Function) -> Function:
    """The function compiled when first called, its machine code kept on disk.

    `_nrt=False`: the core allocates nothing, and without numba's reference
    counts on every array that is passed on it is some fifteen times as fast.
    `forceinline`: an array is passed as seven words, so a call that hands on all
    tables costs some hundred stores, and LLVM, which counts them, leaves small
    functions out of line. Everything in one function is two to three times as fast.
    """
    before = _config.CACHE_DIR
    _config.CACHE_DIR = _FOLDER
    try:
        made: Function = _njit(cache=True, _nrt=False, forceinline=True)(function)
    finally:
        _config.CACHE_DIR = before
    return made
