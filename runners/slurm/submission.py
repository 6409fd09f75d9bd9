"""Calls become jobs: one array where it fits, one `sbatch` an array.

submitit writes the batch script and carries the calls to the nodes. Its result
files are never waited for, and its requeueing is off: a job that Slurm starts
again is a new attempt, with a number of its own (`runners.slurm.job`).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from registry.errors import StudyError
from registry.executors import SlurmSetup
from registry.plain_text import plain
from runners.slurm.calls import Call, invoke

DEFAULT_ARRAY = 1001
"""slurm.conf, MaxArraySize: what Slurm takes where nothing else is said."""

WITHHELD = (
    "TRAP_GITHUB_TOKEN",
    "TRAP_WITNESS_TOKEN",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "TRAP_SIGNING_KEY",
    "TRAP_LEDGER_KEY",
)
"""Variables that only the submitting side needs; an engine's own key goes along."""

_MAX_ARRAY = re.compile(r"^MaxArraySize\s*=\s*([0-9]+)", re.MULTILINE)
_ASK_S = 30.0


def check_slurm() -> None:
    """StudyError where this machine cannot submit jobs."""
    for program in ("sbatch", "srun", "squeue", "scancel"):
        if shutil.which(program) is None:
            raise StudyError(
                "this machine cannot submit Slurm jobs",
                value=f"no {program} on PATH",
                remedy="submit from a login node, or run without --executor slurm",
            )


def submit_calls(calls: Sequence[Call], folder: Path, setup: SlurmSetup, name: str) -> list[str]:
    """Submit all calls under the job name `name`; their job ids, in order
    (`123_4` in an array). Scripts, calls and logs go to `folder`, which the
    nodes must see. StudyError where Slurm refuses; earlier arrays stay then.
    """
    check_slurm()
    size = largest_array()
    found: list[str] = []
    for first in range(0, len(calls), size):
        found += _submit_array(calls[first : first + size], folder, setup, name)
    return found


def _submit_array(calls: Sequence[Call], folder: Path, setup: SlurmSetup, name: str) -> list[str]:
    from submitit.core.utils import FailedJobError, FailedSubmissionError
    from submitit.slurm.slurm import SlurmExecutor

    with _without_secrets():
        executor = SlurmExecutor(folder, max_num_timeout=0, python=_python(setup))
        executor.update_parameters(**parameters(setup, name))
        try:
            jobs = executor.map_array(invoke, list(calls))
        except (FailedJobError, FailedSubmissionError) as error:
            raise StudyError(
                f"Slurm refused the jobs: {plain(str(error), 400)}",
                where="study.yaml, executors.slurm",
                remedy="partition, account and limits are the cluster's: sinfo and sacctmgr show them",
            ) from None
    return [job.job_id for job in jobs]


def parameters(setup: SlurmSetup, name: str) -> dict[str, Any]:
    """Submitit's parameters: the setup's words, and nothing that the cluster chooses."""
    named = {key: getattr(setup, key) for key in ("partition", "account", "qos", "constraint")}
    more: dict[str, Any] = {"requeue": True}
    if setup.gpus:
        more["gres"] = f"gpu:{setup.gpus}"
    return {
        "job_name": name,
        "time": -(-setup.time_s // 60),
        "cpus_per_task": setup.cpus,
        # Since 22.05 a step does not take over what its job was granted (srun, --cpus-per-task).
        "srun_args": [f"--cpus-per-task={setup.cpus}"],
        "signal_delay_s": setup.warn_s,
        "array_parallelism": setup.parallel,
        "setup": _before(setup),
        "additional_parameters": more,
        **({"mem": f"{setup.memory_gib}GB"} if setup.memory_gib else {}),
        **{key: value for key, value in named.items() if value is not None},
    }


def _before(setup: SlurmSetup) -> list[str]:
    """Lines of the batch script before the call."""
    exports = [f"export {name}={shlex.quote(value)}" for name, value in setup.environment]
    return [*exports, *(f"module load {shlex.quote(module)}" for module in setup.modules)]


def _python(setup: SlurmSetup) -> str:
    return shlex.join(setup.python or (sys.executable,))


def largest_array() -> int:
    """How many jobs one array may hold, as the cluster says."""
    try:
        said = subprocess.run(
            ["scontrol", "show", "config"], capture_output=True, text=True, timeout=_ASK_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return DEFAULT_ARRAY
    found = _MAX_ARRAY.search(said.stdout)
    return max(1, int(found[1])) if found else DEFAULT_ARRAY


@contextmanager
def _without_secrets() -> Iterator[None]:
    """Slurm hands the submitter's variables to every job: not the project's own."""
    withheld = {name: os.environ[name] for name in WITHHELD if name in os.environ}
    for name in withheld:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(withheld)
