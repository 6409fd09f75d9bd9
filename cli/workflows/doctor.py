"""What works on this machine: checks over probes, none of which decides alone.

A check is a pure function of `Probes`; whatever touches the machine is a field
of these, so that every answer a machine can give is one that a test can give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from registry.errors import TrapError
from registry.study import Study

OK, DEGRADED, MISSING, UNKNOWN, NOT_ASKED = "ok", "degraded", "missing", "unknown", "not asked"


@dataclass(frozen=True)
class Ran:
    """A program that was run: `code` is None where it is not there, may not be run, or did not end in time."""

    code: int | None
    output: str = ""


@dataclass(frozen=True)
class Capacity:
    """What the machine has; `shm_free_bytes` is None without /dev/shm."""

    cores: int
    memory_bytes: int
    disk_free_bytes: int
    shm_free_bytes: int | None


@dataclass(frozen=True)
class Probes:
    """The machine as checks see it.

    `run(arguments, limit_s)` runs a program; `brought(path)` says whether a
    program may have come with a repository, and so is not run; `study` is the
    study around `folder`, None where there is none, or the error of one that
    cannot be read. `get` and `post` are `registry.witness.http`'s.
    """

    python: tuple[int, int, int]
    environment: Mapping[str, str]
    home: Path
    folder: Path
    study: Study | TrapError | None
    capacity: Capacity
    run: Callable[[Sequence[str], float], Ran]
    program: Callable[[str], str | None]
    text_of: Callable[[Path], str]
    is_file: Callable[[Path], bool]
    brought: Callable[[Path], bool]
    key_text: Callable[[], str]
    get: Callable[..., bytes]
    post: Callable[..., bytes]


@dataclass(frozen=True)
class Verdict:
    """What one check found: one of the five states, details, and what to do."""

    status: str
    detail: str
    remedy: str | None = None


@dataclass(frozen=True)
class Check:
    """One thing to look at; `core` ones decide the exit code, `online` ones ask a network."""

    name: str
    purpose: str
    look: Callable[[Probes], Verdict]
    core: bool = False
    online: bool = False


@dataclass(frozen=True)
class Finding:
    """One line of the report; field names are JSON's."""

    name: str
    status: str
    detail: str
    purpose: str
    remedy: str | None
    core: bool


def examine(checks: Iterable[Check], probes: Probes, *, online: bool) -> list[Finding]:
    """Every check's finding, in order; an error of a check is a finding too."""
    return [
        Finding(check.name, verdict.status, verdict.detail, check.purpose, verdict.remedy, check.core)
        for check in checks
        for verdict in [_verdict(check, probes, online)]
    ]


def _verdict(check: Check, probes: Probes, online: bool) -> Verdict:
    if check.online and not online:
        return Verdict(NOT_ASKED, "--online")
    try:
        return check.look(probes)
    except TrapError as error:
        return Verdict(MISSING, error.what, error.remedy)
    except OSError as error:
        return Verdict(UNKNOWN, f"it could not be looked at: {error.strerror or type(error).__name__}")


def exit_code(findings: Iterable[Finding]) -> int:
    """1 where something that the core needs is missing, else 0: optional parts never fail."""
    return int(any(finding.core and finding.status == MISSING for finding in findings))
