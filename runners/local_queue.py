"""Attempts in parallel over this machine's cores.

Workers die with their parent: a killed `trap run` leaves no process behind,
and its unfinished attempts are abandoned.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Sized
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Queue:
    """How orders are run: so many at once, in workers that inherit the module
    `preload` imported. `equip` gives an order the slot that it runs in, 0 to
    `workers` - 1; no two orders hold one at a time.

    Who leaves early (by an interrupt, say) ends the workers: with `grace_s` they
    get SIGTERM, and so many seconds to end what they do before they are killed.
    """

    workers: int
    preload: str = "runners.simulated.warm"
    grace_s: float = 0.0
    equip: Callable[[Any, int], Any] | None = None


def run_all(
    function: Callable[[Order], Result], orders: Iterable[Order], queue: Queue | None = None
) -> Generator[tuple[Order, Result | Exception]]:
    """Run `function` on every order in worker processes, yielding as they end.

    A failed order yields its exception; the others go on. An order is taken
    from `orders` when a worker is free for it, and no sooner.
    """
    queue = queue or Queue(cores())
    # A fork server imports once what every worker needs, and stays for the next batch.
    context = get_context("forkserver")
    # jsonschema, by which a worker reads its registration, is not imported by that reader's module.
    context.set_forkserver_preload([function.__module__, queue.preload, "jsonschema"])
    count = max(1, min(queue.workers, len(orders))) if isinstance(orders, Sized) else queue.workers
    pool = ProcessPoolExecutor(count, context, _die_with_parent)
    coming, free = iter(orders), list(range(count))
    waiting: dict[Future[Result], tuple[Order, int]] = {}

    def fill() -> None:
        while free and (order := next(coming, None)) is not None:
            slot = free.pop(0)
            given = queue.equip(order, slot) if queue.equip else order
            waiting[_submit(pool, function, given)] = order, slot

    try:
        fill()
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                order, slot = waiting.pop(future)
                free.append(slot)
                fill()
                error = future.exception()
                if error is not None and not isinstance(error, Exception):
                    raise error
                yield order, error if error is not None else future.result()
    except BaseException:
        _end(list((pool._processes or {}).values()), waiting, queue.grace_s)
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
