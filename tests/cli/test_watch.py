"""`trapkit watch`: states, exit codes, words and JSON, on a stub of an engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from cli.commands import watch as command
from cli.workflows import watch as workflow
from cli.workflows.watch import Observation, Question, observations, session_cap
from registry.errors import EngineError, TrapError
from runners.engines.metrics import EngineSample, parse_metrics
from runners.engines.trap_state import TrapState
from tests.loopback import Answer, LoopbackServer

DATA = Path(__file__).parents[1] / "runners" / "data"
URL = "http://127.0.0.1:8000"

app = typer.Typer(pretty_exceptions_enable=False)
command.add_to(app)


@app.callback()
def program() -> None:
    """A program with this one command."""


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def clock(self) -> float:
        return self.now


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Time:
    """The command without its waiting."""
    time = Time()
    monkeypatch.setattr(workflow, "observations", partial(observations, sleep=time.sleep, clock=time.clock))
    return time


def texts(*names: str) -> Callable[[object], Answer]:
    answers = iter([(DATA / f"{name}.prom").read_bytes() for name in names])
    return lambda _: Answer(200, next(answers), "text/plain")


def watch(url: str, *more: str) -> Result:
    return CliRunner().invoke(app, ["watch", url, *more])


TRAPPED = ("vllm-trapped-before", "vllm-trapped-after")
GOOD = ("vllm-good-before", "vllm-good-after")


def test_a_trapped_engine_exits_1_with_what_to_do(quick: Time) -> None:
    with LoopbackServer(texts(*TRAPPED)) as server:
        result = watch(server.url)
    assert result.exit_code == 1
    first, *rest = result.output.splitlines()
    assert first.startswith("trapped: 0.0% of the prompt tokens came from the cache and 13 requests wait")
    text = " ".join(" ".join(rest).split())
    assert f"vLLM at {server.url}/metrics" in text
    assert "KV pool, tokens 6,400, blocks of 32" in text
    # 6,400 tokens over twice the mean prompt of 897.
    assert f"trapkit gate serve --upstream {server.url} --cap 3" in text
    assert "pool of 6,400 tokens over 2 times the mean prompt of 897 tokens seen" in text
    assert quick.now == 1_010


def test_a_good_engine_exits_0_and_needs_nothing(quick: Time) -> None:
    with LoopbackServer(texts(*GOOD)) as server:
        result = watch(server.url, "--interval-s", "25")
    assert result.exit_code == 0
    assert result.output.startswith("good: 91.9%")
    assert "What to do" not in result.output and "--cap" not in result.output
    assert quick.now == 1_025


def test_an_expectation_is_used(quick: Time) -> None:
    with LoopbackServer(texts(*TRAPPED)) as server:
        assert "where 80% was expected" in watch(server.url, "--expected-hit-fraction", "0.8").output
    with LoopbackServer(texts(*TRAPPED)) as server:
        assert watch(server.url, "--expected-hit-fraction", "0").exit_code == 3


@pytest.mark.parametrize(("names", "code"), [(TRAPPED, 1), (GOOD, 0), (("vllm-idle", "vllm-idle"), 3)])
def test_json_is_one_line_with_every_figure(quick: Time, names: tuple[str, str], code: int) -> None:
    with LoopbackServer(texts(*names)) as server:
        result = watch(server.url, "--json")
    assert result.exit_code == code and result.output.count("\n") == 1
    values = json.loads(result.output)
    assert values["name"] == {0: "good", 1: "trapped", 3: "unknown"}[code]
    assert values["engine"] == "vllm" and values["pool_tokens"] == 6_400 and values["seconds"] == 10
    assert set(TrapState.__dataclass_fields__) < set(values)
    assert values["session_cap"] == (3 if code == 1 else None)


def test_an_engine_that_is_not_there_is_unknown_at_once(quick: Time) -> None:
    with LoopbackServer(texts("vllm-idle")) as gone:
        url = gone.url
    result = watch(url)
    assert result.exit_code == 3
    assert result.output.startswith("unknown: the engine cannot be reached")
    assert quick.now == 1_000


def test_an_engine_that_goes_away_between_the_samples_is_unknown(quick: Time) -> None:
    answers = iter([Answer(200, (DATA / "vllm-idle.prom").read_bytes(), "text/plain"), Answer(503)])
    with LoopbackServer(lambda _: next(answers)) as server:
        result = watch(server.url)
    assert (result.exit_code, "answered 503" in result.output) == (3, True)


def test_hostile_text_reaches_no_terminal(quick: Time) -> None:
    evil = b'\x1b]0;owned\x07sglang:prompt_tokens_total{a="\x1b[2J"} 1\n'
    redirect = Answer(302, headers={"Location": "http://x.invalid/\x1b[31m"})
    for answer in (Answer(200, evil, "text/plain"), redirect):
        with LoopbackServer(lambda _, answer=answer: answer) as server:  # type: ignore[misc]
            result = watch(server.url)
        assert result.exit_code == 3 and "\x1b" not in result.output and "\x07" not in result.output


def test_model_and_gpu_turn_the_engines_pool_and_backlog_into_figures(quick: Time) -> None:
    with LoopbackServer(texts(*TRAPPED)) as server:
        result = watch(server.url, "--model", "qwen", "--gpu", "A100", "--pool", "300k")
    text = " ".join(result.output.split())
    assert result.exit_code == 1
    assert "Qwen2.5-7B-Instruct on one A100 80GB PCIe, KV pool 300,000 tokens" in text
    assert "Admit at most 17 sessions" in text and "17 sessions present take" in text
    assert "What to do" not in text


def test_a_pool_that_advice_cannot_use_keeps_the_state(quick: Time) -> None:
    with LoopbackServer(texts(*TRAPPED)) as server:
        result = watch(server.url, "--model", "qwen", "--gpu", "A100")
    assert result.exit_code == 1
    assert "no advice for this model and GPU: no engine has this KV pool" in result.output
    assert "gate serve" in result.output


@pytest.mark.parametrize(
    ("url", "more"),
    [
        ("not-a-url", ()),
        (URL, ("--model", "qwen")),
        (URL, ("--model", "gpt-9", "--gpu", "A100")),
        (URL, ("--pool", "lots")),
        (URL, ("--workload", "chat")),
        (URL, ("--rate", "0")),
        (URL, ("--interval-s", "9.9")),
        (URL, ("--interval-s", "nan")),
        (URL, ("--expected-hit-fraction", "2")),
    ],
)
def test_bad_input_is_refused_before_anything_is_asked(url: str, more: tuple[str, ...]) -> None:
    error = watch(url, *more).exception
    assert isinstance(error, TrapError) and not isinstance(error, EngineError)
    assert error.exit_code == 2 and error.remedy


def sample(name: str) -> EngineSample:
    return parse_metrics((DATA / f"{name}.prom").read_text("utf-8"))


def test_live_goes_on_over_an_engine_that_goes_and_comes_back() -> None:
    before, after = sample(TRAPPED[0]), sample(TRAPPED[1])
    steps: Iterator[EngineSample | EngineError] = iter([before, after, EngineError("gone"), before, after, before])
    time = Time()

    def ask(_: str) -> EngineSample:
        step = next(steps)
        if isinstance(step, EngineError):
            raise step
        return step

    seen = observations(URL, 10, Question(), ask=ask, sleep=time.sleep, clock=time.clock)
    found = [next(seen).state for _ in range(4)]
    assert [state.name for state in found] == ["trapped", "unknown", "trapped", "unknown"]
    assert found[1].reason == "gone" and "started anew" in found[3].reason


@pytest.mark.parametrize("as_json", [False, True])
def test_live_ends_with_ctrl_c_and_the_last_state(monkeypatch: pytest.MonkeyPatch, as_json: bool) -> None:
    def ends(*_: object) -> Iterator[Observation]:
        yield Observation(URL, TrapState("trapped", "first words", 10.0))
        yield Observation(URL, TrapState("good", "last words", 10.0))
        raise KeyboardInterrupt

    monkeypatch.setattr(workflow, "observations", ends)
    result = watch(URL, "--live", *(["--json"] if as_json else []))
    assert result.exit_code == 0
    assert "last words" in result.output
    if as_json:
        assert [json.loads(line)["name"] for line in result.output.splitlines()] == ["trapped", "good"]


def test_live_that_is_ended_before_two_samples_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(*_: object) -> Iterator[Observation]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(workflow, "observations", ends)
    assert watch(URL, "--live").exit_code == 3


def test_the_cap_of_the_measured_cell() -> None:
    """Pool 30,000, trapped mean prompt 893: the cap that was measured to rescue is 16."""
    state = TrapState("trapped", "", 10.0, mean_prompt_tokens=893.2)
    assert session_cap(state, 30_000) == 16
    assert session_cap(state, 100) == 1
    assert session_cap(state, None) is None
    assert session_cap(replace(state, mean_prompt_tokens=None), 30_000) is None
    assert session_cap(replace(state, name="good"), 30_000) is None
