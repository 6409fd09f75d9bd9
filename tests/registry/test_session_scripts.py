"""Session scripts: from a trace to a frozen file, and back under hostile bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from registry.canonical import canonical_bytes
from registry.errors import TrapError
from registry.philox import top_53_bits, words
from registry.plan import Plan
from registry.scripted_workload import ScriptedWorkload
from registry.session_scripts import SessionScripts, read_scripts
from registry.traces.digests import trace_sha256
from registry.traces.formats import read_trace
from registry.traces.scripting import Scaling, Scripted, block_tokens_of, script_trace
from tests.runners.script_support import file_of, scripts_of


def mooncake(folder: Path, *requests: tuple[float, int, int, list[int]]) -> Path:
    """A trace of (ms, prompt, output, ids)."""
    file = folder / "trace.jsonl"
    names = ("timestamp", "input_length", "output_length", "hash_ids")
    file.write_text("".join(json.dumps(dict(zip(names, request, strict=True))) + "\n" for request in requests))
    return file


def scripted(file: Path, sessions: int, scaling: Scaling | None = None, **more: Any) -> tuple[Scripted, SessionScripts]:
    asked = {"block_tokens": 256, "pool_tokens": 100_000, "seed": None} | more
    made = script_trace(lambda: read_trace(file), scaling or Scaling(), sessions=sessions, **asked)
    return made, read_scripts(made.data, "made")


def ids_of(scripts: SessionScripts, row: int) -> list[int]:
    found: list[int] = scripts.blocks[scripts.first_block[row] : scripts.first_block[row + 1]].tolist()
    return found


REQUESTS = (
    (0.0, 1024, 10, [0, 1]),
    (1000.0, 1200, 20, [0, 2, 3]),
    (5000.0, 1536 + 300, 0, [0, 1, 4, 5]),
    (9000.0, 512, 7, [0]),
)


def test_blocks_of_several_sessions_are_shared_and_come_first(tmp_path: Path) -> None:
    made, scripts = scripted(mooncake(tmp_path, *REQUESTS), 3)
    assert (made.sessions_read, made.excluded, made.sessions, made.turns) == (3, 0, 3, 4)
    # Half blocks of the trace: id 0 is shared, as blocks 0 and 1.
    assert scripts.shared_blocks == 2
    assert scripts.turns.tolist() == [2, 1, 1]
    assert scripts.prompt_tokens.tolist() == [1024, 1836, 1200, 512]
    assert scripts.output_tokens.tolist() == [10, 1, 20, 7], "an empty answer is one token"
    assert scripts.wait_us.tolist() == [0, 5_000_000, 0, 0]
    assert scripts.arrival_us.tolist() == [0, 1_000_000, 9_000_000]
    assert [ids_of(scripts, row) for row in range(4)] == [
        [0, 1, 2, 3],
        [0, 1, 2, 3, 6, 7, 8],
        [0, 1, 4, 5],
        [0, 1],
    ]
    assert scripts.reusable_tokens.tolist() == [0, 1024, 0, 0]


def test_a_block_that_one_sampled_session_has_is_its_own(tmp_path: Path) -> None:
    _, scripts = scripted(mooncake(tmp_path, *REQUESTS), 1)
    assert scripts.shared_blocks == 0


def test_scaled_sessions_are_shorter_and_faster(tmp_path: Path) -> None:
    scaling = Scaling(token_scale=4, time_scale=2.0, max_think_s=2.0, max_prompt_tokens=459)
    _, scripts = scripted(mooncake(tmp_path, *REQUESTS), 3, scaling)
    assert scripts.prompt_tokens.tolist() == [256, 459, 300, 128]
    assert scripts.output_tokens.tolist() == [3, 1, 5, 2]
    assert (scripts.wait_us.tolist(), scripts.arrival_us.tolist()) == ([0, 2_000_000, 0, 0], [0, 500_000, 4_500_000])
    # Two ids make one block of 256 tokens, which stands for 1,024.
    assert [ids_of(scripts, row) for row in range(4)] == [[0], [0], [1], []]


def test_sessions_too_large_are_left_out_whole_and_counted(tmp_path: Path) -> None:
    file = mooncake(tmp_path, *REQUESTS)
    made, _ = scripted(file, 2, Scaling(max_prompt_tokens=1835))
    assert (made.sessions_read, made.excluded, made.turns) == (3, 1, 2)
    made, _ = scripted(file, 2, pool_tokens=1836)
    assert made.excluded == 1, "1,836 tokens are seven blocks of 256"
    with pytest.raises(TrapError, match="cannot be taken"):
        scripted(file, 3, Scaling(max_prompt_tokens=1835))


def test_a_sample_is_the_same_each_time_and_another_with_another_seed(tmp_path: Path) -> None:
    file = mooncake(tmp_path, *((float(i), 512 + i, 1, [i, 1000 + i]) for i in range(30)))
    one, again, other = (scripted(file, 5, seed=seed)[0].data for seed in (1, 1, 2))
    assert one == again != other


def test_block_sizes_must_divide_each_other(tmp_path: Path) -> None:
    with pytest.raises(TrapError, match="do not divide"):
        scripted(mooncake(tmp_path, *REQUESTS), 1, Scaling(token_scale=3))


def test_a_cells_block_is_the_scripts_from_16_tokens_on() -> None:
    assert [block_tokens_of(block) for block in (1, 5, 16, 32)] == [16, 20, 16, 32]


def test_the_digest_of_a_folder_is_of_its_names_and_files(tmp_path: Path) -> None:
    for name in ("b.json", "a.json"):
        (tmp_path / name).write_text(name)
    before = trace_sha256(tmp_path)
    (tmp_path / "a.json").rename(tmp_path / "c.json")
    assert trace_sha256(tmp_path) != before


SESSIONS = [[(9, 3, 0, [0, 6]), (21, 5, 1000, [0, 6, 7])], [(8, 2, 0, [0, 3])]]


def test_to_model_f_the_scripts_are_their_means() -> None:
    workload = ScriptedWorkload.following(scripts_of(SESSIONS))
    assert workload.prompts() == [8, 21] and workload.turns.survival(2) == 0.5
    assert workload.expected_session_prompt_tokens() == 19.0
    assert (workload.longest_turn_tokens(), workload.longest_turn_tokens(1)) == (26, 12)
    assert workload.reusable_tokens(2) == 8 and workload.mean_tool_s == 0.001


def test_each_arrival_follows_the_script_that_its_first_word_names() -> None:
    workload = ScriptedWorkload.following(scripts_of([[(5, 1, 0, [])] * n for n in (1, 2, 3)]))
    plan = Plan(bytes(32), workload, 1, (), (), 0)
    draws = plan.draws("base", 40)
    named = [int(top_53_bits(words(bytes(32), f"session/base/{i}", 1))[0]) * 3 >> 53 for i in range(40)]
    assert draws.turns[:40].tolist() == [index + 1 for index in named] and set(named) == {0, 1, 2}
    capped = Plan(bytes(32), workload, 1, (), (), 0, 2).draws("base", 40)
    assert capped.turns.max() == 2 and capped.script is not None
    assert np.array_equal(capped.script, draws.script)  # type: ignore[arg-type]


def damaged(change: Any) -> bytes:
    value = json.loads(file_of(SESSIONS))
    change(value)
    return canonical_bytes(value)


def turn(value: Any, session: int, number: int) -> Any:
    return value["sessions"][session]["turns"][number]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda v: v.update(schema="other"), "not a file of session scripts"),
        (lambda v: v.update(block_tokens=0), "not a file of session scripts"),
        (lambda v: v.update(sessions=[]), "not a file of session scripts"),
        (lambda v: v.update(more=1), "not a file of session scripts"),
        (lambda v: v["sessions"][0].update(turns=[]), "not a file of session scripts"),
        (lambda v: turn(v, 0, 0).__setitem__(0, -1), "not a file of session scripts"),
        (lambda v: turn(v, 0, 0).__setitem__(0, 1.5), "not a file of session scripts"),
        (lambda v: turn(v, 0, 0).__setitem__(1, 2**60 % 10**15), "not a file of session scripts"),
        (lambda v: turn(v, 0, 0).append(1), "not a file of session scripts"),
        (lambda v: turn(v, 0, 0).__setitem__(4, [0]), "do not fit its prompt"),
        (lambda v: turn(v, 0, 0).__setitem__(4, [0, 3]), "do not fit its prompt"),
        (lambda v: turn(v, 0, 0).__setitem__(3, 1), "do not fit its prompt"),
        (lambda v: turn(v, 1, 0).__setitem__(3, 1), "do not fit its prompt"),
        (lambda v: turn(v, 0, 1).__setitem__(3, 3), "do not fit its prompt"),
        (lambda v: turn(v, 1, 0).__setitem__(4, [3, 1, 0, 1]), "follows two different ones"),
        (lambda v: turn(v, 1, 0).__setitem__(4, [0, 1, 6, 1]), "stands in two sessions"),
        (lambda v: turn(v, 0, 0).__setitem__(4, [0, 2**24]), "do not fit its prompt|too many block ids"),
        (lambda v: v.update(sessions=v["sessions"] * 60_000), "not a file|too large|too many"),
    ],
)
def test_hostile_scripts_are_refused(change: Any, told: str) -> None:
    with pytest.raises(TrapError, match=told):
        read_scripts(damaged(change), "hostile")


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b"[" * 10_000, b" " + file_of(SESSIONS)])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(TrapError):
        read_scripts(data, "hostile")
