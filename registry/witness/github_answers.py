"""Parsers of GitHub's raw answers: pure, used online and on archives.

Field names and forms: GitHub's OpenAPI description. Everything read here is
hostile; what is malformed is a WitnessError that names the answer and the row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from registry.canonical import load_json
from registry.errors import CapExceeded, DraftError, WitnessError
from registry.plain_text import plain
from registry.timestamps import from_rfc3339
from registry.witness.rows import PushRow

MAX_ROWS = 100_000
OBJECT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}/(?!\.\.?$)[A-Za-z0-9._-]{1,100}")
_REF = re.compile(r"refs/\S{1,294}")
_WORD = re.compile(r"[a-z][a-z_]{0,39}")
_MAX_ID = 2**53
_T = TypeVar("_T")


@dataclass(frozen=True)
class Answer:
    """One raw HTTP answer, as archived: no headers, so no token.

    `path` stands below the API's base, with its query; `body` is the raw text.
    """

    path: str
    status: int
    body: str


@dataclass(frozen=True)
class Repository:
    """A repository: the number that stays when it is renamed, and its name now."""

    id: int
    full_name: str
    private: bool | None


@dataclass(frozen=True)
class Status:
    """A commit status. It can be neither edited nor deleted, and `created_at`
    (UTC) is the server's.
    """

    id: int
    sha: str
    context: str
    description: str | None
    state: str
    created_at: str
    creator: str | None


@dataclass(frozen=True)
class Comparison:
    """What `/compare/{base}...{head}` says of two commits."""

    base: str
    merge_base: str
    status: str

    @property
    def contained(self) -> bool:
        """Whether the base is the head or an ancestor of it."""
        return self.status in ("ahead", "identical")


def parse_activity(body: str, where: str) -> list[PushRow]:
    """The rows of one page of `/activity`, as served.

    A type of activity that GitHub may add later is kept as it is. Hidden
    characters in a ref are spelled out, `U+200D`. Raises WitnessError.
    """
    return [_each(_push_row, row, f"{where}, row {n}") for n, row in enumerate(_list(body, where), 1)]


def collect_rows(pages: Iterable[Iterable[PushRow]], where: str) -> list[PushRow]:
    """The rows of all pages in their order, a row that was served twice once.

    Raises WitnessError for one id with two contents, or too many rows.
    """
    rows: dict[int, PushRow] = {}
    for row in (row for page in pages for row in page):
        if rows.setdefault(row.id, row) != row:
            raise WitnessError("two different rows of the activity have one id", where=where, value=row.id)
        if len(rows) > MAX_ROWS:
            raise WitnessError("the activity has too many rows", where=where, value=f"more than {MAX_ROWS}")
    return list(rows.values())


def parse_repository(body: str, where: str) -> Repository:
    """The answer to `/repos/{owner}/{repo}`; WitnessError where it is malformed."""
    return _each(_repository, _json(body, where), where)


def parse_comparison(body: str, where: str) -> Comparison:
    """The answer to `/compare`; WitnessError where it is malformed or contradicts itself."""
    return _each(_comparison, _json(body, where), where)


def parse_statuses(body: str, where: str, sha: str) -> list[Status]:
    """One page of the statuses of commit `sha`; WitnessError where it is malformed."""
    return [_each(_status(sha), row, f"{where}, row {n}") for n, row in enumerate(_list(body, where), 1)]


def parse_status(body: str, where: str, sha: str) -> Status:
    """The status that was just posted on commit `sha`."""
    return _each(_status(sha), _json(body, where), where)


def parse_attestations(body: str, where: str) -> list[dict[str, Any]]:
    """The sigstore bundles of one page of `/attestations`, unverified.

    GitHub may leave a bundle out and name a URL on another host: left out here.
    """
    found = _json(body, where)
    listed = found.get("attestations") if isinstance(found, dict) else None
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise WitnessError("the answer is not a list of attestations", where=where)
    return [item["bundle"] for item in listed if isinstance(item.get("bundle"), dict)]


def message_of(body: str) -> str:
    """What GitHub says in the body of a refusal, as one plain line; may be empty."""
    try:
        value = load_json(body.encode(), "")
    except (DraftError, CapExceeded, UnicodeEncodeError):
        return ""
    message = value.get("message") if isinstance(value, dict) else None
    return plain(message, 200) if isinstance(message, str) else ""


def _json(body: str, where: str) -> Any:
    try:
        return load_json(body.encode(), where)
    except (DraftError, CapExceeded, UnicodeEncodeError) as error:
        page = body.lstrip()[:1] == "<"
        reason = "it is a web page" if page else plain(error, 200)
        remedy = "a proxy or a login page may stand between: check the API's address" if page else None
        raise WitnessError(f"the answer is not usable JSON: {reason}", where=where, remedy=remedy) from None


def _list(body: str, where: str) -> list[Any]:
    value = _json(body, where)
    if not isinstance(value, list):
        raise WitnessError("the answer is not a list", where=where)
    return value


def _each(parse: Callable[[dict[str, Any]], _T | None], value: Any, where: str) -> _T:
    parsed = parse(value) if isinstance(value, dict) else None
    if parsed is None:
        raise WitnessError("the answer is malformed", where=where, value=plain(value, 200))
    return parsed


def _push_row(row: dict[str, Any]) -> PushRow | None:
    number, ref, kind = row.get("id"), row.get("ref"), row.get("activity_type")
    time = from_rfc3339(row.get("timestamp"))
    ids = (row.get("before"), row.get("after"))
    texts = _text(ref, _REF) and _text(kind, _WORD) and all(_text(each, OBJECT_ID) for each in ids)
    if time is None or not (_number(number) and texts):
        return None
    return PushRow(number, time, plain(ref), ids[0], ids[1], kind)  # type: ignore[arg-type]


def _repository(value: dict[str, Any]) -> Repository | None:
    number, name, private = value.get("id"), value.get("full_name"), value.get("private")
    if not (_number(number) and _text(name, REPOSITORY)) or not isinstance(private, bool | None):
        return None
    return Repository(number, name, private)  # type: ignore[arg-type]


def _comparison(value: dict[str, Any]) -> Comparison | None:
    base, merge_base = (value.get(key) for key in ("base_commit", "merge_base_commit"))
    shas = [each.get("sha") if isinstance(each, dict) else None for each in (base, merge_base)]
    status = value.get("status")
    if not all(_text(sha, OBJECT_ID) for sha in shas) or status not in ("ahead", "behind", "identical", "diverged"):
        return None
    found = Comparison(str(shas[0]), str(shas[1]), str(status))
    return found if found.contained == (found.base == found.merge_base) else None


def _status(sha: str) -> Callable[[dict[str, Any]], Status | None]:
    def parse(value: dict[str, Any]) -> Status | None:
        number, context, state = (value.get(key) for key in ("id", "context", "state"))
        description, creator = value.get("description"), value.get("creator")
        time = from_rfc3339(value.get("created_at"))
        well = _number(number) and isinstance(context, str) and _text(state, _WORD)
        if time is None or not well or not isinstance(description, str | None) or not isinstance(creator, dict | None):
            return None
        login = creator.get("login") if creator else None
        if not isinstance(login, str | None):
            return None
        return Status(number, sha, context, description, state, time, login)  # type: ignore[arg-type]

    return parse


def _number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MAX_ID


def _text(value: object, form: re.Pattern[str]) -> bool:
    return isinstance(value, str) and form.fullmatch(value) is not None
