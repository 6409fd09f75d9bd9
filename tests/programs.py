"""Stand-ins for programs: scripts that come first on PATH."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

SLURM_PROGRAMS = ("sbatch", "srun", "squeue", "sacct", "scancel", "scontrol")


def program(folder: Path, name: str, script: str) -> None:
    """A shell script of this name."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def first_on_path(patch: pytest.MonkeyPatch, folder: Path, scripts: Mapping[str, str]) -> None:
    """Scripts by name in this folder, found before any other program."""
    for name, script in scripts.items():
        program(folder, name, script)
    patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
