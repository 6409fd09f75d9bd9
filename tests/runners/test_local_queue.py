"""What becomes of workers when a run is left early: with grace, and without."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from runners.local_queue import Queue, run_all


def work(folder: Path) -> str:
    """Ends at once, or when asked, or never: as the folder is called."""
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    (folder / "begun").touch()
    while folder.name != "quick" and not (asked and folder.name == "asked"):
        time.sleep(0.01)
    if asked:
        (folder / "kept").touch()
    return folder.name


def left_early(folder: Path, name: str, grace_s: float) -> Path:
    """Leave the queue while an order of this name is at work; its folder."""
    orders = [folder / "quick", folder / name, folder / "next"]
    for order in orders:
        order.mkdir()
    with closing(run_all(work, orders, Queue(1, "tests.runners.test_local_queue", grace_s))) as ended:
        assert next(ended) == (orders[0], "quick")
        until = time.monotonic() + 20
        while not (orders[1] / "begun").exists():
            assert time.monotonic() < until
            time.sleep(0.01)
    assert not (orders[2] / "begun").exists() or not grace_s, "asked to end, it began something else"
    return orders[1]


def test_a_worker_with_grace_keeps_what_it_has(tmp_path: Path) -> None:
    assert (left_early(tmp_path, "asked", 20.0) / "kept").exists()


@pytest.mark.parametrize(("name", "grace_s"), [("asked", 0.0), ("stubborn", 0.3)])
def test_a_worker_without_grace_or_past_it_is_killed(tmp_path: Path, name: str, grace_s: float) -> None:
    assert not (left_early(tmp_path, name, grace_s) / "kept").exists()


def slot_of(order: tuple[Path, int]) -> int:
    """The slot that the order was given, while nobody else holds it."""
    folder, slot = order
    mine = folder / str(slot)
    mine.mkdir()
    time.sleep(0.02)
    mine.rmdir()
    return slot


def test_no_two_orders_hold_a_slot_at_a_time_and_none_is_taken_early(tmp_path: Path) -> None:
    taken: list[int] = []

    def orders() -> Iterator[Path]:
        for number in range(12):
            taken.append(number)
            yield tmp_path

    queue = Queue(2, "tests.runners.test_local_queue", equip=lambda folder, slot: (folder, slot))
    slots = []
    for ended, (_, slot) in enumerate(run_all(slot_of, orders(), queue), 1):
        assert len(taken) <= ended + 2, "an order was taken with no worker free for it"
        slots.append(slot)
    assert len(slots) == 12 and set(slots) == {0, 1}


@pytest.mark.parametrize("grace_s", [0.0, 5.0])
def test_every_order_is_worked_off(tmp_path: Path, grace_s: float) -> None:
    orders = [tmp_path / str(number) / "quick" for number in range(5)]
    for order in orders:
        order.mkdir(parents=True)
    found = dict(run_all(work, orders, Queue(2, "tests.runners.test_local_queue", grace_s)))
    assert found == dict.fromkeys(orders, "quick")
