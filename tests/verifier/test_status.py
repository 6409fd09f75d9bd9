"""Statuses follow from what witnesses saw, and from nothing else."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.timestamps import moment
from registry.witness.rows import PushRow
from registry.witness.sightings import Sighting, by_weight, first_rows
from verifier.status import RANK, Order, claim_exceeds, derive_status

EARLY, LATER, LATEST = (f"2026-01-01T00:00:{second:02}.000000Z" for second in (10, 20, 30))
SEEN = Sighting("GitHub", "push", EARLY, "asked online", independent=True, seen="c")
COPY = dataclasses.replace(SEEN, independent=False, source="archived", confirm="run trapkit verify --online")
TOKEN = dataclasses.replace(SEEN, witness="authority", kind="timestamp")
DRAND = Order(by_beacon=True, trusted=True, own_draw=False, round_at=LATER, first_run_at=None)
CLOCKS = Order(by_beacon=False, trusted=False, own_draw=True, round_at=None, first_run_at=LATER)


def at(sighting: Sighting, time: str) -> Sighting:
    return dataclasses.replace(sighting, time=time)


@pytest.mark.parametrize(
    ("sightings", "order", "name"),
    [
        ([SEEN], DRAND, "pre-registered"),
        ([TOKEN], DRAND, "pre-registered"),
        ([at(SEEN, LATER)], DRAND, "void"),  # equal is not before
        ([at(COPY, LATEST)], DRAND, "void"),  # by the author's own copy
        ([TOKEN, at(COPY, LATER)], DRAND, "void"),  # a token shows no push
        ([at(TOKEN, LATER), COPY], DRAND, "registered"),
        ([COPY], DRAND, "registered"),
        ([], DRAND, "registered"),
        # A latest time is no late push: the log may have lost its rows.
        ([dataclasses.replace(SEEN, time=LATEST, dated=False)], DRAND, "registered"),
        ([dataclasses.replace(SEEN, time=LATEST, dated=False)], CLOCKS, "registered"),
        ([SEEN, at(COPY, LATEST)], DRAND, "pre-registered"),
        ([SEEN], dataclasses.replace(DRAND, trusted=False), "registered"),
        ([SEEN], dataclasses.replace(DRAND, trusted=False, own_draw=True, round_at=None), "registered"),
        ([SEEN], CLOCKS, "pre-registered"),
        ([at(SEEN, LATER)], CLOCKS, "registered"),  # equal is not before
        ([at(SEEN, LATEST)], CLOCKS, "retrospective"),
        ([SEEN], dataclasses.replace(CLOCKS, allowance_s=10), "registered"),
        ([SEEN], dataclasses.replace(CLOCKS, allowance_s=9), "pre-registered"),
        ([SEEN], dataclasses.replace(CLOCKS, first_run_at=None), "pre-registered"),
        # A beacon that the policy trusts needs no clock of the author's.
        ([SEEN], dataclasses.replace(DRAND, first_run_at="2020-01-01T00:00:00Z"), "pre-registered"),
    ],
)
def test_the_first_status_that_applies(sightings: list[Sighting], order: Order, name: str) -> None:
    assert derive_status(by_weight(sightings), order).name == name


def test_what_a_copy_lacks_is_said_and_is_no_failure() -> None:
    status = derive_status([COPY], DRAND)
    assert "run trapkit verify --online" in status.reason
    assert not claim_exceeds("pre-registered", status)
    own = derive_status([COPY], dataclasses.replace(DRAND, trusted=False, own_draw=True, round_at=None))
    assert claim_exceeds("pre-registered", own) and not claim_exceeds("registered", own)
    assert claim_exceeds("registered", derive_status([at(SEEN, LATER)], DRAND))
    assert claim_exceeds("anything else", status)


def test_an_order_by_run_clocks_says_whose_they_are() -> None:
    assert "run clocks: the author's own" in derive_status([SEEN], CLOCKS).reason


times = st.sampled_from([EARLY, LATER, LATEST])


@given(st.lists(st.builds(Sighting, st.just("w"), st.sampled_from(["push", "timestamp"]), times, st.just("s"),
                          st.booleans(), st.just("c"), st.sampled_from([None, "ask"]))), times)  # fmt: skip
def test_copies_of_the_author_give_no_more_than_registered(sightings: list[Sighting], time: str) -> None:
    independent = derive_status(by_weight(s for s in sightings if s.independent), DRAND)
    with_copies = derive_status(by_weight([*sightings, at(COPY, time)]), DRAND)
    assert RANK[with_copies.name] <= max(RANK[independent.name], RANK["registered"])


@given(st.data())
def test_the_first_row_of_a_commit_is_the_earliest_that_holds_it(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 12))
    graph = {
        f"{n + 1:040x}": tuple(f"{p + 1:040x}" for p in sorted(data.draw(st.sets(st.integers(0, n - 1), max_size=2))))
        if n
        else ()
        for n in range(size)
    }
    heads = data.draw(st.lists(st.integers(0, size + 2), max_size=8))
    rows = [
        PushRow(n, data.draw(times), "refs/heads/main", "0" * 40, f"{head + 1:040x}", "push")
        for n, head in enumerate(heads, 1)
    ]
    first, unseen = first_rows(rows, graph)
    assert {row.after for row in unseen} == {row.after for row in rows} - set(graph)
    for commit in graph:
        holding = [row for row in rows if row.after in graph and commit in _history(row.after, graph)]
        earliest = min(holding, key=lambda row: (moment(row.timestamp), row.id), default=None)
        assert first.get(commit) == earliest


def _history(commit: str, graph: dict[str, tuple[str, ...]]) -> set[str]:
    return {commit}.union(*(_history(parent, graph) for parent in graph[commit]))
