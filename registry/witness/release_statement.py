"""What an immutable release's attestation states, taken from the signed bytes.

An in-toto statement (v1) of predicate type `release` (v0.1 or v0.2). GitHub
adds `repository`, `repositoryId` and `tag`. Subjects: the tag, as a package
URL with the SHA of the object that the tag's ref named, and each asset with
its SHA-256.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from registry.canonical import load_json
from registry.errors import CapExceeded, DraftError, WitnessError
from registry.plain_text import plain
from registry.witness.github_answers import REPOSITORY

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPES = ("https://in-toto.io/attestation/release/v0.1", "https://in-toto.io/attestation/release/v0.2")
MAX_SUBJECTS = 2_000
_DIGESTS = {"sha1": re.compile(r"[0-9a-f]{40}"), "sha256": re.compile(r"[0-9a-f]{64}")}
_NUMBER = re.compile(r"[1-9][0-9]{0,15}")


@dataclass(frozen=True)
class ReleaseStatement:
    """A release of `tag` in a repository.

    `tag_digest` is `sha1:...` (or `sha256:...`) of the object that the tag's
    ref named; `asset_digests` are `sha256:...` of the release's files.
    """

    tag: str
    repository: str
    repository_id: int
    tag_digest: str
    asset_digests: tuple[str, ...]


def parse_release_statement(payload: bytes, where: str) -> ReleaseStatement:
    """The statement in a DSSE payload; WitnessError where it is another kind or malformed."""
    try:
        value = load_json(payload, where)
    except (DraftError, CapExceeded) as error:
        raise WitnessError(f"the attested statement is not usable JSON: {error}", where=where) from None
    kind = value.get("predicateType") if isinstance(value, dict) else None
    if kind not in PREDICATE_TYPES or value.get("_type") != STATEMENT_TYPE:
        raise WitnessError("the attestation is not one of a release", where=where, value=plain(kind, 200))
    statement = _statement(value.get("predicate"), value.get("subject"))
    if statement is None:
        raise WitnessError("the attested statement is malformed or contradicts itself", where=where)
    return statement


def _statement(predicate: Any, subjects: Any) -> ReleaseStatement | None:
    if not isinstance(predicate, dict) or not isinstance(subjects, list) or len(subjects) > MAX_SUBJECTS:
        return None
    tag, repository, number, purl = (predicate.get(name) for name in ("tag", "repository", "repositoryId", "purl"))
    if not (isinstance(tag, str) and isinstance(repository, str) and isinstance(number, str) and isinstance(purl, str)):
        return None
    named = REPOSITORY.fullmatch(repository) and _NUMBER.fullmatch(number)
    if not named or unquote(purl) != f"pkg:github/{repository}@{tag}":
        return None
    digests = [(subject.get("uri") == purl, _digest(subject.get("digest"))) for subject in _objects(subjects)]
    tags = [digest for is_tag, digest in digests if is_tag]
    if len(tags) != 1 or len(digests) != len(subjects) or any(digest is None for _, digest in digests):
        return None
    assets = tuple(str(digest) for is_tag, digest in digests if not is_tag)
    return ReleaseStatement(tag, repository, int(number), str(tags[0]), assets)


def _objects(items: list[Any]) -> list[dict[str, Any]]:
    return [item for item in items if isinstance(item, dict)]


def _digest(value: Any) -> str | None:
    """`algorithm:hex` of a digest set with one entry."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    ((algorithm, digest),) = value.items()
    form = _DIGESTS.get(algorithm)
    return f"{algorithm}:{digest}" if form and isinstance(digest, str) and form.fullmatch(digest) else None
