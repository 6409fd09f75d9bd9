"""The push logs of every witness, as copies found and as asked online."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from registry.errors import TrapError, WitnessError
from registry.guarded_git import run_git
from registry.mirror import Mirror
from registry.study_settings import StudySettings
from registry.timestamps import moment
from registry.witness.archive import GITHUB_FOLDER, LOCAL_LOG, SERVER_CHECKPOINT, SERVER_LOG
from registry.witness.checkpoint import chain_name, read_checkpoint, verify_checkpoint
from registry.witness.gh_archive import find_pushes
from registry.witness.github_answers import Status
from registry.witness.github_archive import read_archive
from registry.witness.local import CHAIN, live_log
from registry.witness.log import parse_log
from registry.witness.policy import Policy
from registry.witness.rows import PushRow
from registry.witness.sightings import Graph, PushLog, Sighting, first_rows

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
    could not be. `contains` and `statuses` ask GitHub about one commit more.
    """

    asked: bool = False
    github: tuple[PushRow, ...] | str | None = None
    github_repository_id: int | None = None
    contains: Callable[[str, str], bool | None] | None = None
    statuses: Callable[[str], Sequence[Status]] | None = None
    server: ServedLog | str | None = None


Ask = Callable[[StudySettings, Policy], Online]


def push_logs(
    mirror: Mirror,
    head: str,
    root: Path | None,
    settings: StudySettings,
    policy: Policy,
    online: Online,
    hours: Path | None = None,
) -> list[PushLog]:
    """Every log there is, each judged against the repository's commits; a
    local witness's own only where its study's `root` is given.
    """
    logs = [
        *_local(mirror, head, root, settings),
        *_served(mirror, head, settings, policy, online),
        *_github(mirror, head, settings, policy, online),
        *_gh_archive(settings, hours),
    ]
    graph = mirror.parents() if logs else {}
    return [against(log, graph) for log in logs]


def against(log: PushLog, graph: Graph) -> PushLog:
    """A log with the first row of every commit of the repository."""
    first, unseen = first_rows(log.rows, graph)
    return replace(log, first=first, unseen=unseen)


def _local(mirror: Mirror, head: str, root: Path | None, settings: StudySettings) -> Iterable[PushLog]:
    archived = mirror.blob(head, LOCAL_LOG)
    if archived is None and "local" not in settings.witnesses:
        return
    key = f"remote.{settings.remote}.url"
    url = run_git(["config", "--local", "--get", key], root, check=False).stdout if root else b""
    empty = PushLog("local witness", (), "unreadable", independent=False, sees_tags=True, draws=CHAIN)
    try:
        live = live_log(url.decode("utf-8", "replace").strip()) if url else None
        if live is None and archived is None:
            return
        rows = parse_log(live if live is not None else archived or b"", LOCAL_LOG)
    except TrapError as error:
        yield replace(empty, problem=f"{error.where}: {error.what}")
        return
    found = replace(empty, rows=tuple(rows), source="the author's machine" if live is not None else ARCHIVED)
    if live is not None and archived is not None and not live.startswith(archived):
        found = replace(found, problem=_rewritten("the archived push log", "the witness's own"))
    yield found


def _served(mirror: Mirror, head: str, settings: StudySettings, policy: Policy, online: Online) -> Iterable[PushLog]:
    server = settings.server
    log, checkpoint = mirror.blob(head, SERVER_LOG), mirror.blob(head, SERVER_CHECKPOINT)
    if server is None:
        return
    name = f"witness server {urlsplit(server.url).netloc}"
    asked = online.server if isinstance(online.server, ServedLog) else None
    if asked:
        problem = _rewritten("the archived push log", "the server's own") if _differs(log, asked.log) else None
        yield _signed(name, asked, server.repository, server.key, policy, ONLINE, problem)
    elif log is not None:
        yield _signed(name, ServedLog(log, checkpoint or b""), server.repository, server.key, policy, ARCHIVED, None)


def _differs(archived: bytes | None, asked: bytes) -> bool:
    return archived is not None and not asked.startswith(archived)


def _signed(
    name: str, served: ServedLog, repository: str, key: str, policy: Policy, source: str, problem: str | None
) -> PushLog:
    """A served log, independent where a key of the policy signed all of it."""
    empty = PushLog(name, (), source, independent=False, sees_tags=True, draws=chain_name(key), problem=problem)
    try:
        rows = parse_log(served.log, SERVER_LOG)
        checkpoint = read_checkpoint(served.checkpoint, SERVER_CHECKPOINT)
        trusted = [each.key for each in policy.witness_servers]
        signer = verify_checkpoint(checkpoint, repository, served.log, [key, *trusted])
    except TrapError as error:
        return replace(empty, source="unreadable", problem=problem or f"{error.where or name}: {error.what}")
    covered = replace(empty, rows=tuple(rows[: checkpoint.rows]), draws=chain_name(signer))
    if signer in trusted:
        return replace(covered, independent=True, source=f"{source}, signed by a key of your policy")
    confirm = f"your policy does not name the key {signer}"
    return replace(covered, confirm=confirm, source=f"{source}, signed by a key that only the study names")


def _github(mirror: Mirror, head: str, settings: StudySettings, policy: Policy, online: Online) -> Iterable[PushLog]:
    name = _github_name(settings)
    rows, problem = _archived_rows(mirror, head, settings)
    asked = _asked(name, settings, online)
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
            confirm=None if asked and asked.independent else _how_to_confirm(settings, policy),
            problem=problem,
        )


def _how_to_confirm(settings: StudySettings, policy: Policy) -> str:
    if settings.github and settings.github.api not in policy.github_apis:
        return f"your policy does not name {settings.github.api}"
    return "run trapkit verify --online"


def _github_name(settings: StudySettings) -> str:
    return f"GitHub ({urlsplit(settings.github.api).netloc})" if settings.github else "GitHub"


def _asked(name: str, settings: StudySettings, online: Online) -> PushLog | None:
    """What GitHub answered now; a log without rows where it is worth nothing."""
    if online.github is None:
        return None
    nothing = PushLog(name, (), "asked", independent=False, sees_tags=False)
    if isinstance(online.github, str):
        return replace(nothing, source=f"gave no answer: {online.github}")
    expected = settings.github.repository_id if settings.github else None
    if expected not in (None, online.github_repository_id):
        words = f"repository {online.github_repository_id} has this name now, the study's is {expected}"
        return replace(nothing, source=words)
    return replace(nothing, rows=online.github, source=ONLINE, independent=True)


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
    return [Sighting(name, "status", first, f"a commit status, {ONLINE}", True, commit)] if first else []


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


def _gh_archive(settings: StudySettings, hours: Path | None) -> Iterable[PushLog]:
    """Pushes that GH Archive recorded: presence proves, absence does not."""
    number = settings.github.repository_id if settings.github else None
    if hours is None or number is None:
        return
    found = find_pushes(sorted(hours.glob("*.json.gz")), number)
    words = [f"{found.skipped} lines skipped"] * bool(found.skipped) + [f"unread: {text}" for text in found.broken]
    source = "; ".join(("hours of the auditor's own", *words))
    yield PushLog("GH Archive", found.rows, source, independent=True, sees_tags=False)


def _rewritten(copy: str, original: str) -> str:
    return f"{copy} is not the beginning of {original}: one of them was rewritten"
