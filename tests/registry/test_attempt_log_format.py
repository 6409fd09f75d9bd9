"""Lines of the attempts log: read back as written, refused where malformed."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.attempt_log import MAX_RESERVED, AttemptLog, AttemptRecord, decode, encode, to_json
from registry.design import RunId
from registry.errors import RegistrationError, TrapError

START = AttemptRecord(
    event="start",
    registration="e2",
    version=1,
    digest="ab" * 32,
    arm="BURST",
    rate=1.35,
    seed=0,
    attempt=1,
    last_attempt=3,
    batch="trap-e2-1",
    time="2026-01-01T00:00:00.000000Z",
)
COMPLETE = replace(START, event="complete", last_attempt=1, run_sha256="cd" * 32)
ABANDONED = replace(START, event="abandoned", last_attempt=1, reason="killed")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
starts = st.builds(
    replace,
    st.just(START),
    version=st.integers(1, 10**6),
    arm=texts,
    rate=st.none() | st.floats(1e-6, 1e6),
    seed=st.integers(0, 2**53 - 1),
    batch=texts,
)
completes = st.builds(replace, st.just(COMPLETE), late=st.booleans(), seed=st.integers(0, 99))
abandoned = st.builds(replace, st.just(ABANDONED), reason=st.none() | texts, late=st.booleans())


@given(st.lists(st.one_of(starts, completes, abandoned), max_size=5))
@settings(max_examples=100, deadline=None)
def test_records_are_read_back_as_written(records: list[AttemptRecord]) -> None:
    data = encode(records)
    assert decode(data, "f") == records
    assert encode(decode(data, "f")) == data
    assert data.count(b"\n") == len(records)


def test_a_line_is_canonical_json_with_its_schema() -> None:
    (line,) = encode([START]).splitlines()
    value = json.loads(line)
    assert value["schema"] == "trap-attempts-1"
    assert list(value) == sorted(value)
    assert to_json(START) == {key: value[key] for key in value if key != "schema"}


def test_crlf_line_ends_give_the_same_records() -> None:
    data = encode([START, COMPLETE])
    assert decode(data.replace(b"\n", b"\r\n"), "f") == [START, COMPLETE]


def test_a_record_names_its_run() -> None:
    assert START.run == RunId("BURST", 1.35, 0)
    assert replace(START, rate=None).run.path == "BURST/closed/0"


def test_the_log_gives_the_records_of_one_version() -> None:
    other = replace(START, version=2)
    assert AttemptLog((START, other, COMPLETE)).of("e2", 1) == [START, COMPLETE]


def line(base: AttemptRecord = START, **changes: Any) -> bytes:
    value = {"schema": "trap-attempts-1", **to_json(base), **changes}
    return json.dumps({k: v for k, v in value.items() if v != "drop"}).encode() + b"\n"


@pytest.mark.parametrize(
    "data",
    [
        b"x\n",
        b"[]\n",
        b"1\n",
        b"\n",
        b"{}\n",
        b'{"schema":"trap-attempts-1"}\n',
        line()[:-20],
        line().replace(b'"seed": 0', b'"seed": NaN'),
        line().replace(b'"seed": 0', b'"seed": 0, "seed": 0'),
        b"\xff" + line(),
        line(schema="trap-attempts-2"),
        line(schema="drop"),
        line(extra=1),
        line(seed="drop"),
        line(time="drop"),
    ],
)
def test_what_is_no_record_is_refused_with_its_line(data: bytes) -> None:
    with pytest.raises(TrapError) as caught:
        decode(encode([START]) + data, "attempts/000001-start.jsonl")
    assert str(caught.value.where).startswith("attempts/000001-start.jsonl, line 2")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("event", "started"),
        ("event", ["start"]),
        ("registration", ["e2"]),
        ("registration", None),
        ("version", 0),
        ("version", "1"),
        ("version", True),
        ("version", 1.5),
        ("digest", "ab"),
        ("digest", "AB" * 32),
        ("digest", None),
        ("arm", ["BURST"]),
        ("arm", {"x": 1}),
        ("rate", "1.35"),
        ("rate", True),
        ("rate", -1.0),
        ("rate", 0),
        ("rate", [1]),
        ("seed", -1),
        ("seed", 2**53),
        ("seed", None),
        ("attempt", 0),
        ("attempt", 1.0),
        ("last_attempt", 0),
        ("last_attempt", MAX_RESERVED + 1),
        ("last_attempt", 10**15),
        ("batch", 7),
        ("time", 1767225600),
        ("run_sha256", "cd" * 32),
        ("late", 1),
        ("late", "no"),
        ("reason", ["x"]),
    ],
)
def test_a_malformed_field_is_refused_and_named(field: str, value: object) -> None:
    with pytest.raises(RegistrationError, match="malformed record") as caught:
        decode(line(**{field: value}), "f")
    assert caught.value.where == f"f, line 1, field {field}"


@pytest.mark.parametrize("value", [None, "", "cd", "CD" * 32, 5, "cd" * 32 + "\n"])
def test_a_complete_attempt_needs_the_digest_of_its_record(value: object) -> None:
    with pytest.raises(RegistrationError) as caught:
        decode(line(COMPLETE, run_sha256=value), "f")
    assert caught.value.where == "f, line 1, field run_sha256"


@pytest.mark.parametrize("base", [COMPLETE, ABANDONED])
def test_a_result_speaks_of_one_attempt(base: AttemptRecord) -> None:
    with pytest.raises(RegistrationError) as caught:
        decode(line(base, last_attempt=2), "f")
    assert caught.value.where == "f, line 1, field last_attempt"


@given(st.binary(max_size=60))
@settings(max_examples=150)
def test_arbitrary_bytes_are_records_or_refused(data: bytes) -> None:
    with suppress(TrapError):
        decode(data, "f")
