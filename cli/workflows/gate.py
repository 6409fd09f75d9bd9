"""Serving the gate: its log file, and how an engine's metrics are judged."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from registry.errors import TrapError
from registry.witness.server.serving import is_loopback
from runners.engines.metrics import parse_metrics
from runners.engines.trap_state import judge
from runners.proxy.serving import serve
from runners.proxy.settings import ProxySettings
from runners.proxy.watching import Judgement


def serve_gate(settings: ProxySettings, expected_hit_fraction: float | None, say: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT. `say` receives one line once it is ready;
    trouble and the engine's state go to standard error.
    """
    judgement = Judgement(parse_metrics, partial(judge, expected_hit_fraction=expected_hit_fraction))
    if not is_loopback(settings.host):
        _warn("no TLS here: outside of a network you trust, put a reverse proxy before the gate")
    # What the program itself consists of is never garbage: looking through it would hold every request up.
    gc.freeze()
    with _event_log(settings.log) as write:
        asyncio.run(serve(settings, say, _warn, judgement, write=write))


def _warn(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextmanager
def _event_log(path: Path | None) -> Iterator[Callable[[str], object] | None]:
    """What appends a line to the file, which every line reaches at once."""
    if path is None:
        yield None
        return
    try:
        file = path.open("a", encoding="utf-8", buffering=1)
    except OSError as error:
        raise TrapError(
            f"the log cannot be written: {error.strerror}", where=str(path), remedy="--log FILE in a folder of yours"
        ) from None
    with file:
        yield file.write
