"""Engaging when the engine is trapped: by its own metrics, again after a relapse."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import aiohttp
import pytest
from aiohttp import web

from registry.errors import EngineError
from runners.engines.metrics import parse_metrics
from runners.engines.trap_state import judge
from runners.proxy.telemetry import Telemetry
from runners.proxy.watching import Judgement, Watch
from tests.runners.proxy_support import engine, gate


class Said(NamedTuple):
    name: str
    reason: str = "it said so"


def read(text: str) -> str:
    if text == "nonsense":
        raise EngineError("no metrics")
    return text


def told_by(before: str, after: str, seconds: float) -> Said:
    assert seconds == 10
    return Said(after)


class Story:
    """An engine that says the next word of a list at each poll."""

    def __init__(self, *words: str) -> None:
        self.words = list(words)
        self.now_s = 0.0
        self.engaged = 0
        self.said: list[str] = []
        self.telemetry = Telemetry(1)
        self.watch = Watch(
            self.fetch, Judgement(read, told_by), self.engage, self.telemetry, self.said.append, lambda: self.now_s
        )

    async def fetch(self) -> str:
        word = self.words.pop(0)
        if word == "gone":
            raise aiohttp.ClientConnectionError("Bearer secret")
        return word

    def engage(self) -> None:
        self.engaged += 1

    def play(self) -> None:
        while self.words:
            asyncio.run(self.watch.step())
            self.now_s += 10


def test_one_sample_says_nothing_two_do() -> None:
    story = Story("trapped")
    story.play()
    assert story.engaged == 0
    story.words = ["trapped"]
    story.play()
    assert story.engaged == 1


@pytest.mark.parametrize("word", ["good", "unknown"])
def test_only_a_trap_engages(word: str) -> None:
    story = Story(word, word, word)
    story.play()
    assert story.engaged == 0


@pytest.mark.parametrize("failure", ["gone", "nonsense"])
def test_samples_on_both_sides_of_a_failure_are_not_compared(failure: str) -> None:
    story = Story("good", failure, "trapped")
    story.play()
    assert story.engaged == 0
    story.words = ["trapped"]
    story.play()
    assert story.engaged == 1
    assert "secret" not in "".join(story.said)


def test_a_change_of_state_is_told_once() -> None:
    story = Story(*["good"] * 3, *["trapped"] * 3, "good")
    story.play()
    assert [line.split(":")[0].rsplit(" ", 1)[1] for line in story.said] == ["good", "trapped", "good"]


def page(prompts: int, waiting: int) -> str:
    return (
        f"vllm:prompt_tokens_total {prompts}.0\nvllm:prompt_tokens_cached_total 0.0\n"
        f"vllm:num_requests_waiting {waiting}.0\nvllm:num_requests_running 1.0\n"
    )


def test_a_gate_that_stays_open_engages_on_a_trap_and_again_on_a_relapse() -> None:
    polls = 0

    async def trapped(request: web.Request) -> web.StreamResponse:
        nonlocal polls
        if request.path == "/metrics":
            polls += 1
            return web.Response(text=page(polls * 100_000, 7))
        return web.json_response({"choices": []})

    async def body() -> None:
        # Real samples, but as if the polls were ten seconds apart.
        judgement = Judgement(parse_metrics, lambda before, after, _: judge(before, after, 10.0))
        settings = {"engage_when_trapped": True, "poll_s": 0.01, "release_after_s": 0.01}
        async with asyncio.timeout(30), engine(trapped) as url, gate(url, judgement, **settings) as client:
            await client.until("engaged_now", 1)
            async with asyncio.timeout(20):
                while (await client.numbers())["relapses_total"] < 1:
                    await asyncio.sleep(0.02)
            numbers = await client.numbers()
            assert numbers["released_total"] >= 1
            assert numbers["engaged_total"] >= 2
            assert numbers['engine_state{state="trapped"}'] == 1
            assert "trapped" in client.warned[0]

    asyncio.run(body())
