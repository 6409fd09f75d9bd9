"""The push logs that speak of claims: asked now, kept by others, or copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from registry.errors import WitnessError
from registry.study_settings import GitHubRepository
from registry.witness.github_archive import Archive
from registry.witness.sightings import PushLog


def answered_log(archive: Archive, name: str, github: GitHubRepository | None, asked: Sequence[PushLog]) -> PushLog:
    """Archived answers as a copy of GitHub's log. What GitHub answers now in
    another way is a contradiction; answers about another repository are
    refused with WitnessError.
    """
    if github is None or archive.api != github.api or not _same_repository(archive, github):
        raise WitnessError(
            "the archived answers are about another repository than the claims",
            where=name,
            value=f"{archive.repository} ({archive.repository_id}) at {archive.api}",
            remedy="name the repository under github: in the claims, or leave --answers out",
        )
    log = PushLog(
        f"GitHub ({urlsplit(archive.api).netloc})",
        archive.rows,
        "archived answers, a copy",
        independent=False,
        sees_tags=False,
        confirm="ask again with --online",
    )
    now = {row.id: row for row_log in asked if row_log.independent for row in row_log.rows}
    changed = next((row for row in archive.rows if now.get(row.id, row) != row), None)
    if changed:
        return replace(log, problem=f"row {changed.id} of the archived answers is not what GitHub answers now")
    return log


def _same_repository(archive: Archive, github: GitHubRepository) -> bool:
    """By number where the claims state it, since names move."""
    if github.repository_id is not None:
        return archive.repository_id == github.repository_id
    return archive.repository.lower() == github.repository.lower()
