"""GitHub's raw answers as one file in a study.

It is the author's copy: read offline it proves nothing about GitHub, but it
shows which answers a claim rests on, and an auditor can ask again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from registry.canonical import canonical_bytes, load_json
from registry.errors import DraftError, WitnessError
from registry.witness.api_base import parse_api_base
from registry.witness.github_answers import (
    REPOSITORY,
    Answer,
    Comparison,
    Status,
    collect_rows,
    parse_activity,
    parse_attestations,
    parse_comparison,
    parse_repository,
    parse_status,
    parse_statuses,
)
from registry.witness.github_paths import Question, question_of
from registry.witness.rows import PushRow

SCHEMA = "trap-github-answers-1"
MAX_ARCHIVE_BYTES = 100_000_000
_FIELDS = {"schema", "api", "repository", "repository_id", "answers"}


@dataclass(frozen=True)
class Archive:
    """What archived answers say; `answers` are the raw ones.

    `repository` is `owner/name` as it was asked for. `comparisons` maps
    (commit, head); `attestations` maps a subject digest to its bundles.
    """

    api: str
    repository: str
    repository_id: int
    rows: tuple[PushRow, ...]
    statuses: tuple[Status, ...]
    comparisons: dict[tuple[str, str], Comparison]
    attestations: dict[str, tuple[dict[str, Any], ...]]
    answers: tuple[Answer, ...]

    def contains(self, commit: str, head: str) -> bool | None:
        """Whether `commit` is `head` or an ancestor of it; None where it was not asked."""
        if commit == head:
            return True
        found = self.comparisons.get((commit, head))
        return found.contained if found else None


def archive_bytes(api: str, repository: str, repository_id: int, answers: Sequence[Answer]) -> bytes:
    """The archive: canonical JSON, the same bytes for the same answers."""
    data = canonical_bytes(
        {
            "schema": SCHEMA,
            "api": api,
            "repository": repository,
            "repository_id": repository_id,
            "answers": [{"path": each.path, "status": each.status, "body": each.body} for each in answers],
        }
    )
    if len(data) > MAX_ARCHIVE_BYTES:
        raise WitnessError("GitHub's answers are too large to archive", value=f"{len(data)} bytes")
    return data


def read_archive(data: bytes, name: str) -> Archive:
    """Parse an archive by the parsers that read the answers online.

    Raises WitnessError for a malformed one, or one that holds answers about
    another repository or none that numbers its own.
    """
    try:
        value = load_json(data, name, MAX_ARCHIVE_BYTES)
    except DraftError as error:
        raise WitnessError(f"not an archive of GitHub's answers: {error}", where=name) from None
    if not isinstance(value, dict) or set(value) != _FIELDS or value["schema"] != SCHEMA:
        raise WitnessError(f"not an archive of GitHub's answers ({SCHEMA})", where=name)
    api, repository, number, listed = (value[key] for key in ("api", "repository", "repository_id", "answers"))
    named = isinstance(api, str) and isinstance(repository, str) and REPOSITORY.fullmatch(repository)
    if not (named and type(number) is int and isinstance(listed, list)):
        raise WitnessError("the archive of GitHub's answers is malformed", where=name)
    parse_api_base(api)
    answers = [_answer(each, f"{name}, answer {n}") for n, each in enumerate(listed, 1)]
    return _read(api, repository, number, answers, name)


def _answer(value: Any, where: str) -> Answer:
    if not isinstance(value, dict) or set(value) != {"path", "status", "body"}:
        raise WitnessError("an archived answer is malformed", where=where)
    path, status, body = value["path"], value["status"], value["body"]
    if not (isinstance(path, str) and type(status) is int and isinstance(body, str)):
        raise WitnessError("an archived answer is malformed", where=where)
    return Answer(path, status, body)


def _read(api: str, repository: str, number: int, answers: list[Answer], name: str) -> Archive:
    pages: list[list[PushRow]] = []
    statuses: dict[int, Status] = {}
    comparisons: dict[tuple[str, str], Comparison] = {}
    attestations: dict[str, tuple[dict[str, Any], ...]] = {}
    numbers = set()
    for position, (path, status, body) in enumerate(((a.path, a.status, a.body) for a in answers), 1):
        where = f"{name}, answer {position}"
        question = _question(path, repository, number, where)
        if status not in (200, 201):
            continue
        if question.kind == "repository":
            numbers.add(parse_repository(body, where).id)
        elif question.kind == "activity":
            pages.append(parse_activity(body, where))
        elif question.kind == "compare":
            base, _, head = question.subject.partition("...")
            comparisons[base, head] = _about(base, parse_comparison(body, where), where)
        elif question.kind == "statuses":
            _add(statuses, parse_statuses(body, where, question.subject), where)
        elif question.kind == "status":
            _add(statuses, [parse_status(body, where, question.subject)], where)
        else:
            earlier = attestations.get(question.subject, ())
            attestations[question.subject] = (*earlier, *parse_attestations(body, where))
    if numbers != {number}:
        raise WitnessError("the archived answers number another repository, or none", where=name, value=number)
    rows = collect_rows(pages, name)
    return Archive(
        api, repository, number, tuple(rows), tuple(statuses.values()), comparisons, attestations, tuple(answers)
    )


def _add(statuses: dict[int, Status], found: list[Status], where: str) -> None:
    for status in found:
        if statuses.setdefault(status.id, status) != status:
            raise WitnessError("two different commit statuses have one id", where=where, value=status.id)


def _question(path: str, repository: str, number: int, where: str) -> Question:
    question = question_of(path)
    if question is None:
        raise WitnessError("an archived answer to something that is never asked", where=where, value=path[:200])
    if question.number != number if question.number is not None else question.name != repository:
        raise WitnessError("an archived answer about another repository", where=where, value=path[:200])
    return question


def _about(base: str, comparison: Comparison, where: str) -> Comparison:
    if comparison.base != base:
        raise WitnessError("the archived comparison is of another commit", where=where, value=comparison.base)
    return comparison
