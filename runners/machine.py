"""The machine that a run was made on, as it says of itself."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

import psutil

from registry.plain_text import plain

_LIMIT_S = 20.0


def machine() -> dict[str, Any]:
    """Processor, cores, memory, system, and the GPUs with their driver."""
    return {
        "processor": _processor(),
        "cores": psutil.cpu_count() or 0,
        "memory_bytes": int(psutil.virtual_memory().total),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "gpus": gpus(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return plain(names[0] if names else platform.processor(), 120)


def gpus() -> list[str]:
    """Name, memory and driver of each NVIDIA GPU; empty where none is seen."""
    if shutil.which("nvidia-smi") is None:
        return []
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(query, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return []
    return (
        [plain(line.strip(), 200) for line in said.stdout.splitlines() if line.strip()] if not said.returncode else []
    )
