"""Checks of what every command needs, and of the machine under it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from cli.workflows.doctor import DEGRADED, MISSING, NOT_ASKED, OK, UNKNOWN, Check, Probes, Verdict
from registry.errors import TrapError

OLDEST_PYTHON = (3, 11)
OLDEST_GIT = (2, 34)
REPAIRED_GIT = {39: 4, 40: 2, 41: 1, 42: 2, 43: 4, 44: 1, 45: 1}
"""By minor version of git 2: the patch from which a hostile clone cannot run
code (CVE-2024-32002, CVE-2024-32004); later minors have it from their first."""

COMPILE_LIMIT_S = 300.0
PROGRAM_LIMIT_S = 10.0
_GIB = 2**30
_MIB = 2**20
_CORE_CODE = """
import runners.simulated.warm
from runners.simulated import compiled
print("interpreted" if compiled.INTERPRETED else compiled._FOLDER)
"""


def python(probes: Probes) -> Verdict:
    """Python, new enough."""
    version = ".".join(map(str, probes.python))
    if probes.python[:2] < OLDEST_PYTHON:
        return Verdict(MISSING, version, "install Python 3.11 or newer")
    return Verdict(OK, version)


def git(probes: Probes) -> Verdict:
    """git, new enough for authors, and for auditors of strangers' clones."""
    ran = probes.run(["git", "--version"], PROGRAM_LIMIT_S)
    found = re.search(r"git version ([0-9]+)\.([0-9]+)(?:\.([0-9]+))?", ran.output)
    if ran.code != 0 or found is None:
        return Verdict(MISSING, "no git on PATH answers", "install git 2.45.1 or newer")
    major, minor, patch = (int(part or 0) for part in found.groups())
    version = f"{major}.{minor}.{patch}"
    if (major, minor) < OLDEST_GIT:
        return Verdict(MISSING, version, "install git 2.45.1 or newer; authors need 2.34 at least")
    if major == 2 and (minor < min(REPAIRED_GIT) or patch < REPAIRED_GIT.get(minor, 0)):
        return Verdict(
            DEGRADED,
            f"{version}: enough for your own studies; a hostile clone can make it run code",
            "before auditing others: git 2.39.4, 2.45.1 or newer",
        )
    return Verdict(OK, version)


def git_identity(probes: Probes) -> Verdict:
    """The name that tags and commits bear."""
    if probes.run(["git", "var", "GIT_COMMITTER_IDENT"], PROGRAM_LIMIT_S).code != 0:
        return Verdict(
            MISSING, "git knows no name and mail", "git config --global user.name NAME; the same for user.email"
        )
    return Verdict(OK, "name and mail are set")


def compiled_core(probes: Probes) -> Verdict:
    """The simulator's machine code: compiles, and is kept."""
    # -P: the working folder may be a stranger's clone, and is no place to import from.
    ran = probes.run([sys.executable, "-P", "-c", _CORE_CODE], COMPILE_LIMIT_S)
    said = ran.output.strip().splitlines()[-1:]
    if ran.code != 0 or not said:
        return Verdict(MISSING, "the simulator's core does not load", "install trapkit anew; see numba's requirements")
    if said == ["interpreted"]:
        return Verdict(DEGRADED, "interpreted, and so very much slower", "unset NUMBA_DISABLE_JIT")
    if Path(said[0]).parent.name != "trapkit":
        return Verdict(DEGRADED, "compiled anew by every process", "set NUMBA_CACHE_DIR to a folder you can write")
    return Verdict(OK, "compiled, and kept between processes")


def signing_key(probes: Probes) -> Verdict:
    """The key that signs registrations, and whether it is this study's."""
    try:
        text = probes.key_text()
    except TrapError as error:
        return Verdict(MISSING, error.what, "trapkit init makes one; or TRAP_SIGNING_KEY names yours")
    study = probes.study
    if study is None or isinstance(study, TrapError):
        return Verdict(OK, "there, readable, Ed25519")
    if study.settings.signing_key != text:
        return Verdict(DEGRADED, "there, but not this study's", "set TRAP_SIGNING_KEY to the key of study.yaml")
    return Verdict(OK, "the key of this study")


def study(probes: Probes) -> Verdict:
    """The study around the working folder."""
    if probes.study is None:
        return Verdict(NOT_ASKED, "no study around this folder")
    if isinstance(probes.study, TrapError):
        return Verdict(MISSING, probes.study.diagnostics(), "put study.yaml right")
    return Verdict(OK, probes.study.settings.name)


def cores(probes: Probes) -> Verdict:
    """Processor cores and memory."""
    capacity = probes.capacity
    detail = f"{capacity.cores} cores, {capacity.memory_bytes / _GIB:.1f} GiB of memory"
    if capacity.cores < 2 or capacity.memory_bytes < 2 * _GIB:
        return Verdict(DEGRADED, detail, "2 cores and 2 GiB let simulations run beside each other")
    return Verdict(OK, detail)


def disk(probes: Probes) -> Verdict:
    """Free space where you are."""
    free = probes.capacity.disk_free_bytes
    detail = f"{free / _GIB:.1f} GiB free in this folder"
    if free < 50 * _MIB:
        return Verdict(MISSING, detail, "free some space: one simulated run takes a few MiB")
    return Verdict(OK, detail) if free >= _GIB else Verdict(DEGRADED, detail, "large studies need 1 GiB or more")


def clock(probes: Probes) -> Verdict:
    """Whether something keeps the clock right."""
    told = probes.run(["timedatectl", "show", "-p", "NTPSynchronized", "--value"], PROGRAM_LIMIT_S)
    if told.code == 0 and told.output.strip() in ("yes", "no"):
        synchronised = told.output.strip() == "yes"
    else:
        tracking = probes.run(["chronyc", "-n", "tracking"], PROGRAM_LIMIT_S)
        found = re.search(r"^Leap status\s*:\s*(.+)$", tracking.output, re.MULTILINE)
        if tracking.code != 0 or found is None:
            return Verdict(UNKNOWN, "neither timedatectl nor chronyc tells", "see that the clock is kept by NTP")
        synchronised = found[1].strip() == "Normal"
    if not synchronised:
        return Verdict(DEGRADED, "not synchronised", "turn time synchronisation on: timedatectl set-ntp true")
    return Verdict(OK, "synchronised")


CORE_CHECKS = (
    Check("Python", "runs everything", python, core=True),
    Check("git", "holds studies, registrations and proofs", git, core=True),
    Check("compiled core", "simulated runs, and executing them again", compiled_core, core=True),
    Check("disk", "runs and their records", disk, core=True),
    Check("cores and memory", "several simulations at a time", cores),
    Check("clock", "starts of runs that must follow their registration", clock),
    Check("git identity", "whom registrations name", git_identity),
    Check("signing key", "register, draw, predict", signing_key),
    Check("study", "the author's commands in this folder", study),
)
