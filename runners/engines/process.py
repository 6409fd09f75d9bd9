"""An engine's process, from outside: started under a keeper, ended whole."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from registry.engine_setup import EngineSetup
from registry.errors import EngineError
from registry.plain_text import plain

GRACE_S = 15.0
"""How long an engine may take to end when a run is over."""

BROKEN_GRACE_S = 2.0
"""And when its run was given up: then nothing of it is wanted any more."""

LOG_FILE = "engine.log"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_TAIL_BYTES = 3000
_OWN_SECRETS = ("TRAP_", "GITHUB_TOKEN", "GH_TOKEN")
"""How the names of variables begin that no other program is given."""


class EngineProcess:
    """A started engine; its output goes to `engine.log` in `folder`.

    The log is locked for as long as any process of the engine has it open, so
    that others can wait for the last of them (`wait_until_gone`).
    """

    def __init__(self, command: list[str], environment: dict[str, str], folder: Path) -> None:
        self._log = folder / LOG_FILE
        with self._log.open("wb") as log:
            # A file system without locks has nothing to wait for.
            with suppress(OSError):
                fcntl.flock(log, fcntl.LOCK_EX)
            self._keeper = subprocess.Popen(
                [sys.executable, "-P", "-m", "runners.engines.keeper", *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=folder,
                start_new_session=True,
            )

    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._keeper.poll()

    def tail(self) -> str:
        """The last lines of its log, safe to print."""
        return log_tail(self._log)

    def stop(self, grace_s: float = GRACE_S) -> None:
        """End it and everything that it started, by force after `grace_s`;
        returns when nothing is left.
        """
        assert self._keeper.stdin is not None
        if self._keeper.stdin.closed:
            return
        with suppress(OSError):
            self._keeper.stdin.write(b"stop %g\n" % grace_s)
            self._keeper.stdin.flush()
        try:
            self._keeper.wait(2 * grace_s)
        except subprocess.TimeoutExpired:
            with suppress(OSError):
                self._keeper.stdin.close()
            self._keeper.wait()
        with suppress(OSError):
            self._keeper.stdin.close()


def wait_until_gone(folder: Path, timeout_s: float) -> bool:
    """Wait for the last process of the engine that logs to `folder`; False
    where it still lives after `timeout_s`.
    """
    until_s = time.monotonic() + timeout_s
    try:
        log = (folder / LOG_FILE).open("rb")
    except OSError:
        return True
    with log:
        while True:
            try:
                fcntl.flock(log, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                if time.monotonic() > until_s:
                    return False
            except OSError:
                return True
            time.sleep(0.05)


def log_tail(path: Path, lines: int = 8) -> str:
    """The last lines of a log file, safe to print; empty where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    found = [line for line in text.splitlines() if line.strip()][-lines:]
    return "\n".join(plain(line, 200) for line in found)


def program(setup: EngineSetup, environment: Mapping[str, str]) -> list[str]:
    """The setup's command with `${NAME}` replaced; EngineError for a variable
    that is not set.
    """
    return [_VARIABLE.sub(lambda match: _value(match[1], environment), word) for word in setup.command]


def _value(name: str, environment: Mapping[str, str]) -> str:
    if not environment.get(name):
        raise EngineError(
            "the command of the engine names a variable that is not set",
            where="study.yaml, engines",
            value=name,
            remedy=f"export {name}=..., for example the Python of the engine's environment",
        )
    return environment[name]


def engine_environment(setup: EngineSetup) -> dict[str, str]:
    """The variables of this process without the project's own, and the setup's."""
    return {**environment_without_secrets(), **dict(setup.environment)}


def environment_without_secrets() -> dict[str, str]:
    """The variables of this process that other programs may have."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_OWN_SECRETS)}


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
