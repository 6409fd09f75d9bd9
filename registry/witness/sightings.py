"""What witnesses saw, and when: from push rows and tokens to sightings.

A branch log (GitHub's has no tags) binds a tag through its commit: the first
row whose `after` is that commit or a descendant of it. A later force-push
does not undo an earlier row. A row whose commit is not in the repository
says nothing, neither yes nor no.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from registry.timestamps import moment
from registry.witness.rows import PushRow, in_order

Graph = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Sighting:
    """That a witness had seen something by a time.

    `kind` is push, status (a commit status), timestamp or release. `time` is the
    latest moment, RFC 3339 in UTC, at which it had been seen. `source` says
    how the word came here; `independent` whether the auditor's policy trusts
    it and the author could not have written it. `confirm` says what
    would make a copy count, where something would. `dated` tells the moment of
    the push from a latest one: a later row may be the first that a log still has.
    """

    witness: str
    kind: str
    time: str
    source: str
    independent: bool
    seen: str
    confirm: str | None = None
    dated: bool = True

    @property
    def pushed(self) -> bool:
        """Whether it shows a push, not only that the bytes existed."""
        return self.kind in ("push", "status")


@dataclass(frozen=True)
class PushLog:
    """One witness's log of pushes, in the order in which it is judged.

    `problem` is a contradiction that refutes it. `first` maps each commit in
    the repository to the first row that held it; `unseen` are rows whose
    commits the repository lacks. `sees_tags` tells logs with tag rows from
    logs of branches; `draws` is the beacon chain that its rows draw, if any.
    """

    witness: str
    rows: tuple[PushRow, ...]
    source: str
    independent: bool
    sees_tags: bool
    confirm: str | None = None
    draws: str | None = None
    problem: str | None = None
    first: Mapping[str, PushRow] = field(default_factory=dict)
    unseen: tuple[PushRow, ...] = ()

    @cached_property
    def by_ref(self) -> Mapping[str, tuple[PushRow, ...]]:
        """The rows of every ref, each in the order of the log."""
        found: dict[str, list[PushRow]] = {}
        for row in self.rows:
            found.setdefault(row.ref, []).append(row)
        return {ref: tuple(rows) for ref, rows in found.items()}

    def rows_of(self, ref: str) -> tuple[PushRow, ...]:
        """The rows of one ref, in the order of the log."""
        return self.by_ref.get(ref, ())

    def of_tag(self, name: str, oid: str | None, commit: str | None) -> list[PushRow]:
        """The rows that show the push of this very tag, the earliest first."""
        if self.sees_tags:
            return [row for row in self.rows_of(f"refs/tags/{name}") if row.after == oid]
        row = self.first.get(commit or "")
        return [row] if row else []

    def sighting(self, row: PushRow, dated: bool = True) -> Sighting:
        """A row of this log as a sighting."""
        return Sighting(
            self.witness, "push", row.timestamp, self.source, self.independent, row.after, self.confirm, dated
        )


def first_rows(rows: Iterable[PushRow], graph: Graph) -> tuple[dict[str, PushRow], tuple[PushRow, ...]]:
    """Each known commit's first row, and the rows with unknown commits.

    Every commit is walked once, whatever the number of rows.
    """
    first: dict[str, PushRow] = {}
    unseen = []
    for row in in_order(rows):
        if row.deletion or row.ref.startswith("refs/tags/"):
            continue
        if row.after not in graph:
            unseen.append(row)
            continue
        waiting = [row.after]
        while waiting:
            commit = waiting.pop()
            if commit not in first:
                first[commit] = row
                waiting.extend(parent for parent in graph.get(commit, ()) if parent not in first)
    return first, tuple(unseen)


def by_weight(sightings: Iterable[Sighting]) -> list[Sighting]:
    """Independent ones first, then pushes, then by time."""
    return sorted(sightings, key=lambda s: (not s.independent, not s.pushed, moment(s.time), s.witness))
