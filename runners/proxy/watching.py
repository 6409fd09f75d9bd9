"""Engaging the gate when the engine's own metrics say that it is trapped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import aiohttp

from registry.errors import TrapError
from runners.proxy.telemetry import Telemetry

Sample = TypeVar("Sample")

_MARGIN_S = 0.05


class State(Protocol):
    """What two samples say: `name` is good, trapped or unknown."""

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def reason(self) -> str: ...  # noqa: D102


@dataclass(frozen=True)
class Judgement(Generic[Sample]):
    """How the text of `/metrics` is read, and how two samples, some seconds
    apart, are judged.
    """

    read: Callable[[str], Sample]
    judge: Callable[[Sample, Sample, float], State]


class Watch(Generic[Sample]):
    """Polls an engine; `step` is one poll, `run` goes on for ever.

    `fetch` gives the metrics' text; `engage` is called at every poll that
    finds the engine trapped; `say` is told whenever the state changes.
    """

    def __init__(
        self,
        fetch: Callable[[], Awaitable[str]],
        judgement: Judgement[Sample],
        engage: Callable[[], None],
        told: Telemetry,
        say: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self._fetch = fetch
        self._judgement = judgement
        self._engage = engage
        self._told = told
        self._say = say
        self._clock = clock
        self._before: tuple[Sample, float] | None = None
        self._last = ""

    async def run(self, poll_s: float) -> None:
        """Poll every `poll_s` seconds, or a little later: never sooner."""
        while True:
            await self.step()
            await asyncio.sleep(poll_s + _MARGIN_S)

    async def step(self) -> None:
        """Read once, and judge against the sample before."""
        try:
            sample = self._judgement.read(await self._fetch())
        except (aiohttp.ClientError, TimeoutError, ValueError, TrapError) as error:
            # What the engine said is not shown: an error of its own may hold anything.
            self._before = None
            self._told.poll_failed()
            self._tell("unknown", f"its metrics cannot be read ({type(error).__name__})")
            return
        now_s = self._clock()
        if self._before:
            state = self._judgement.judge(self._before[0], sample, now_s - self._before[1])
            self._told.engine_state(state.name)
            self._tell(state.name, state.reason)
            if state.name == "trapped":
                self._engage()
        self._before = (sample, now_s)

    def _tell(self, name: str, reason: str) -> None:
        if name != self._last:
            self._say(f"the engine's state is {name}: {reason}")
        self._last = name
