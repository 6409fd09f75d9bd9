"""Attempts in parallel over this machine's cores.

Workers die with their parent: a killed `trap run` leaves no process behind,
and its unfinished attempts are abandoned.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait as wait_sentinel
from typing import TypeVar

Order = TypeVar("Order")
Result = TypeVar("Result")


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _die_with_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait_sentinel([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def run_all(
    function: Callable[[Order], Result],
    orders: list[Order],
    workers: int | None = None,
    preload: str = "runners.simulated.warm",
) -> Iterator[tuple[Order, Result | Exception]]:
    """Run `function` on every order in worker processes, yielding as they end.

    A failed order yields its exception; the others go on. Leaving early (an
    interrupt, say) ends the workers at once. `preload` is a module that every
    worker inherits imported, beside the function's own.
    """
    count = max(1, min(workers or cores(), len(orders)))
    # A fork server imports once what every worker needs, and stays for the next batch.
    context = get_context("forkserver")
    context.set_forkserver_preload([function.__module__, preload])
    pool = ProcessPoolExecutor(count, context, _die_with_parent)
    waiting: dict[Future[Result], Order] = {pool.submit(function, order): order for order in orders}
    try:
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                order = waiting.pop(future)
                error = future.exception()
                if error is not None and not isinstance(error, Exception):
                    raise error
                yield order, error if error is not None else future.result()
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
