"""GitHub's raw answers, read online and from an archive by the same parsers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.canonical import canonical_bytes
from registry.errors import TrapError, WitnessError
from registry.witness import github_answers as answers
from registry.witness.github_answers import (
    Answer,
    collect_rows,
    parse_activity,
    parse_attestations,
    parse_comparison,
    parse_repository,
    parse_statuses,
)
from registry.witness.github_archive import archive_bytes, read_archive
from registry.witness.github_paths import next_link, question_of
from registry.witness.rows import PushRow
from tests.registry import github_forms as forms

A, B, ZERO = "a" * 40, "b" * 40, "0" * 40
TIME = "2026-01-01T00:00:00Z"
API = "https://api.github.com"
ROW = forms.activity(7, ZERO, A, "refs/heads/main", TIME, "branch_creation")


def rows(*changes: dict[str, Any]) -> list[PushRow]:
    return parse_activity(json.dumps([{**ROW, **change} for change in changes]), "here")


def test_a_row_becomes_a_push_row() -> None:
    assert rows({"actor": None}) == [PushRow(7, TIME, "refs/heads/main", ZERO, A, "branch_creation")]


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ({"after": "c" * 64}, "after", "c" * 64),
        ({"timestamp": "2026-01-01T00:30:00+01:00"}, "timestamp", "2025-12-31T23:30:00.000000Z"),
        ({"activity_type": "a_type_of_next_year"}, "activity_type", "a_type_of_next_year"),
        ({"activity_type": "tag_creation"}, "activity_type", "tag_creation"),
        ({"ref": "refs/heads/日本"}, "ref", "refs/heads/日本"),
        ({"ref": "refs/heads/a\u202eb"}, "ref", "refs/heads/aU+202Eb"),
    ],
)
def test_what_is_kept(change: dict[str, Any], field: str, value: str) -> None:
    assert getattr(rows(change)[0], field) == value


@pytest.mark.parametrize(
    "change",
    [
        *({"id": each} for each in (0, -1, "7", 7.0, True, None, 2**53)),
        *({"after": each} for each in (None, "a" * 39, "A" * 40, f"{A}\n", 5)),
        *({"before": each} for each in (None, "", "g" * 40)),
        *({"ref": each} for each in (None, "main", "refs/", "refs/heads/a b", "refs/heads/a\n", f"refs/{'x' * 295}")),
        *({"timestamp": each} for each in (None, 0, "2026-01-01", "2026-01-01T00:00:00", "2026-02-30T00:00:00Z")),
        *({"activity_type": each} for each in (None, "", "Push", "push!", "x" * 41)),
    ],
)
def test_a_malformed_row_is_named(change: dict[str, Any]) -> None:
    with pytest.raises(WitnessError) as caught:
        rows({}, change)
    assert caught.value.where == "here, row 2"


def test_the_field_of_githubs_own_example_is_not_read() -> None:
    old = {key: value for key, value in ROW.items() if key != "timestamp"} | {"pushed_at": TIME}
    with pytest.raises(WitnessError):
        parse_activity(json.dumps([old]), "here")


def test_too_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_ROWS", 3)
    page = rows(*({"id": number} for number in range(1, 5)))
    with pytest.raises(WitnessError, match="too many rows"):
        collect_rows([page], "here")


def test_a_repository_is_its_number() -> None:
    found = parse_repository(json.dumps(forms.repository("octo/study", 5, private=True)), "here")
    assert (found.id, found.full_name, found.private) == (5, "octo/study", True)
    for change in ({"id": "5"}, {"full_name": "octo"}, {"private": "yes"}):
        with pytest.raises(WitnessError):
            parse_repository(json.dumps({**forms.repository("octo/study", 5), **change}), "here")


@pytest.mark.parametrize(
    ("status", "merge_base", "contained"),
    [("ahead", A, True), ("identical", A, True), ("behind", B, False), ("diverged", "c" * 40, False)],
)
def test_a_comparison(status: str, merge_base: str, contained: bool) -> None:
    assert parse_comparison(json.dumps(forms.comparison(A, B, merge_base, status)), "here").contained is contained


@pytest.mark.parametrize(
    ("status", "merge_base"), [("ahead", B), ("behind", A), ("diverged", A), ("AHEAD", A), (None, A)]
)
def test_a_comparison_that_contradicts_itself_is_refused(status: str, merge_base: str) -> None:
    with pytest.raises(WitnessError):
        parse_comparison(json.dumps(forms.comparison(A, B, merge_base, status)), "here")


def test_statuses() -> None:
    whole = forms.status(3, A, "trap", "a digest", TIME)
    (found,) = parse_statuses(json.dumps([whole]), "here", A)
    assert (found.id, found.sha, found.context, found.description) == (3, A, "trap", "a digest")
    assert (found.state, found.created_at, found.creator) == ("success", TIME, "octocat")
    assert parse_statuses(json.dumps([{**whole, "creator": None, "description": None}]), "here", A)[0].creator is None
    for change in ({"id": 0}, {"created_at": "now"}, {"context": None}, {"creator": "x"}, {"description": 1}):
        with pytest.raises(WitnessError):
            parse_statuses(json.dumps([{**whole, **change}]), "here", A)


def test_a_bundle_that_lies_elsewhere_is_left_out() -> None:
    listed = [{"bundle": {"mediaType": "x"}}, {"bundle": None, "bundle_url": "https://elsewhere.example"}]
    assert parse_attestations(json.dumps({"attestations": listed}), "here") == [{"mediaType": "x"}]
    for body in ("[]", "{}", '{"attestations": [1]}'):
        with pytest.raises(WitnessError):
            parse_attestations(body, "here")


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*ROW, "x"]), inner, max_size=3),
        max_leaves=8,
    )
)
def test_no_answer_breaks_a_parser(value: Any) -> None:
    body = json.dumps(value)
    parsers: list[Callable[[str], Any]] = [
        lambda text: parse_activity(text, "here"),
        lambda text: parse_repository(text, "here"),
        lambda text: parse_comparison(text, "here"),
        lambda text: parse_statuses(text, "here", A),
        lambda text: parse_attestations(text, "here"),
        lambda text: read_archive(text.encode("utf-8", "surrogatepass"), "here"),
    ]
    for parse in parsers:
        try:
            assert parse(body) is not None
        except TrapError as error:
            assert error.diagnostics()


@pytest.mark.parametrize(
    ("header", "url"),
    [
        ('<https://x/a?after=1>; rel="next"', "https://x/a?after=1"),
        ('<https://x/p>; rel="prev", <https://x/n>; rel="next", <https://x/l>; rel="last"', "https://x/n"),
        ("<https://x/a>; rel=next", "https://x/a"),
        ('<https://x/a,b;c>; rel="next"', "https://x/a,b;c"),
        ('<https://x/a>; rel="nextish"', None),
        ('<https://x/a>; title="rel=next"', None),
        ("", None),
        ("<" * 10_000, None),
    ],
)
def test_the_next_page_in_a_link_header(header: str, url: str | None) -> None:
    assert next_link(header) == url


@pytest.mark.parametrize(
    ("path", "kind", "subject"),
    [
        ("/repos/o/r", "repository", ""),
        ("/repositories/5/activity?after=x%3D&per_page=100", "activity", ""),
        (f"/repos/o/r/compare/{A}...{B}?page=2", "compare", f"{A}...{B}"),
        (f"/repos/o/r/commits/{A}/statuses", "statuses", A),
        (f"/repos/o/r/statuses/{A}", "status", A),
        (f"/repos/o/r/attestations/sha1:{A}", "attestations", f"sha1:{A}"),
    ],
)
def test_a_path_is_a_question(path: str, kind: str, subject: str) -> None:
    question = question_of(path)
    assert question is not None and (question.kind, question.subject) == (kind, subject)


@pytest.mark.parametrize(
    "path", ["/user", "/repos/o/r/activity/x", "/repos/o/r/../x", f"/repos/o/r/statuses/{A}\n", ""]
)
def test_other_paths_are_no_questions(path: str) -> None:
    assert question_of(path) is None


REPOSITORY = Answer("/repos/octo/study", 200, json.dumps(forms.repository("octo/study", 5)))
PAGE_1 = Answer("/repos/octo/study/activity?per_page=100", 200, json.dumps([{**ROW, "id": 8}]))
PAGE_2 = Answer("/repositories/5/activity?after=x&per_page=100", 200, json.dumps([{**ROW, "id": 8}, ROW]))
AHEAD = Answer(f"/repos/octo/study/compare/{A}...{B}", 200, json.dumps(forms.comparison(A, B, A, "ahead")))
POSTED = Answer(f"/repos/octo/study/statuses/{A}", 201, json.dumps(forms.status(3, A, "trap", "x", TIME)))
LISTED = Answer(f"/repos/octo/study/commits/{A}/statuses", 200, json.dumps([forms.status(3, A, "trap", "x", TIME)]))
MISSING = Answer(f"/repos/octo/study/compare/{B}...{'c' * 40}", 404, "{}")
BUNDLES = Answer(f"/repos/octo/study/attestations/sha1:{A}", 200, json.dumps({"attestations": [{"bundle": {}}]}))
ALL = (REPOSITORY, PAGE_1, PAGE_2, AHEAD, POSTED, LISTED, MISSING, BUNDLES)


def archived(*listed: Answer) -> bytes:
    return archive_bytes(API, "octo/study", 5, listed)


def test_an_archive_says_what_the_answers_said() -> None:
    data = archived(*ALL)
    found = read_archive(data, "archive")
    assert (found.api, found.repository, found.repository_id, found.answers) == (API, "octo/study", 5, ALL)
    assert [row.id for row in found.rows] == [8, 7]
    assert [status.id for status in found.statuses] == [3]
    assert found.contains(A, B) is True and found.contains(A, A) is True
    assert found.contains(B, "c" * 40) is None
    assert found.attestations == {f"sha1:{A}": ({},)}
    assert archive_bytes(found.api, found.repository, found.repository_id, found.answers) == data


@pytest.mark.parametrize(
    "listed",
    [
        (PAGE_1,),
        (replace(REPOSITORY, body=json.dumps(forms.repository("octo/study", 6))),),
        (REPOSITORY, replace(REPOSITORY, body=json.dumps(forms.repository("octo/study", 6)))),
        (REPOSITORY, replace(PAGE_1, path="/repos/octo/other/activity")),
        (REPOSITORY, replace(PAGE_2, path="/repositories/6/activity")),
        (REPOSITORY, replace(PAGE_1, path="/repos/octo/study/issues")),
        (REPOSITORY, replace(MISSING, path="/users/octo")),
        (REPOSITORY, replace(PAGE_1, body="[{}]")),
        (REPOSITORY, PAGE_1, replace(PAGE_2, body=json.dumps([{**ROW, "id": 8, "after": B}]))),
        (REPOSITORY, replace(AHEAD, body=json.dumps(forms.comparison(B, A, B, "ahead")))),
        (REPOSITORY, POSTED, replace(LISTED, body=json.dumps([forms.status(3, A, "trap", "y", TIME)]))),
    ],
)
def test_an_archive_that_does_not_hold_together_is_refused(listed: tuple[Answer, ...]) -> None:
    with pytest.raises(WitnessError):
        read_archive(archived(*listed), "archive")


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "trap-github-answers-2"},
        {"api": "http://api.github.com"},
        {"api": 5},
        {"repository": "octo"},
        {"repository_id": "5"},
        {"repository_id": True},
        {"answers": {}},
        {"answers": [{"path": "/repos/octo/study", "status": 200}]},
        {"answers": [{"path": "/repos/octo/study", "status": "200", "body": ""}]},
        {"answers": [{"path": "/repos/octo/study", "status": 200, "body": "", "token": "x"}]},
        {"token": "x"},
    ],
)
def test_a_malformed_archive_is_refused(change: dict[str, Any]) -> None:
    value = json.loads(archived(REPOSITORY))
    with pytest.raises(WitnessError):
        read_archive(canonical_bytes({**value, **change}), "archive")
    with pytest.raises(WitnessError):
        read_archive(archived(REPOSITORY)[:-1], "archive")
