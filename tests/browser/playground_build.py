"""A small playground for tests, simulated in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from cli.workflows.playground import Grid, playground_data
from cli.workflows.playground_evidence import TRIALS
from cli.workflows.playground_files import write_pages
from cli.workflows.playground_replay import SCENARIOS

GRID = Grid(
    cells=("sglang-300k", "vllm-300k", "vllm-cpu-mini"),
    loads=(0.95, 1.2, 1.35, 1.5, 1.65, 2.0),
    run_loads=(1.35, 1.65),
    trials=TRIALS[:1],
    scenarios=SCENARIOS[:2],
)


class Silent:
    """A reporter that says nothing."""

    def say(self, text: str) -> None:
        pass

    def step(self, title: str, done: int, total: int) -> None:
        pass


def _here(function: Callable[[Any], Any], orders: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    for order in orders:
        yield order, function(order)


@lru_cache(maxsize=1)
def small_data() -> dict[str, Any]:
    """The data of `GRID`, computed once a process; not to be changed."""
    with pytest.MonkeyPatch.context() as patched:
        for room in ("playground", "playground_replay"):
            patched.setattr(f"cli.workflows.{room}.run_all", _here)
        return playground_data(GRID, Silent())


def small_pages(folder: Path) -> dict[str, Path]:
    """The pages of `GRID` by name."""
    return {file.stem: file for file in write_pages(small_data(), folder)}
