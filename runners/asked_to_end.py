"""An attempt that is asked to end: by its `trap run`, or by Slurm before its job ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from registry.errors import EngineError

SIGNALS = (signal.SIGTERM, signal.SIGUSR2)
"""SIGUSR2 is what submitit has Slurm send before a time limit."""


class AskedToEnd(EngineError):
    """The attempt was interrupted from outside; its records so far are kept."""


@contextmanager
def heard() -> Iterator[None]:
    """Both signals raise AskedToEnd here, the first time that one comes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _ask) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ask(number: int, _frame: object) -> None:
    # What is kept and written then must not be interrupted again.
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise AskedToEnd(f"the attempt was asked to end ({signal.Signals(number).name})")
