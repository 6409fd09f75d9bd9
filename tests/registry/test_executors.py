"""The section executors of study.yaml."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import TrapError
from registry.executors import LocalQueue, SlurmSetup
from registry.study_settings import parse_settings

BASE = """schema: trap-study-1
name: s
remote: origin
branch: main
witnesses: [local]
signing_key: "ssh-ed25519 AAAA"
commit_runs: false
"""

WHOLE = """
executors:
  local: {parallel: 4, gpus: [0, 1, "GPU-1a", 3], gpus_per_run: 2}
  slurm:
    default: {time_s: 3600, partition: gpu, gpus: 1}
    big:
      time_s: 7200
      account: lab
      modules: [cuda/12.9]
      python: [apptainer, exec, --nv, image.sif, python]
      environment: {HF_HUB_OFFLINE: "1"}
"""


def settings(text: str):
    return parse_settings((BASE + text).encode()).executors


def test_the_whole_section() -> None:
    found = settings(WHOLE)
    assert found.local == LocalQueue(4, ("0", "1", "GPU-1a", "3"), 2)
    assert found.slurm_for("anything") == SlurmSetup(3600, partition="gpu", gpus=1)
    big = found.slurm_for("big")
    assert (big.account, big.modules, big.environment) == ("lab", ("cuda/12.9",), (("HF_HUB_OFFLINE", "1"),))
    assert big.python[-1] == "python"


def test_without_it_this_machine_alone_is_known() -> None:
    found = settings("")
    assert found.local == LocalQueue()
    with pytest.raises(TrapError) as caught:
        found.slurm_for("e2")
    assert "executors.slurm.default" in (caught.value.remedy or "")


BAD = {
    "no time": "executors: {slurm: {default: {partition: gpu}}}",
    "under a minute": "executors: {slurm: {default: {time_s: 30}}}",
    "a partition that is an option": 'executors: {slurm: {default: {time_s: 60, partition: "-p x"}}}',
    "a partition of two lines": 'executors: {slurm: {default: {time_s: 60, partition: "a\\nb"}}}',
    "a module that is a command": 'executors: {slurm: {default: {time_s: 60, modules: ["x; rm y"]}}}',
    "a word with a line end": 'executors: {slurm: {default: {time_s: 60, python: ["a\\nb"]}}}',
    "a variable's name": "executors: {slurm: {default: {time_s: 60, environment: {a b: c}}}}",
    "an unknown key": "executors: {slurm: {default: {time_s: 60, wat: 1}}}",
    "an unknown executor": "executors: {pbs: {}}",
    "one GPU twice": "executors: {local: {gpus: [0, 0]}}",
    "a GPU that is none": 'executors: {local: {gpus: ["0,1"]}}',
    "more than there are": "executors: {local: {gpus: [0], gpus_per_run: 2}}",
    "no place at all": "executors: {local: {parallel: 0}}",
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused(case: str) -> None:
    with pytest.raises(TrapError) as caught:
        settings("\n" + BAD[case] + "\n")
    assert "study.yaml" in caught.value.diagnostics()


@given(st.integers(1, 8), st.integers(1, 8), st.one_of(st.none(), st.integers(1, 9)), st.integers(1, 64))
def test_no_two_places_share_a_gpu(gpus: int, each: int, parallel: int | None, cores: int) -> None:
    queue = LocalQueue(parallel, tuple(map(str, range(max(gpus, each)))), each)
    slots = queue.slots(cores, real=True)
    given_out = [name for slot in range(slots) for name in (queue.devices(slot) or "").split(",")]
    assert slots >= 1 and len(given_out) == len(set(given_out)) == slots * each


def test_simulated_runs_need_no_gpu() -> None:
    assert LocalQueue(gpus=("0",)).slots(16, real=False) == 16
    assert LocalQueue().slots(16, real=True) == 1 and LocalQueue().devices(0) is None
