"""A trace as a workload of model F."""

from __future__ import annotations

from pathlib import Path

import pytest

from modelf.turn_law import mean_turns
from modelf.workload import STANDARD_WORKLOAD, TabledWorkload
from registry.errors import RecordError
from registry.traces.empirical import EmpiricalWorkload, empirical_workload
from registry.traces.session_table import Malformed, Oddity, Read, TraceTurn
from tests.support import command

BLOCK = 16


def turn(session: str, number: int, prompt: int, prefix: int, wait_s: float | None = None) -> TraceTurn:
    blocks = tuple(range(prompt // BLOCK))
    return TraceTurn(session, None, number, 0.0, wait_s, True, prompt, 100, blocks, prefix // BLOCK, BLOCK, 0)


def made(*items: Read, pool_tokens: int = 100_000) -> EmpiricalWorkload:
    return empirical_workload(lambda: iter(items), pool_tokens)


def test_means_by_turn_and_the_law_of_turn_counts() -> None:
    found = made(
        turn("a", 1, 160, 0), turn("b", 1, 320, 0), Oddity("linked_turns"), turn("a", 2, 480, 160, 4.0),
        Malformed("f:1", "cut"), turn("c", 1, 240, 0), turn("a", 3, 800, 480, 2.0),
    )  # fmt: skip
    assert (found.sessions, found.turns, found.excluded, found.malformed, found.waits) == (3, 5, 0, 1, 2)
    workload = found.workload
    assert workload.prompts() == [240, 480, 800] and workload.reusable_table == (0, 160, 480)
    assert workload.turns.survival(2) == workload.turns.survival(3) and float(workload.turns.survival(2)) == 1 / 3
    assert (workload.output_tokens, workload.mean_tool_s, workload.longest_turn_tokens(2)) == (100, 3.0, 580)


def test_a_session_that_no_pool_holds_is_left_out_whole() -> None:
    small = [turn("a", 1, 160, 0), turn("a", 2, 320, 160, 1.0)]
    large = [turn("b", 1, 160, 0), turn("b", 2, 3200, 160, 9.0), turn("b", 3, 320, 160, 9.0)]
    found = made(*small, *large, pool_tokens=1000)
    assert (found.sessions, found.turns, found.excluded) == (1, 2, 1)
    assert found.workload.mean_tool_s == 1.0
    with pytest.raises(RecordError, match="no session of two turns that fits"):
        made(*large, pool_tokens=1000)


def test_sessions_of_the_paper_give_the_papers_workload() -> None:
    """As many sessions of each length as its law has, so the law comes back as it was."""
    law, items = STANDARD_WORKLOAD.turns, []
    for length in range(1, 11):
        count = round(1000 * float(law.survival(length) - law.survival(length + 1)))
        for copy in range(count):
            for k in range(1, length + 1):
                prompt = STANDARD_WORKLOAD.prompt_tokens(k)
                prefix = STANDARD_WORKLOAD.prompt_tokens(k - 1) if k > 1 else 0
                items.append(turn(f"{length}-{copy}", k, prompt, prefix, 5.0 if k > 1 else None))
    workload = made(*items).workload
    assert workload.prompts() == STANDARD_WORKLOAD.prompts()[:10]
    assert workload.mean_tool_s == 5.0 and 1 < mean_turns(workload.turns) < 10
    assert workload.expected_session_prompt_tokens() == pytest.approx(
        sum(float(workload.turns.survival(k)) * workload.prompt_tokens(k) for k in range(1, 11))
    )


def test_tables_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="an entry a turn"):
        TabledWorkload.of(STANDARD_WORKLOAD.turns, [1], [0], output_tokens=1, mean_tool_s=1.0)


def test_advice_for_a_trace_says_what_it_was_made_of(tmp_path: Path) -> None:
    rows = [f"{s},0,{k},{0 if k == 0 else 1100 * k},{1000},100,5000" for s in range(20) for k in range(1 + s % 4)]
    file = tmp_path / "t.csv"
    head = "session_id,arrival_time,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms"
    file.write_text("\n".join([head, *rows, "nonsense"]))
    asked = ("--model", "Qwen2.5-7B-Instruct", "--gpu", "A100", "--pool", "100k", "--trace", str(file))
    done = command(tmp_path, "advise", *asked)
    assert done.code == 0 and "50 turns of 20 real sessions; 1 lines could not be read" in " ".join(done.out.split())
    assert "ESTIMATED" in done.out and "onset" not in done.err
    done = command(tmp_path, "advise", *asked, "--json")
    assert '"sessions": 20' in done.out and '"prompt_table"' not in done.out
