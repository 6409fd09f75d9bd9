"""The push log in the words of GitHub's `/repos/{owner}/{repo}/activity`.

Branches only, as there: tags stand in `/witness/.../log`. Pages have cursors,
which stay good while rows are added. `actor` is null, for the server knows no
persons. Source: GitHub's OpenAPI description, schema `activity`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from registry.timestamps import moment
from registry.witness.rows import PushRow
from registry.witness.server.answers import Refused

TYPES = ("push", "force_push", "branch_creation", "branch_deletion", "pr_merge", "merge_queue_merge")
_PERIODS_DAYS = {"day": 1, "week": 7, "month": 30, "quarter": 91, "year": 365}
_CHOICES = {"direction": ("asc", "desc"), "activity_type": TYPES, "time_period": tuple(_PERIODS_DAYS)}
_BRANCH = "refs/heads/"
_MOST = 100
_USUAL = 30


@dataclass(frozen=True)
class Page:
    """One page: rows as served, and the queries of the pages beside it."""

    rows: list[dict[str, Any]]
    links: dict[str, str]

    def link_header(self, url: str) -> tuple[tuple[str, str], ...]:
        """The Link header (RFC 8288), empty where this is the only page."""
        links = ", ".join(f'<{url}?{query}>; rel="{name}"' for name, query in self.links.items())
        return (("Link", links),) if links else ()


def activity_page(rows: Sequence[PushRow], repository_id: int, query: Mapping[str, str], now: datetime) -> Page:
    """The page that a query asks for; Refused (422) for words GitHub refuses.

    `rows` are the log's, oldest first; `now` is what a time period ends at.
    """
    for name, allowed in _CHOICES.items():
        if name in query and query[name] not in allowed:
            raise Refused(422, f"Invalid {name}: it is one of {', '.join(allowed)}")
    found = [row for row in rows if _wanted(row, query, now)]
    if query.get("direction", "desc") == "desc":
        found.reverse()
    size = _page_size(query.get("per_page", ""))
    start, end = _window(found, query, size)
    shown = found[start:end]
    links = {}
    if start > 0:
        links["prev"] = _query(query, "before", shown[0] if shown else found[-1])
    if end < len(found) and shown:
        links["next"] = _query(query, "after", shown[-1])
    return Page([_row(row, repository_id) for row in shown], links)


def _wanted(row: PushRow, query: Mapping[str, str], now: datetime) -> bool:
    ref = query.get("ref")
    period = query.get("time_period")
    return (
        row.ref.startswith(_BRANCH)
        and (not ref or row.ref in (ref, _BRANCH + ref))
        and query.get("activity_type", row.activity_type) == row.activity_type
        and not query.get("actor")  # no row has one
        and (not period or moment(row.timestamp) >= now - timedelta(days=_PERIODS_DAYS[period]))
    )


def _window(found: Sequence[PushRow], query: Mapping[str, str], size: int) -> tuple[int, int]:
    """Where the page begins and ends in the rows that were found."""
    descending = query.get("direction", "desc") == "desc"

    def beyond(cursor: int) -> int:
        """How many rows stand up to and with the cursor's."""
        return sum(row.id >= cursor if descending else row.id <= cursor for row in found)

    if "after" in query:
        start = beyond(_cursor_id(query["after"]))
        return start, min(start + size, len(found))
    if "before" in query:
        cursor = _cursor_id(query["before"])
        end = beyond(cursor) - any(row.id == cursor for row in found)
        return max(end - size, 0), end
    return 0, min(size, len(found))


def _page_size(text: str) -> int:
    wanted = int(text) if re.fullmatch("[0-9]{1,6}", text, re.ASCII) else 0
    return min(wanted, _MOST) or _USUAL


def _query(query: Mapping[str, str], cursor: str, row: PushRow) -> str:
    """The same question with another cursor."""
    kept = {name: value for name, value in query.items() if name not in ("before", "after")}
    return urlencode(kept | {cursor: base64.urlsafe_b64encode(f"row:{row.id}".encode()).decode()})


def _cursor_id(text: str) -> int:
    try:
        found = re.fullmatch(rb"row:([0-9]{1,15})", base64.b64decode(text, altchars=b"-_", validate=True))
    except ValueError:
        found = None
    if found is None:
        raise Refused(422, "Invalid cursor")
    return int(found[1])


def _row(row: PushRow, repository_id: int) -> dict[str, Any]:
    return {
        "id": row.id,
        "node_id": base64.b64encode(f"WitnessRow:{repository_id}:{row.id}".encode()).decode(),
        "before": row.before,
        "after": row.after,
        "ref": row.ref,
        "timestamp": row.timestamp,
        "activity_type": row.activity_type,
        "actor": None,
    }
