"""What an auditor asked of witnesses now: values that a verification judges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from registry.study_settings import StudySettings
from registry.witness.github_answers import Answer, Status
from registry.witness.policy import Policy
from registry.witness.rows import PushRow

ARCHIVED = "archived by the author"
ONLINE = "asked online"


@dataclass(frozen=True)
class ServedLog:
    """A witness server's log and its signed checkpoint, as raw bytes."""

    log: bytes
    checkpoint: bytes


@dataclass(frozen=True)
class Online:
    """What was asked of witnesses now.

    `github` and `server` are None where one was not asked, a text where it
    could not be. `contains` and `statuses` ask GitHub about one commit more;
    `answers` are GitHub's raw ones, and grow as it is asked.
    """

    github: tuple[PushRow, ...] | str | None = None
    github_repository_id: int | None = None
    contains: Callable[[str, str], bool | None] | None = None
    statuses: Callable[[str], Sequence[Status]] | None = None
    server: ServedLog | str | None = None
    answers: Sequence[Answer] = ()


@dataclass(frozen=True)
class Hours:
    """A folder of GH Archive's hours, and why others could not be had."""

    folder: Path
    problems: tuple[str, ...] = ()


Ask = Callable[[StudySettings, Policy], Online]
