"""The real probes of this machine, for `trapkit doctor`."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cli.workflows.doctor import Capacity, Probes, Ran
from registry.errors import StudyError, TrapError
from registry.guarded_git import run_git
from registry.ssh_signature import default_key_path, load_key, public_text
from registry.study import Study, find_root, open_study
from registry.witness import http
from runners.engines.process import environment_without_secrets

_OUTPUT_BYTES = 100_000


def this_machine(folder: Path) -> Probes:
    """Probes of the machine, with `folder` as the working folder."""
    study = _study(folder)
    roots = [folder] + ([study.root] if isinstance(study, Study) else [])
    return Probes(
        python=sys.version_info[:3],
        environment=os.environ,
        home=Path.home(),
        folder=folder,
        study=study,
        capacity=_capacity(folder),
        run=_run,
        program=shutil.which,
        text_of=_text_of,
        is_file=Path.is_file,
        brought=lambda path: _brought(path, roots),
        key_text=lambda: public_text(load_key(default_key_path())),
        get=http.get,
        post=http.post,
    )


def _study(folder: Path) -> Study | TrapError | None:
    try:
        find_root(folder)
    except StudyError:
        return None
    try:
        return open_study(folder)
    except TrapError as error:
        return error


def _run(arguments: Sequence[str], limit_s: float) -> Ran:
    """Run a program without input, secrets or a terminal; it and its children end at the limit."""
    environment = environment_without_secrets() | {"LC_ALL": "C"}
    with tempfile.TemporaryFile() as printed:
        try:
            child = subprocess.Popen(
                list(arguments),
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        except OSError:
            return Ran(None)
        with child:
            try:
                code: int | None = child.wait(limit_s)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
        printed.seek(0)
        return Ran(code, printed.read(_OUTPUT_BYTES).decode("utf-8", "replace"))


def _capacity(folder: Path) -> Capacity:
    import psutil

    shm = Path("/dev/shm")  # noqa: S108
    usable = shm.is_dir() and os.access(shm, os.W_OK)
    return Capacity(
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        disk_free_bytes=shutil.disk_usage(folder).free,
        shm_free_bytes=shutil.disk_usage(shm).free if usable else None,
    )


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(1_000_000).decode("utf-8", "replace")
    except OSError:
        return ""


def _brought(python: Path, roots: Sequence[Path]) -> bool:
    """Whether an environment may have come with a repository that was cloned.

    Below the working folder or the study it must be ignored or unknown to git
    as a whole: a Python runs code of the environment that it lies in before
    it runs ours. Links to it are followed first, links inside are not.
    """
    environment = python.absolute().parent.resolve().parent
    if not any(environment.is_relative_to(root.resolve()) for root in roots):
        return False
    try:
        return run_git(["ls-files", "-z", "--", "."], environment).stdout != b""
    except TrapError:
        return True
