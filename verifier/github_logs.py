"""GitHub's push logs: as the author archived them, as GitHub answers now, and
as GH Archive recorded them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from registry.errors import TrapError, WitnessError
from registry.mirror import Mirror
from registry.study_settings import StudySettings
from registry.timestamps import moment
from registry.witness.archive import GITHUB_FOLDER
from registry.witness.gh_archive import find_pushes
from registry.witness.github_answers import Status
from registry.witness.github_archive import read_archive
from registry.witness.policy import Policy
from registry.witness.rows import PushRow
from registry.witness.sightings import PushLog, Sighting
from verifier.online import ARCHIVED, ONLINE, Hours, Online

MAX_COMPARED = 20
GAPPED = "GH Archive"
"""The one log in which a missing row says nothing."""


def github_logs(
    mirror: Mirror, head: str, settings: StudySettings, policy: Policy, online: Online
) -> Iterable[PushLog]:
    """What GitHub answers now, and the archived answers that it may contradict."""
    name = _github_name(settings)
    rows, problem = _archived_rows(mirror, head, settings)
    asked = next(iter(asked_logs(settings, online)), None)
    if asked:
        now = {row.id: row for row in asked.rows}
        changed = next((row for row in rows if now.get(row.id, row) != row), None)
        if changed:
            problem = f"row {changed.id} of the archived answers is not what GitHub answers now"
        yield asked
    if rows or problem:
        yield PushLog(
            name,
            tuple(rows),
            ARCHIVED,
            independent=False,
            sees_tags=False,
            confirm=_how_to_confirm(rows, asked, settings, policy),
            problem=problem,
        )


def _github_name(settings: StudySettings) -> str:
    return f"GitHub ({urlsplit(settings.github.api).netloc})" if settings.github else "GitHub"


def _how_to_confirm(
    rows: Sequence[PushRow], asked: PushLog | None, settings: StudySettings, policy: Policy
) -> str | None:
    """What archived rows lack; None where GitHub shows all of them now. Rows
    may expire, so that one is gone is no contradiction.
    """
    if asked and asked.independent:
        shown = {row.id for row in asked.rows}
        gone = any(row.id not in shown for row in rows)
        return "GitHub's log does not show all of these pushes now" if gone else None
    if settings.github and settings.github.api not in policy.github_apis:
        return f"your policy does not name {settings.github.api}"
    return "run trapkit verify --online"


def asked_logs(settings: StudySettings, online: Online) -> list[PushLog]:
    """What GitHub answered now, if it was asked; a log without rows where it
    is worth nothing.
    """
    if online.github is None:
        return []
    nothing = PushLog(_github_name(settings), (), "asked", independent=False, sees_tags=False)
    if isinstance(online.github, str):
        return [replace(nothing, source=f"asked: {online.github}")]
    expected = settings.github.repository_id if settings.github else None
    if expected not in (None, online.github_repository_id):
        words = f"repository {online.github_repository_id} has this name now, the study's is {expected}"
        return [replace(nothing, source=words)]
    return [replace(nothing, rows=online.github, source=ONLINE, independent=True)]


def _archived_rows(mirror: Mirror, head: str, settings: StudySettings) -> tuple[Sequence[PushRow], str | None]:
    """The rows of all archived answers together; contradictions as a problem."""
    found: dict[int, PushRow] = {}
    try:
        for path in mirror.list_files(head, GITHUB_FOLDER):
            archive = read_archive(mirror.blob(head, path) or b"", path)
            _check_repository(archive.repository_id, settings, path)
            for row in archive.rows:
                if found.setdefault(row.id, row) != row:
                    raise WitnessError(f"row {row.id} stands differently in another archived answer", where=path)
    except TrapError as error:
        return (), f"{error.where}: {error.what}"
    return list(found.values()), None


def _check_repository(number: int, settings: StudySettings, path: str) -> None:
    expected = settings.github.repository_id if settings.github else None
    if expected is not None and number != expected:
        raise WitnessError(f"the answers are of repository {number}, the study's is {expected}", where=path)


def compared(log: PushLog, commits: Iterable[str], contains: Callable[[str, str], bool | None]) -> PushLog:
    """A log asked online, with GitHub's own comparison where the first row of
    a commit may be one whose commit the repository lacks.
    """
    if not log.independent or log.sees_tags:
        return log
    first = dict(log.first)
    for commit in commits:
        for row in log.unseen[:MAX_COMPARED]:
            if commit not in first and _contains(contains, commit, row.after):
                first[commit] = row
    return replace(log, first=first)


def _contains(contains: Callable[[str, str], bool | None], commit: str, head: str) -> bool:
    try:
        return contains(commit, head) is True
    except TrapError:
        return False


def status_sightings(
    commit: str, statuses: Callable[[str], Sequence[Status]], settings: StudySettings
) -> list[Sighting]:
    """A commit's earliest status, asked of GitHub now: it had the commit then."""
    try:
        times = [status.created_at for status in statuses(commit)]
    except TrapError:
        return []
    name = _github_name(settings)
    first = min(times, key=moment, default=None)
    if first is None:
        return []
    return [Sighting(name, "status", first, f"a commit status, {ONLINE}", True, commit, dated=False)]


def hours_log(settings: StudySettings, online: Online, hours: Hours) -> PushLog:
    """Pushes that GH Archive recorded: presence proves, absence does not. It
    knows repositories by number: the one stated, else what GitHub answered now.
    """
    nothing = PushLog(GAPPED, (), "", independent=True, sees_tags=False)
    github = settings.github
    number = (github.repository_id if github else None) or online.github_repository_id
    if github is None or number is None:
        remedy = "add repository_id to the claims or to study.yaml, or ask --online"
        return replace(nothing, source=f"not searched: it knows repositories by number; {remedy}")
    files = sorted(hours.folder.glob("*.json.gz"))
    if not files:
        return replace(nothing, source="; ".join(("no hours are in the folder", *hours.problems)))
    found = find_pushes(files, number)
    words = [f"{found.skipped} lines skipped"] * bool(found.skipped) + [f"unread: {text}" for text in found.broken]
    source = "; ".join(("hours of the auditor's own", *words, *hours.problems))
    return replace(nothing, rows=found.rows, source=source)
