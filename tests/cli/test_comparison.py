"""Arms compared in readings of one's choice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import SMALL_CALIBRATION, SMALL_RULE, command


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "small.yaml").write_text(SMALL_RULE)
    (folder / "all-miss-small.yaml").write_text(SMALL_CALIBRATION)
    return folder


def test_the_arms_stand_beside_each_other_in_the_chosen_readings(rules: Path) -> None:
    asked = ("rehearse", "small.yaml", "--seeds", "2", "--reading", "judged.turns_per_s", "--reading", "judged.cap")
    assert command(rules, *asked).code == 2
    chosen = ("--reading", "judged.turns_per_s", "--reading", "judged.mean_wait_s")
    shown = command(rules, "rehearse", "small.yaml", "--seeds", "2", *chosen)
    assert "judged.turns_per_s" in shown.out and "SIMULATED" in shown.out
    (noburst,) = [line for line in shown.out.splitlines() if line.strip().startswith("NOBURST") and "undefined" in line]
    assert "[" in noburst
    rows = json.loads(command(rules, "rehearse", "small.yaml", "--seeds", "2", *chosen, "--json").out)["comparison"]
    assert [(row["arm"], row["reading"]) for row in rows] == [
        (arm, reading) for arm in ("BURST", "CAPPED", "NOBURST") for reading in ("turns_per_s", "mean_wait_s")
    ]
    assert [row["defined"] for row in rows][::2] == [2, 2, 2]


def test_an_unknown_reading_is_refused_with_the_windows_there_are(rules: Path) -> None:
    shown = command(rules, "rehearse", "small.yaml", "--reading", "late.turns_per_s")
    assert shown.code == 2
    assert "late.turns_per_s" in shown.err and "judged" in shown.err
