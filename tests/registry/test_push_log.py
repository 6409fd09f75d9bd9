"""The push log: what a chain of rows holds, and what breaks it."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.errors import WitnessError
from registry.witness.log import NO_ROW, head_of, log_lines, parse_log
from registry.witness.post_receive import new_lines
from tests.support import push_log

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ZERO, A, B = "0" * 40, "a" * 40, "b" * 40


def rows(count: int) -> list[dict[str, Any]]:
    """Rows of tags made a second apart."""
    return [
        {
            "timestamp": f"2026-03-01T12:{number // 60:02d}:{number % 60:02d}.000000Z",
            "ref": f"refs/tags/t{number}",
            "before": ZERO,
            "after": A,
            "activity_type": "tag_creation",
        }
        for number in range(count)
    ]


def lines_of(log: bytes) -> list[bytes]:
    return log.splitlines(keepends=True)


def test_the_hook_s_lines_are_a_log() -> None:
    log = b"".join(new_lines(b"", [f"{ZERO} {A} refs/tags/a", f"{ZERO} {A} refs/tags/reg/e2/v1"], NOW))
    log += b"".join(new_lines(log, [f"{ZERO} {B} refs/tags/b"], NOW))
    first, second, third = parse_log(log, "log")
    assert first.previous == NO_ROW and first.beacon is None
    assert second.beacon is not None and len(second.beacon) == 64
    assert third.id == 3 and third.previous == head_of(log.splitlines()[:2])


def test_a_registration_tag_pushed_again_draws_no_second_beacon() -> None:
    log = b"".join(new_lines(b"", [f"{ZERO} {A} refs/tags/reg/e2/v1"], NOW))
    log += b"".join(new_lines(log, [f"{A} {ZERO} refs/tags/reg/e2/v1", f"{ZERO} {B} refs/tags/reg/e2/v1"], NOW))
    assert [row.beacon is not None for row in parse_log(log, "log")] == [True, False, False]


def test_a_clock_that_steps_back_repeats_the_last_time() -> None:
    log = b"".join(new_lines(b"", [f"{ZERO} {A} refs/tags/a"], NOW))
    log += b"".join(new_lines(log, [f"{ZERO} {A} refs/tags/b"], datetime(2020, 1, 1, tzinfo=UTC)))
    first, second = parse_log(log, "log")
    assert first.timestamp == second.timestamp == "2026-03-01T12:00:00.000000Z"


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_no_row_can_be_removed_moved_repeated_or_edited(data: st.DataObject) -> None:
    lines = lines_of(push_log(rows(data.draw(st.integers(3, 8)))))
    at = data.draw(st.integers(0, len(lines) - 2))
    changed = {
        "removed": lines[:at] + lines[at + 1 :],
        "repeated": [*lines[: at + 1], *lines[at:]],
        "moved": [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]],
        "edited": [*lines[:at], lines[at].replace(b"refs/tags/", b"refs/tags/x"), *lines[at + 1 :]],
    }
    assert parse_log(b"".join(lines), "log")
    for how, others in changed.items():
        with pytest.raises(WitnessError, match=r"chain is broken|not numbered in order"):
            raise AssertionError(f"{how}: {parse_log(b''.join(others), 'log')}")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"timestamp": "2026-03-01 12:00:00"}, "malformed row"),
        ({"timestamp": "2026-03-01T11:59:59Z"}, "times step back"),
        ({"ref": "main"}, "malformed row"),
        ({"ref": "refs/heads/a\nb"}, "malformed row"),
        ({"before": "abc"}, "malformed row"),
        ({"after": A.upper()}, "malformed row"),
        ({"after": None}, "malformed row"),
        ({"activity_type": 3}, "malformed row"),
        ({"beacon": "00"}, "the beacon is not 32 bytes"),
        ({"extra": 1}, "not a row of the push log"),
    ],
)
def test_a_row_of_another_form_is_refused(change: dict[str, Any], words: str) -> None:
    first, second = rows(2)
    with pytest.raises(WitnessError, match=words) as raised:
        parse_log(push_log([first, second | change]), "log")
    assert raised.value.where == "log, line 2"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"[]\n", "not a row"),
        (b"{}\n", "not a row"),
        (b"\n", "not a row"),
        (b"\xff\n", "not a row"),
        (b'{"id": 1, "id": 1}\n', "not a row"),
        (b"[" * 100_000 + b"\n", "not a row"),
        (b'{"id": 1', "ends in the middle of a line"),
    ],
)
def test_a_line_that_is_no_row_is_refused(line: bytes, words: str) -> None:
    with pytest.raises(WitnessError, match=words):
        parse_log(line, "log")


def test_a_log_without_a_chain_is_refused() -> None:
    row = json.dumps(rows(1)[0] | {"id": 1}).encode() + b"\n"
    with pytest.raises(WitnessError, match="malformed row"):
        parse_log(row, "log")


def test_a_true_is_no_number() -> None:
    row = json.dumps(rows(1)[0] | {"id": True, "previous": NO_ROW}).encode() + b"\n"
    with pytest.raises(WitnessError, match="malformed row"):
        parse_log(row, "log")


def test_ten_thousand_rows_are_read_quickly() -> None:
    log = push_log([row | {"timestamp": "2026-03-01T12:00:00Z"} for row in rows(10_000)])
    started = time.process_time()
    assert len(parse_log(log, "log")) == 10_000
    assert time.process_time() - started < 2.0
    assert len(log_lines(log, "log")) == 10_000
