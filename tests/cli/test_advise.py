"""`trapkit advise`: sentences, JSON, and names that are not known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from cli.commands import operator
from cli.workflows.advise import tokens_of
from modelf.closed_population import half_hit_sessions
from registry.errors import TrapError

app = typer.Typer(pretty_exceptions_enable=False)
operator.add_to(app)


@app.callback()
def program() -> None:
    """A program with this one group of commands."""


@pytest.fixture(scope="module", autouse=True)
def _solved_once() -> Iterator[None]:
    """Where hits are halved is solved once for each engine and workload: most tests ask for the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("modelf.advice.half_hit_sessions", lru_cache(half_hit_sessions))
        yield


def advise(*more: str, model: str = "qwen", gpu: str = "A100", pool: str = "300k") -> Result:
    return CliRunner().invoke(app, ["advise", "--model", model, "--gpu", gpu, "--pool", pool, *more])


def words(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_words_to_act_on() -> None:
    text = words(advise("--workload", "standard"))
    assert "Qwen2.5-7B-Instruct on one A100 80GB PCIe, KV pool 300,000 tokens" in text
    assert "not measured on any engine" in text
    assert [f"{number}. " in text for number in range(1, 6)] == [True] * 5
    assert "Admit at most 17 sessions" in text
    assert "a cap of 22 admitted sessions" in text
    assert "cut arrivals to below 0.0702 sessions/s" in text
    assert "give yours with --rate" in text and "With --backlog" in text


def test_lines_stay_narrow() -> None:
    assert max(map(len, advise("--backlog", "200", "--rate", "0.1").output.splitlines())) <= 100


def test_backlog_and_rate_are_used() -> None:
    text = words(advise("--backlog", "200", "--rate", "0.0976"))
    assert "At 0.0976 sessions/s arriving, a trapped engine completes" in text
    assert "200 sessions present take" in text and "with none arriving" in text
    assert "--rate" not in text and "--backlog" not in text


def test_a_rate_below_the_all_miss_capacity_empties_by_itself() -> None:
    assert "empties by itself" in words(advise("--rate", "0.05"))


def test_a_rate_that_no_cap_can_carry() -> None:
    assert "cut arrivals too" in words(advise("--rate", "0.5"))


def test_mirror_has_no_premium() -> None:
    text = words(advise("--workload", "mirror", "--rate", "0.2"))
    assert "less than its all-miss capacity" in text and "Do not trust" not in text


def test_json_has_every_figure_and_says_what_it_is() -> None:
    values = json.loads(advise("--json", "--backlog", "10", gpu="h200", pool="600_000").output)
    assert "not measured" in values["status"]
    assert (values["gpu"], values["pool_tokens"], values["backlog"]) == ("H200 NVL", 600_000, 10)
    assert values["rescue_cap"] < values["prevention_cap"] < values["onset"]
    assert values["trapped"]["overstatement"] > 1 and len(values["cuts"]) == 3


@pytest.mark.parametrize(
    ("choice", "known"),
    [
        ({"model": "gpt"}, "Llama-3.1-8B-Instruct"),
        ({"model": "instruct"}, "Qwen2.5-7B-Instruct"),
        ({"gpu": "B200"}, "H200 NVL"),
        ({"gpu": " "}, "A100 80GB PCIe"),
        ({"pool": "lots"}, "300000"),
        ({"pool": "1000"}, "the longest turn"),
        ({"pool": "2000k"}, "beside Qwen2.5-7B-Instruct"),
    ],
)
def test_what_is_not_known_is_said_with_what_is(choice: dict[str, str], known: str) -> None:
    error = advise(**choice).exception  # type: ignore[arg-type]
    assert isinstance(error, TrapError)
    assert error.remedy is not None and known in error.remedy


@pytest.mark.parametrize("more", [("--workload", "chat"), ("--rate", "-1"), ("--rate", "0"), ("--rate", "nan")])
def test_options_outside_the_model(more: tuple[str, str]) -> None:
    error = advise(*more).exception
    assert isinstance(error, TrapError) and error.remedy


@pytest.mark.parametrize("text", ["300000", "300_000", "300,000", "300k", " 300K "])
def test_tokens_in_several_spellings(text: str) -> None:
    assert tokens_of(text) == 300_000


def test_a_rule_file_has_its_own_engine_and_workload() -> None:
    rule = str(Path(__file__).parents[2] / "rules/e2.yaml")
    found = CliRunner().invoke(app, ["advise", "--rule", rule, "--json"])
    values = json.loads(found.output)
    assert values["status"] == "estimated from the step costs of cell sglang-300k, not measured"
    assert (values["pool_tokens"], values["prevention_cap"], values["rescue_cap"]) == (300_000, 22, 17)
    text = words(CliRunner().invoke(app, ["advise", "--rule", rule]))
    assert "the workload of e2" in text and "from the step costs of cell sglang-300k" in text
    for more in (["--rule", rule, "--pool", "300k"], ["--gpu", "A100"], ["--rule", "none.yaml"]):
        error = CliRunner().invoke(app, ["advise", *more]).exception
        assert isinstance(error, TrapError) and error.remedy
