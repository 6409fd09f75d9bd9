"""Attempts in parallel over this machine's cores.

Workers die with their parent: a killed `trap run` leaves no process behind,
and its unfinished attempts are abandoned.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait as wait_sentinel
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

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
    grace_s: float = 0.0,
) -> Generator[tuple[Order, Result | Exception]]:
    """Run `function` on every order in worker processes, yielding as they end.

    A failed order yields its exception; the others go on. Leaving early (an
    interrupt, say) ends the workers: with `grace_s` they get SIGTERM, and
    so many seconds to end what they do before they are killed. `preload` is a
    module that every worker inherits imported, beside the function's own.
    """
    count = max(1, min(workers or cores(), len(orders)))
    # A fork server imports once what every worker needs, and stays for the next batch.
    context = get_context("forkserver")
    context.set_forkserver_preload([function.__module__, preload])
    pool = ProcessPoolExecutor(count, context, _die_with_parent)
    # A worker that has time to end must find nothing else to begin.
    ready, rest = (orders[:count], orders[count:]) if grace_s else (orders, [])
    waiting: dict[Future[Result], Order] = {_submit(pool, function, order): order for order in ready}
    try:
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                order = waiting.pop(future)
                if rest:
                    following = rest.pop(0)
                    waiting[_submit(pool, function, following)] = following
                error = future.exception()
                if error is not None and not isinstance(error, Exception):
                    raise error
                yield order, error if error is not None else future.result()
    except BaseException:
        _end(list((pool._processes or {}).values()), waiting, grace_s)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _submit(pool: ProcessPoolExecutor, function: Callable[[Order], Result], order: Order) -> Future[Result]:
    try:
        return pool.submit(function, order)
    except BrokenProcessPool as broken:
        failed: Future[Result] = Future()
        failed.set_exception(broken)
        return failed


def _end(workers: list[BaseProcess], waiting: Iterable[Future[Any]], grace_s: float) -> None:
    """Ask workers to end where there is grace, and kill them; another
    interrupt meanwhile kills at once.
    """
    try:
        if grace_s:
            for worker in workers:
                worker.terminate()
            wait(waiting, timeout=grace_s)
    finally:
        for worker in workers:
            worker.kill()
