"""git as a program that reads what nobody trusts.

Every call has an argument list, an environment without anybody's
configuration, no standard input, a time limit and a limit on what it prints.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from registry.errors import CapExceeded, StudyError

MAX_OUTPUT_BYTES = 268_435_456
_TIMEOUT_S = 120
GUARDS = tuple(
    part
    for setting in (
        "protocol.allow=never",
        "protocol.file.allow=always",
        "protocol.https.allow=always",
        "core.fsmonitor=false",
        "core.hooksPath=/dev/null",
        "core.commitGraph=false",
        "fetch.fsckObjects=true",
        "gc.auto=0",
        "safe.directory=*",
    )
    for part in ("-c", setting)
)


@dataclass(frozen=True)
class Done:
    """What one git command came to: exit code and standard output."""

    returncode: int
    stdout: bytes


def guarded_environment() -> dict[str, str]:
    """An environment in which git reads no configuration but its own."""
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR", "SYSTEMROOT") if key in os.environ}
    return kept | {
        "LC_ALL": "C",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "GIT_OPTIONAL_LOCKS": "0",
    }


def run_git(arguments: list[str], cwd: Path, *, check: bool = True) -> Done:
    """One guarded git command; StudyError with git's words where it fails,
    CapExceeded where it takes or prints too much.
    """
    with tempfile.TemporaryFile() as printed:
        try:
            done = subprocess.run(
                ["git", *GUARDS, *arguments],
                cwd=cwd,
                env=guarded_environment(),
                stdout=printed,
                stderr=subprocess.PIPE,
                timeout=_TIMEOUT_S,
                stdin=subprocess.DEVNULL,
            )
        except FileNotFoundError:
            raise StudyError("git is not installed", remedy="install git 2.34 or newer") from None
        except subprocess.TimeoutExpired:
            raise CapExceeded(f"git {arguments[0]} took over {_TIMEOUT_S} s") from None
        if check and done.returncode != 0:
            words = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise StudyError(f"git {arguments[0]} failed: {words[-1] if words else done.returncode}")
        if printed.seek(0, os.SEEK_END) > MAX_OUTPUT_BYTES:
            raise CapExceeded(f"git {arguments[0]} printed too much", value=printed.tell())
        printed.seek(0)
        return Done(done.returncode, printed.read())
