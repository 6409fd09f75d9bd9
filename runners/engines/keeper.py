"""Keeps one engine, and ends it with everything that it started.

A program of its own between a run and its engine: when the run dies, however
it dies, the pipe to this program's standard input closes, and every process
below it is killed. Orphans of the engine come to it (Linux: a subreaper), so
that one which left the engine's process group is found too.

`python -m runners.engines.keeper PROGRAM [ARGUMENT ...]`
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LOOK_S = 0.1
_AUTOGROUP = Path("/proc/self/autogroup")
_NICE = 5
"""Of the engine's session (Linux, sched(7), autogroups): where it spins on every
core, the load generator must still be on time. On free cores it costs nothing."""

_STOP = b"stop "


def main(command: list[str]) -> int:
    """Run `command` until it ends or the owner says so; its exit code, 128
    and the signal's number where a signal ended it.

    `stop S` on standard input asks it to end within S seconds; a closed input
    means that the owner is dead, and kills it. Its temporary files go with it:
    engines leave their sockets there.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # A short name: a socket's whole path has about 100 bytes.
    with tempfile.TemporaryDirectory(prefix="trap-", ignore_cleanup_errors=True) as scratch:
        return _keep(command, {**os.environ, "TMPDIR": scratch})


def _keep(command: list[str], environment: dict[str, str]) -> int:
    engine = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
        preexec_fn=_before_engine,
        close_fds=True,
    )
    while engine.poll() is None:
        ready, _, _ = select.select([sys.stdin], [], [], _LOOK_S)
        if ready:
            asked = os.read(sys.stdin.fileno(), 100)
            if asked.startswith(_STOP):
                _ask_to_end(engine, float(asked.removeprefix(_STOP)))
            break
    code = _kill_all(engine)
    return code if code >= 0 else 128 - code


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _before_engine() -> None:
    # What is ignored here would be ignored by the engine and all its children.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with suppress(OSError):
        _AUTOGROUP.write_text(str(_NICE))


def _ask_to_end(engine: subprocess.Popen[bytes], grace_s: float) -> None:
    with suppress(ProcessLookupError):
        os.killpg(engine.pid, signal.SIGTERM)
    for process in _below():
        # Who left the engine's group is asked, too; nobody would wait for it in vain.
        with suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) != engine.pid:
                process.terminate()
    until_s = time.monotonic() + grace_s
    while time.monotonic() < until_s and (engine.poll() is None or _below()):
        time.sleep(_LOOK_S)
        _reap_orphans(engine)


def _below() -> list[psutil.Process]:
    return [process for process in psutil.Process().children(recursive=True) if _lives(process)]


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        # It ended between the two looks.
        return False


def _reap_orphans(engine: subprocess.Popen[bytes]) -> None:
    for process in psutil.Process().children():
        with suppress(psutil.Error, ChildProcessError):
            if process.pid != engine.pid and process.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(process.pid, os.WNOHANG)


def _kill_all(engine: subprocess.Popen[bytes]) -> int:
    """Kill whatever lives below, until nothing does: some may start others.
    Returns the engine's exit code.
    """
    with suppress(ProcessLookupError):
        os.killpg(engine.pid, signal.SIGKILL)
    # Before others wait for it, and take its exit code.
    code = engine.wait()
    while living := _below():
        for process in living:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(living, timeout=1.0)
    return code


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(main(sys.argv[1:]))
