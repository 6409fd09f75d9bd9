"""A study's own cell: registered, frozen whole, run and proven."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from registry.errors import TrapError
from registry.study_cells import cells_of, parse_cell
from tests.support import SMALL_CALIBRATION, command, commit_file, empty_study

PAGE = (Path(__file__).parents[2] / "docs/write-a-rule.md").read_text()
CELL = re.findall(r"```yaml\n(schema: trap-cell-1\n.*?)```", PAGE, re.DOTALL)[0]
RULE = SMALL_CALIBRATION.replace("cell: sglang-300k", "cell: my-cell")


def test_the_documented_cell_is_registered_run_and_proven(tmp_path: Path) -> None:
    root = empty_study(tmp_path)
    commit_file(root, "cells/my-cell.yaml", CELL)
    commit_file(root, "rules/all-miss-small.yaml", RULE)
    assert command(root, "register", "rules/all-miss-small.yaml").code == 0
    frozen = json.loads((root / "registrations/all-miss-small.v1.json").read_text())
    assert frozen["cell"]["pool_tokens"] == 150_000
    commit_file(root, "cells/my-cell.yaml", CELL.replace("150000", "160000"))
    assert command(root, "run", "all-miss-small").code == 0
    assert command(root, "verify").code == 0
    engine = json.loads(command(root, "verify", "--json").out)["proofs"][0]["runs"][0]
    assert engine["outcome"] == "PROVEN"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("name: my-cell", "name: sglang-300k", "one of the paper's cells"),
        ("pool_tokens: 150000", "pool_tokens: 0", "the number is too small"),
        ("origin: printed", "origin: guessed", "not one of the allowed values"),
        ("gpu: A100 80GB PCIe\n", "", "the field gpu is missing"),
        ("chunk_tokens: 8192", "chunk_token: 8192", "unknown field chunk_token"),
    ],
)
def test_a_bad_cell_file(old: str, new: str, words: str) -> None:
    with pytest.raises(TrapError) as caught:
        parse_cell(CELL.replace(old, new).encode(), "cells/my-cell.yaml")
    assert words in caught.value.diagnostics()


def test_a_cell_file_bears_its_cell_s_name(tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells/other.yaml").write_text(CELL)
    with pytest.raises(TrapError, match="bears its cell's name"):
        cells_of(tmp_path)


def test_an_unknown_cell_names_the_known_ones_and_the_way(tmp_path: Path) -> None:
    root = empty_study(tmp_path)
    commit_file(root, "rules/all-miss-small.yaml", RULE)
    result = command(root, "register", "rules/all-miss-small.yaml")
    assert result.code == 2
    assert "unknown cell" in result.err and "sglang-300k" in result.err and "cells/my-cell.yaml" in result.err


def test_the_theory_takes_a_study_s_own_cell(tmp_path: Path) -> None:
    root = empty_study(tmp_path)
    (root / "cells").mkdir()
    (root / "cells/my-cell.yaml").write_text(CELL)
    own = json.loads(command(root, "theory", "--cell", "my-cell", "--load", "1.35", "--json").out)
    paper = json.loads(command(root, "theory", "--cell", "sglang-300k", "--load", "1.35", "--json").out)
    assert own["rho"] == pytest.approx(1.35)
    assert own["mean_prompt_tokens"] == pytest.approx(paper["mean_prompt_tokens"], rel=0.02)
    assert "own step costs" in own["origin"]
    assert "my-cell" in command(root, "theory", "--cell", "nothing").err
