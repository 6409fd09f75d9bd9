"""Several engines at once on one machine: each has GPUs of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from registry.engine_setup import EngineSetup, given
from tests.study.engines import CALIBRATION, PROJECT, engine_section, engine_study, fork_anew, register
from tests.support import command, git

TOLD = 'echo "$CUDA_VISIBLE_DEVICES" > gpus; exec "$@"'
QUEUE = 'executors: {local: {gpus: [0, 1, 2, "GPU-3"], gpus_per_run: 2}}\n'


@pytest.fixture(scope="module", autouse=True)
def _fork_server() -> None:
    fork_anew()


def test_each_run_has_its_gpus_and_none_is_announced_before_they_are_free(tmp_path: Path) -> None:
    rule = CALIBRATION.replace("values: [0, 1, 2], binding: beacon", "values: [0, 1, 2, 3], binding: literal")
    program = ["/bin/sh", "-c", TOLD, "sh", sys.executable, "-m", "tests.engines.vllm_stub"]
    variables = {"PYTHONPATH": str(PROJECT), "VLLM_SERVER_DEV_MODE": "1", "CUDA_VISIBLE_DEVICES": "7"}
    root = engine_study(tmp_path, engine_section(program=program, environment=variables) + QUEUE, rule)
    register(root, "all-miss-stub")
    done = command(root, "run", "all-miss-stub")
    assert done.code == 0 and "4 of 4 complete" in done.out, done.text
    told = [path.read_text().strip() for path in root.glob("runs/all-miss-stub.v1/*/*/*/attempt-1/gpus")]
    assert sorted(set(told)) == ["0,1", "2,GPU-3"] and len(told) == 4
    pushes = git(root, "ls-tree", "--name-only", "origin/attempts", "attempts/").split()
    kinds = [name.rpartition("-")[2].removesuffix(".jsonl") for name in pushes]
    assert (kinds.count("start"), kinds.count("result")) == (4, 4)
    open_attempts = [kinds[:n].count("start") - kinds[:n].count("result") for n in range(len(kinds))]
    assert max(open_attempts) <= 3, "two run, and one that has just ended is not reported yet"


def test_given_gpus_take_the_place_of_the_setup_s() -> None:
    setup = EngineSetup("vllm", "m", 99, 16, 1, ("x",), environment=(("A", "b"), ("CUDA_VISIBLE_DEVICES", "7")))
    assert dict(given(setup, "0,1").environment) == {"A": "b", "CUDA_VISIBLE_DEVICES": "0,1"}
    assert given(setup, None) == setup
