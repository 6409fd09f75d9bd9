"""trapkit reproduce: the paper's outcomes beside simulated ones, and the pictures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cli.render.figures import _figures, seed_of_median_release
from cli.render.picture_arms import draw_arms
from cli.render.pictures import drawing, save
from cli.render.progress import Console
from cli.render.reproduction import reproduction_text
from cli.workflows.arm_marks import marks_of
from cli.workflows.flows import Flow
from cli.workflows.rehearse import Rehearsal
from cli.workflows.reproduce import Compared, Reproduction, chosen_tables, shipped_draft
from registry.design import RunId
from tests.made_runs import readings_of, registration_of
from tests.support import command
from verifier.agreement import agree
from verifier.printed_outcomes import printed_outcomes
from verifier.series import Series

MIDDLE_S = np.arange(50.0, 1000.0, 100.0)


def series(scale: float = 1.0, engaged_s: float = np.nan, release_s: float = np.nan) -> Series:
    level = scale * np.linspace(0.0, 1.0, MIDDLE_S.size)
    return Series(100.0, MIDDLE_S, level, 100 * level, level, level / 10, engaged_s, release_s)


def test_one_test_is_simulated_and_compared(tmp_path: Path) -> None:
    done = command(tmp_path, "reproduce", "shed", "--seeds", "1", "--json")
    assert done.code == 0, done.text
    report = json.loads(done.out)
    assert report["schema"] == "trap-reproduction-1"
    assert "SIMULATED" in report["statement"]
    (table,) = report["tables"]
    assert (table["test"], report["seeds"], report["compared"]) == ("shed", [1000], 4)
    stuck, good, refused, _ = table["outcomes"]
    assert (stuck["ours"]["runs"], stuck["ours"]["share"]) == (1, 1.0)
    assert good["printed"] == {"kind": "count", "low": 2.0, "high": 2.0, "of": 2, "decimals": 0}
    assert refused["ours"]["median"] > 20
    assert "\n" in done.out and list(tmp_path.iterdir()) == []


def test_a_test_that_the_paper_has_not_is_refused(tmp_path: Path) -> None:
    done = command(tmp_path, "reproduce", "e3")
    assert done.code == 2
    assert "e3" in done.err and "basin-1" in done.err


def test_the_text_says_simulated_and_shows_every_kind_of_outcome() -> None:
    rows = [row for row in printed_outcomes().outcomes if row.tests == ("e2",)]
    compared = tuple(Compared(row, agree(row.printed, [1.0, 1.1])) for row in rows)
    text = reproduction_text(Reproduction((1000, 1001), {"simulator": compared}, {}))
    assert text.startswith("SIMULATED")
    assert "fewer than 20 seeds" in text
    assert "simulator (simulated)" in text
    for shown in ("9,125 to 9,556", "5 of 6", "mean 1.03", "PASS"):
        assert shown in text


def test_marks_say_what_was_done_and_when() -> None:
    assert marks_of(shipped_draft("shed").design) == {
        "burst": [(1200.0, 1260.0)],
        "new sessions refused": [(1800.0, 2400.0), (1800.0, 5400.0)],
    }
    assert marks_of(shipped_draft("cut-a").design)["arrivals cut"] == [(5000.0, 8700.0)]


def test_the_rescue_shown_is_the_one_of_median_release() -> None:
    releases = {1000: 4000.0, 1001: np.nan, 1002: 3000.0}
    readings = {RunId("RESCUE", 1.35, seed): {"last": {"release_s": at}} for seed, at in releases.items()}
    rehearsal = Rehearsal(None, (1000, 1001, 1002), readings, {}, {})  # type: ignore[arg-type]
    assert seed_of_median_release(rehearsal, 1.35) == 1000


def test_every_picture_is_called_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    tests = ("e2", "basin-1", "basin-2", "mirror", "closed", "r1")
    rehearsals = {}
    for test in tests:
        registration = registration_of(test)
        readings = {run: readings_of(registration, run) for run in registration.draft.design.run_ids()}
        rehearsals[test] = Rehearsal(registration, (0, 1, 2), readings, {}, {})
    monkeypatch.setattr("cli.render.figures.all_series", lambda _, runs, *__: {run: series(run.seed) for run in runs})
    flow = Flow(MIDDLE_S, MIDDLE_S, MIDDLE_S)
    monkeypatch.setattr("cli.render.figures.literal_fluid", lambda *_: flow)
    tables = {
        name: tuple(Compared(row, agree(row.printed, [1.0, 1.0])) for row in rows)
        for name, rows in chosen_tables(["basin-1", "basin-2"]).items()
    }
    with drawing() as plot:
        pictures = dict(_figures(plot, Reproduction((0, 1, 2), tables, rehearsals), Console()))
    assert list(pictures) == [*tests, "rescue", "basin", "mirror-completions", "theory"]
    for picture in pictures.values():
        assert str(picture.get_suptitle()).startswith("SIMULATED: ")


def test_a_picture_has_the_same_bytes_again(tmp_path: Path) -> None:
    runs = {RunId(arm, 1.35, seed): series(seed) for arm in ("BURST", "NOBURST") for seed in (1, 2)}
    files = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        with drawing() as plot:
            marks = {"burst": [(100.0, 200.0)]}
            figure = draw_arms(
                plot, runs, title="SIMULATED: a test", marks=marks, judged=(500.0, 900.0), horizon_s=1000.0
            )
            assert str(figure.get_suptitle()).startswith("SIMULATED: a test")
            files.append(save(figure, folder, "arms"))
    assert [file.name for file in files[0]] == ["arms.svg", "arms.png"]
    for one, other in zip(*files, strict=True):
        assert one.read_bytes() == other.read_bytes()
        assert b"dc:date" not in one.read_bytes()
