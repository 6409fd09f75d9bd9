"""trap theory: one load, sweeps, conformance, and what is outside the model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import command

KEYS = {
    "rho", "growth", "mean_prompt_tokens", "gap_slope", "completions_over_lambda_ref",
    "completions_over_lambda_miss", "backlog_slope_over_excess", "quasi_static_ratio",
    "turn_count_factor", "cost_growth_factor",
}  # fmt: skip


def test_a_single_load_gives_one_object(tmp_path: Path) -> None:
    result = command(tmp_path, "theory", "--cell", "sglang-300k", "--load", "1.35", "--json")
    assert result.code == 0
    document = json.loads(result.out)
    assert set(document) >= KEYS
    assert round(document["mean_prompt_tokens"]) == 9324


def test_the_default_is_the_paper_s_lower_rate(tmp_path: Path) -> None:
    assert "9,324" in command(tmp_path, "theory").out


def test_a_sweep_gives_a_row_a_load(tmp_path: Path) -> None:
    document = json.loads(command(tmp_path, "theory", "--load", "1.1:2:10", "--load", "3", "--json").out)
    assert [row["load"] for row in document["rows"]][-1] == 3
    assert len(document["rows"]) == 11
    assert "growth" in command(tmp_path, "theory", "--load", "1.1:2:10").out


def test_conformance_agrees_everywhere(tmp_path: Path) -> None:
    result = command(tmp_path, "theory", "--conformance")
    assert result.code == 0
    assert result.out.splitlines()[-1] == "73 of 73 printed numbers agree"
    rows = json.loads(command(tmp_path, "theory", "--conformance", "--json").out)["rows"]
    assert all(row["agrees"] for row in rows) and len(rows) == 73


def test_a_disagreement_exits_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from modelf.conformance import Comparison

    monkeypatch.setattr("cli.workflows.theory.compare_all", lambda: [Comparison("x", "y", 1.0, 2.0, 0.1)])
    assert command(tmp_path, "theory", "--conformance").code == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--cell", "x"), "sglang-300k, sglang-native, vllm-300k, h200-600k, llama-300k"),
        (("--workload", "x"), "standard, mirror"),
        (("--load", "0.9"), "is not above 1"),
        (("--load", "nan"), "is not above 1"),
        (("--load", "fast"), "not a load"),
        (("--load", "1:2"), "not a load"),
        (("--load", "1:2:1"), "not a sweep"),
    ],
)
def test_what_is_outside_says_so(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    result = command(tmp_path, "theory", *arguments)
    assert result.code == 2
    assert words in result.err


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_a_sweep_is_drawn_the_same_each_time(tmp_path: Path, suffix: str) -> None:
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    for file in (first, second):
        assert command(tmp_path, "theory", "--load", "1.1:3:9", "--plot", str(file)).code == 0
    assert first.read_bytes() == second.read_bytes()
    assert command(tmp_path, "theory", "--plot", "x.gif").code == 2
