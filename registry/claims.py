"""Claims about a repository that was not made with this tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from registry.errors import DraftError
from registry.schema_check import check
from registry.strict_yaml import Document, Path, load
from registry.study_settings import GitHubRepository
from registry.timestamps import from_rfc3339


@dataclass(frozen=True)
class ClaimedRun:
    """A run and its start by its own clock, RFC 3339 in UTC: the claimant's
    word. `source` says where the claimant has it from.
    """

    name: str
    started_at: str
    source: str | None = None


@dataclass(frozen=True)
class Claim:
    """What is said of one tag.

    `commit` is a commit's id or its beginning; `tag_kind` is annotated,
    lightweight or any; `files` maps paths in it to SHA-256 digests;
    `pushed_at` (UTC) is the claimed time of the push, which may be off by
    `within_s`; `runs` are those that it is said to precede, `before` the
    words for it where a claim states no starts.
    """

    id: str
    tag: str
    commit: str
    tag_kind: str
    files: tuple[tuple[str, str], ...]
    pushed_at: str | None
    within_s: float
    runs: tuple[ClaimedRun, ...]
    before: str | None = None


@dataclass(frozen=True)
class Claims:
    """A claims file: what about, where it is claimed, the repository, the claims."""

    title: str
    source: str
    github: GitHubRepository | None
    claims: tuple[Claim, ...]


def parse_claims(text: bytes, name: str) -> Claims:
    """Read a claims file strictly; raises DraftError or ManyErrors."""
    document = load(text, name)
    if not isinstance(document.value, dict):
        raise DraftError("a claims file is a mapping", where=name, remedy="start with `schema: trap-claims-1`")
    check(document, "claims")
    value = document.value
    claims = tuple(_claim(document, number, entry) for number, entry in enumerate(value["claims"]))
    ids = [claim.id for claim in claims]
    twice = next((identity for identity in ids if ids.count(identity) > 1), None)
    if twice:
        raise DraftError("two claims have one id", where=name, value=twice, remedy="give each its own")
    github = GitHubRepository(**value["github"]) if "github" in value else None
    return Claims(value["title"], value["source"], github, claims)


def _claim(document: Document, number: int, entry: dict[str, Any]) -> Claim:
    place: Path = ("claims", number)
    pushed = entry.get("pushed")
    return Claim(
        id=entry["id"],
        tag=entry["tag"],
        commit=entry["commit"],
        tag_kind=entry.get("tag_kind", "any"),
        files=tuple((file["path"], file["sha256"]) for file in entry.get("files", [])),
        pushed_at=_time(document, (*place, "pushed", "time"), pushed["time"]) if pushed else None,
        within_s=float(pushed.get("within_s", 1)) if pushed else 0.0,
        runs=tuple(
            ClaimedRun(
                run["name"], _time(document, (*place, "runs", n, "started_at"), run["started_at"]), run.get("source")
            )
            for n, run in enumerate(entry.get("runs", []))
        ),
        before=entry.get("before"),
    )


def _time(document: Document, path: Path, text: str) -> str:
    found = from_rfc3339(text)
    if found is None:
        raise DraftError(
            "not a time with an offset",
            where=document.where(path),
            value=text,
            remedy='write it as RFC 3339, "2026-11-05T00:24:47-06:00" say',
        )
    return found
