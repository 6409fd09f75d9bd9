"""The push logs of every witness, as copies found and as asked online."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from registry.errors import TrapError
from registry.guarded_git import run_git
from registry.mirror import Mirror
from registry.study_settings import StudySettings
from registry.witness.archive import LOCAL_LOG, SERVER_CHECKPOINT, SERVER_LOG
from registry.witness.checkpoint import chain_name, read_checkpoint, verify_checkpoint
from registry.witness.local import CHAIN, live_log
from registry.witness.log import parse_log
from registry.witness.policy import Policy
from registry.witness.served import broken_promises
from registry.witness.sightings import Graph, PushLog, first_rows
from verifier.github_logs import github_logs, hours_log
from verifier.online import ARCHIVED, ONLINE, Hours, Online, ServedLog


def push_logs(
    mirror: Mirror,
    head: str,
    root: Path | None,
    settings: StudySettings,
    policy: Policy,
    online: Online,
    hours: Hours | None = None,
) -> list[PushLog]:
    """Every log there is, each judged against the repository's commits; a
    local witness's own only where its study's `root` is given.
    """
    logs = [
        *_local(mirror, head, root, settings),
        *_served(mirror, head, settings, policy, online),
        *github_logs(mirror, head, settings, policy, online),
        *([hours_log(settings, online, hours)] if hours else []),
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
        return
    source = f"{ARCHIVED} ({online.server})" if isinstance(online.server, str) else ARCHIVED
    if log is not None:
        yield _signed(name, ServedLog(log, checkpoint or b""), server.repository, server.key, policy, source, None)


def _differs(archived: bytes | None, asked: bytes) -> bool:
    return archived is not None and not asked.startswith(archived)


def _signed(
    name: str, served: ServedLog, repository: str, key: str, policy: Policy, source: str, problem: str | None
) -> PushLog:
    """A served log, independent where a key of the policy signed all of it,
    and it shows nothing that a witness server never lets happen.
    """
    empty = PushLog(name, (), source, independent=False, sees_tags=True, draws=chain_name(key), problem=problem)
    try:
        rows = parse_log(served.log, SERVER_LOG)
        checkpoint = read_checkpoint(served.checkpoint, SERVER_CHECKPOINT)
        trusted = [each.key for each in policy.witness_servers]
        signer = verify_checkpoint(checkpoint, repository, served.log, [key, *trusted])
    except TrapError as error:
        return replace(empty, source="unreadable", problem=problem or f"{error.where or name}: {error.what}")
    covered = replace(empty, rows=tuple(rows[: checkpoint.rows]), draws=chain_name(signer))
    broken = next(iter(broken_promises(covered.rows)), None)
    if broken:
        return replace(covered, source=source, problem=problem or f"the {name} broke its promises: {broken}")
    if signer in trusted:
        return replace(covered, independent=True, source=f"{source}, signed by a key of your policy")
    confirm = f"your policy does not name the key {signer}"
    return replace(covered, confirm=confirm, source=f"{source}, signed by a key that only the study names")


def _rewritten(copy: str, original: str) -> str:
    return f"{copy} is not the beginning of {original}: one of them was rewritten"
