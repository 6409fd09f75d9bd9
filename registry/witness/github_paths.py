"""Paths of GitHub's API: which question an answer belongs to."""

from __future__ import annotations

import re
from dataclasses import dataclass

_OID = r"(?:[0-9a-f]{40}|[0-9a-f]{64})"
_PATH = re.compile(
    r"/(?:repos/(?P<name>[^/?]+/[^/?]+)|repositories/(?P<number>[0-9]{1,16}))"
    rf"(?:/(?P<activity>activity)"
    rf"|/compare/(?P<compare>{_OID}\.\.\.{_OID})"
    rf"|/commits/(?P<statuses>{_OID})/statuses"
    rf"|/statuses/(?P<status>{_OID})"
    rf"|/attestations/(?P<attestations>sha(?:1|256):[0-9a-f]{{40,64}}))?"
    r"(?:\?[!-~]*)?"
)
_LINK = re.compile(r'<([^<>\s]{1,8000})>((?:\s*;\s*[a-z]+="?[^",;]*"?)*)')
_NEXT = re.compile(r';\s*rel="?next"?\s*(?:;|$)')


@dataclass(frozen=True)
class Question:
    """What was asked about a repository, which is named or numbered.

    `kind` is repository, activity, compare, statuses, status or attestations;
    `subject` the commit, the two commits or the digest, else empty.
    """

    kind: str
    subject: str
    name: str | None
    number: int | None

    def same(self, other: Question | None) -> bool:
        """Whether both ask the same, whatever the repository is called."""
        return other is not None and (self.kind, self.subject) == (other.kind, other.subject)


def question_of(path: str) -> Question | None:
    """The question behind a path below the API's base; None for any other path."""
    match = _PATH.fullmatch(path)
    if not match:
        return None
    kinds = ("activity", "compare", "statuses", "status", "attestations")
    kind = next((kind for kind in kinds if match[kind]), "repository")
    subject = "" if kind in ("repository", "activity") else match[kind]
    return Question(kind, subject, match["name"], int(match["number"]) if match["number"] else None)


def next_link(header: str) -> str | None:
    """The URL of `rel="next"` in a Link header (RFC 8288), None where there is none."""
    return next((url for url, rest in _LINK.findall(header) if _NEXT.search(rest)), None)
