"""1,000 runs as one Slurm array beside 20 submitted one by one.

`python -m benchmarks.slurm_submit [--calls 1000] [--single 20] [--json]`, as root

Starts a real Slurm on this machine (`tests/slurm/cluster.py`; Debian's slurm-wlm
and munge) whose node takes no job, so that only the client's time counts: what
`trapkit run --executor slurm` waits for. Calls of `sbatch` are counted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

from cli.render.table import table
from registry.executors import SlurmSetup
from runners.slurm.calls import Call
from runners.slurm.submission import submit_calls
from tests.slurm.cluster import Cluster, cluster

SETUP = SlurmSetup(time_s=60, partition="gpu", gpus=1)
CALL = Call("os.path:exists", ("/",))


def count_sbatch(folder: Path) -> Path:
    """An sbatch of our own before the real one on PATH; a file that gets a line a call."""
    real, count = shutil.which("sbatch"), folder / "count"
    assert real
    own = folder / "bin" / "sbatch"
    own.parent.mkdir()
    own.write_text(f'#!/bin/sh\necho >> {count}\nexec {real} "$@"\n')
    own.chmod(0o755)
    count.touch()
    os.environ["PATH"] = f"{own.parent}{os.pathsep}{os.environ['PATH']}"
    return count


def measured(found: Cluster, folder: Path, calls: int, single: int) -> list[dict[str, float]]:
    """Client seconds of an array, and of single submissions, with their sbatch calls."""
    os.environ.update(found.environment)
    node = found.said("sinfo", "--noheader", "--partition=gpu", "--format=%n")
    found.said("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=benchmark")
    count = count_sbatch(folder)
    submit_calls([CALL], folder / "first", SETUP, "first")
    rows = []
    for name, batches in (("array", [[CALL] * calls]), ("single", [[CALL]] * single)):
        before, began_s, jobs = len(count.read_bytes()), time.perf_counter(), set()
        for number, batch in enumerate(batches):
            jobs |= set(submit_calls(batch, folder / f"{name}-{number}", SETUP, name))
        client_s = time.perf_counter() - began_s
        runs = sum(map(len, batches))
        assert len(jobs) == runs
        rows.append(
            {"runs": runs, "sbatch": len(count.read_bytes()) - before, "client_s": client_s}
            | {"extrapolated_s": client_s * calls / runs}
        )
    return rows


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--single", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, cluster(Path(scratch) / "slurm") as found:
        rows = measured(found, Path(scratch), given.calls, given.single)
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    cells = [[f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.values()] for row in rows]
    print(table([list(rows[0]), *cells]))


if __name__ == "__main__":
    main()
