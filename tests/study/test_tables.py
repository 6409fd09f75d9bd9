"""trapkit tables inside a study: verified runs, nothing of the others, the same bytes again."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from artifacts.reader import read_run_record, read_tables
from cli.workflows.verify import verify
from tests.support import command
from verifier.run_report import frames_of
from verifier.series import series_of


@pytest.fixture(scope="module")
def written(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables") / "out"
    done = command(finished, "tables", "--out", str(folder))
    assert done.code == 0, done.text
    assert str(folder / "README.md") in done.out
    return folder


def rows(file: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(file.read_text())))


def test_everything_written_is_in_the_index_and_everything_in_it_is_there(written: Path) -> None:
    index = (written / "README.md").read_text()
    linked = set(re.findall(r"\]\(([^)]+)\)", index))
    found = {str(path.relative_to(written)) for path in written.rglob("*") if path.is_file()}
    assert linked == found - {"README.md"}
    assert {"tables/table-1-tests.tex", "figures/small-v1-over-time.svg", "figures/small-v1-over-time.csv"} <= found
    assert index.startswith("# SIMULATED: tables and figures of ")
    assert "No registered run." in index
    assert "no session cap engages inside its runs" in index


def test_the_same_study_gives_the_same_bytes(written: Path, study: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    assert command(study, "tables", "--out", str(again)).code == 0
    for file in written.rglob("*"):
        if file.is_file():
            assert (again / file.relative_to(written)).read_bytes() == file.read_bytes(), file.name


def test_the_first_table_has_every_registration_and_verdict(written: Path, finished: Path) -> None:
    found = rows(written / "tables" / "table-1-tests.csv")
    report, _ = verify(finished)
    counts = {
        (f"{proof.registration.id} v1", name): (str(true), str(decided))
        for proof in report.proofs
        if proof.registration
        for rate in proof.rates
        for name, (true, decided) in rate.counts.items()
    }
    assert {
        (row["registration"], row["run_verdict"]): (row["true_runs"], row["decided_runs"]) for row in found
    } == counts
    assert {row["runs_are"] for row in found} == {"simulated"}


def test_the_series_drawn_are_those_of_the_run_files(written: Path, finished: Path) -> None:
    drawn = rows(written / "figures" / "small-v1-over-time.csv")
    assert {row["arm"] for row in drawn} == {"BURST", "NOBURST", "CAPPED"}
    folder = finished / "runs" / "small.v1" / "BURST" / "1.35" / "1" / "attempt-1"
    series = series_of(frames_of(read_tables(folder, read_run_record(folder))), 240.0, 2.0, 1)
    mine = [row for row in drawn if (row["arm"], row["seed"]) == ("BURST", "1")]
    assert [float(row["outstanding_sessions"]) for row in mine] == series.outstanding.tolist()
    assert [float(row["time_s"]) for row in mine] == series.middle_s.tolist()


def test_a_verification_has_no_series_unless_asked(finished: Path) -> None:
    report, _ = verify(finished)
    assert all(run.series is None for proof in report.proofs for run in proof.runs)
    report, _ = verify(finished, with_series=True)
    assert all(run.series is not None for proof in report.proofs for run in proof.runs)


def test_without_a_folder_the_tables_are_printed(finished: Path) -> None:
    before = {path for path in finished.rglob("*") if ".git" not in path.parts}
    done = command(finished, "tables")
    assert done.code == 0, done.text
    assert done.out.startswith("**SIMULATED: Table 1. The registered tests of ")
    assert "| small v1 | A small paired test |" in done.out
    latex = command(finished, "tables", "--format", "latex")
    assert latex.out.startswith("\\begin{table}")
    assert command(finished, "tables", "--format", "csv").out.startswith("# SIMULATED: Table 1.")
    assert {path for path in finished.rglob("*") if ".git" not in path.parts} == before


def test_a_changed_run_is_in_no_figure_and_named_with_its_reason(study: Path, tmp_path: Path) -> None:
    file = study / "runs" / "small.v1" / "BURST" / "1.35" / "0" / "attempt-1" / "turns.parquet"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    gone = study / "runs" / "small.v1" / "NOBURST" / "1.35" / "1" / "attempt-1" / "run.json"
    gone.unlink()
    done = command(study, "tables", "--out", str(tmp_path / "out"))
    assert done.code == 1, done.text
    index = (tmp_path / "out" / "README.md").read_text()
    assert re.search(r"reg/small/v1 BURST/1\.35/0: REFUTED: ", index)
    assert re.search(r"reg/small/v1 NOBURST/1\.35/1: ", index)
    assert "its proof FAILED" in index
    drawn = rows(tmp_path / "out" / "figures" / "small-v1-over-time.csv")
    assert {(row["arm"], row["seed"]) for row in drawn} == {
        ("BURST", "1"), ("NOBURST", "0"), ("CAPPED", "0"), ("CAPPED", "1")
    }  # fmt: skip
    table = rows(tmp_path / "out" / "tables" / "table-1-tests.csv")
    assert {row["proof"] for row in table if row["registration"] == "small v1"} == {"FAILED"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rows", "cap"], "--rows"),
        (["--where", "cap=4"], "--where"),
        (["somewhere", "--out", "x"], "--out"),
        (["somewhere", "--rows", "cap"], "needs its axes and a value"),
    ],
)
def test_options_of_the_other_kind_are_refused(finished: Path, arguments: list[str], words: str) -> None:
    done = command(finished, "tables", *arguments)
    assert done.code == 2
    assert words in done.err
    assert "to do: " in done.err


def test_outside_a_study_there_is_nothing_to_make_tables_of(tmp_path: Path) -> None:
    done = command(tmp_path, "tables")
    assert done.code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = command(finished, "tables", "--out", str(tmp_path / "file"))
    assert done.code == 2
    assert str(tmp_path / "file") in done.err
