"""A sweep's shards as jobs, with stand-ins for Slurm's programs; the real Slurm is in tests/slurm."""

from __future__ import annotations

import pickle
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from cli.workflows.sweep_jobs import parts
from runners.slurm.calls import invoke
from tests.runners.test_slurm_answers import program, programs
from tests.support import command
from tests.sweeps.support import contents

assert programs


@given(st.sets(st.integers(0, 300)), st.integers(1, 40))
def test_every_missing_shard_is_in_one_part_and_none_else_is_made_twice(missing: set[int], most: int) -> None:
    found = parts(sorted(missing), most)
    assert len(found) == min(most, len(missing))
    covered = [shard for first, last in found for shard in range(first, last + 1)]
    assert len(covered) == len(set(covered)) and missing <= set(covered)


def test_jobs_make_the_shards_and_a_second_submission_waits_for_them(
    rule_file: Path, tmp_path: Path, programs: Path
) -> None:
    made = command(tmp_path, "init", "study", "--local-remote")
    assert made.code == 0, made.text
    with (tmp_path / "study/study.yaml").open("a") as file:
        file.write("executors: {slurm: {default: {time_s: 600, parallel: 2}}}\n")
    program(programs, "sbatch", "echo Submitted batch job 17")
    typed = ("sweep", str(rule_file), "--out", "made", "--seeds", "0:1", "--shard-runs", "1", "--executor", "slurm")
    done = command(tmp_path / "study", *typed)
    assert done.code == 0 and "2 jobs, 17_0 the first" in done.out, done.text
    program(programs, "squeue", "echo '17_0|x|PENDING|None||1767225600|N/A|N/A'")
    again = command(tmp_path / "study", *typed)
    assert again.code == 2 and "may still be there" in again.err
    program(programs, "squeue", "exit 0")
    for file in sorted((tmp_path / "study/made/jobs").rglob("17_*_submitted.pkl")):
        invoke(*pickle.loads(file.read_bytes()).args)
    finished = command(tmp_path / "study", *typed)
    assert finished.code == 0 and "handed" not in finished.out, finished.text
    by_hand = command(tmp_path / "study", *typed[:3], "local", *typed[4:-2])
    assert by_hand.code == 0
    assert contents(tmp_path / "study/made/readings") == contents(tmp_path / "study/local/readings") != {}
