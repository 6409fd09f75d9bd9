"""Tables and phase diagrams of a sweep, and the two commands."""

from __future__ import annotations

import csv
import io
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from cli.render.picture_phase import draw_phase, draw_pivot
from cli.render.pictures import drawing
from cli.render.pivot import caption, pivot_csv, pivot_latex, pivot_markdown
from cli.workflows.sweep_tables import Pivot, pivot
from registry.errors import RecordError, StudyError, TrapError
from tests.support import command
from tests.sweeps.support import RUNS, contents

READING, VERDICT = "judged.sojourn_s", "BURST.busy"


def expected(whole: Path, value: str, statistic: str) -> np.ndarray:
    """The same table by pandas."""
    frame = pd.read_parquet(whole / "readings")
    frame[value] = frame[value].astype("float64")
    frame["cap"] = frame["cap"].fillna(-1)
    table = frame.pivot_table(index="cap", columns="rate", values=value, aggfunc=statistic)
    return table.loc[[-1, 4], [1.35, 1.2]].to_numpy()


@pytest.mark.parametrize("statistic", ["mean", "median", "min", "max", "count"])
def test_a_table_is_what_pandas_makes_of_the_data_set(whole: Path, statistic: str) -> None:
    table = pivot(whole, "cap", "rate", READING, statistic)
    assert (table.row_values, table.column_values) == ((None, 4), (1.35, 1.2))
    np.testing.assert_allclose(table.cells, expected(whole, READING, statistic), rtol=1e-12)
    assert (table.runs, table.expected, dict(table.pooled)) == (RUNS, RUNS, {"seed": 2, "burst_sessions": 2})


def test_a_verdict_has_its_share_over_the_runs_where_it_is_decided(whole: Path, tmp_path: Path) -> None:
    table = pivot(whole, "cap", "rate", VERDICT)
    assert table.statistic == "share"
    assert table.cells.tolist() == expected(whole, VERDICT, "mean").tolist()
    changed = tmp_path / "changed"
    shutil.copytree(whole, changed)
    file = changed / "readings" / "shard-00000.parquet"
    found = pq.read_table(file)
    place = found.schema.get_field_index(VERDICT)
    pq.write_table(found.set_column(place, VERDICT, [[None, False, True, True, False, False]]), file)
    # Runs 0 to 5 are seed 0: 1.35 with burst 0 and cap none, 4, then burst 12; 1.2 with burst 0.
    busy = pivot(changed, "cap", "rate", VERDICT, where=["burst_sessions=0", "seed=0"])
    np.testing.assert_array_equal(busy.cells, [[np.nan, 0.0], [0.0, 0.0]])
    count = pivot(changed, "cap", "rate", VERDICT, "count", ["burst_sessions=0", "seed=0"])
    assert count.cells.tolist() == [[0.0, 1.0], [1.0, 1.0]]


def test_a_condition_chooses_runs(whole: Path) -> None:
    frame = pd.read_parquet(whole / "readings")
    frame = frame[(frame["burst_sessions"] == 12) & frame["cap"].isna()]
    table = pivot(whole, "seed", "rate", READING, "mean", ["burst_sessions=12", "cap=none"])
    wanted = frame.pivot_table(index="seed", columns="rate", values=READING)[[1.35, 1.2]]
    assert table.cells.tolist() == wanted.to_numpy().tolist()
    assert (table.runs, dict(table.where), dict(table.pooled)) == (4, {"burst_sessions": 12, "cap": None}, {})


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("speed", "rate", READING), "no such axis"),
        (("cap", "lambda", READING), "no such axis"),
        (("cap", "cap", READING), "same axis"),
        (("cap", "rate", "judged.speed"), "no such reading or verdict"),
        (("cap", "rate", "BURST.good"), "no such reading or verdict"),
        (("cap", "rate", "run"), "no such reading or verdict"),
        (("cap", "rate", VERDICT, "median"), "a share or a count"),
        (("cap", "rate", READING, "share"), "no share"),
        (("cap", "rate", READING, None, ["burst_sessions=13"]), "no such value"),
        (("cap", "rate", READING, None, ["burst_sessions=0:1"]), "no such value"),
        (("cap", "rate", READING, None, ["burst_sessions"]), "not a number"),
        (("cap", "rate", READING, None, ["speed=1"]), "no such axis"),
        (("cap", "rate", READING, None, ["cap=4"]), "is fixed"),
    ],
)
def test_what_a_sweep_has_not_is_refused_in_words(whole: Path, arguments: tuple[str, ...], word: str) -> None:
    with pytest.raises(StudyError, match=word):
        pivot(whole, *arguments)  # type: ignore[arg-type]


def test_an_unfinished_sweep_says_so(whole: Path, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    shutil.copytree(whole, begun)
    (begun / "readings" / "shard-00001.parquet").unlink()
    table = pivot(begun, "cap", "rate", READING)
    assert (table.runs, table.expected) == (10, RUNS)
    assert "10 of 16 runs" in caption(table)
    for file in (begun / "readings").iterdir():
        file.unlink()
    with pytest.raises(StudyError, match="no shard"):
        pivot(begun, "cap", "rate", READING)


@pytest.mark.parametrize("fault", ["another shard", "garbage", "a column less"])
def test_a_shard_that_is_not_the_sweeps_is_refused(whole: Path, tmp_path: Path, fault: str) -> None:
    folder = tmp_path / "tampered"
    shutil.copytree(whole, folder)
    first, second = (folder / "readings" / f"shard-0000{shard}.parquet" for shard in (0, 1))
    if fault == "another shard":
        shutil.copy(first, second)
    elif fault == "garbage":
        second.write_bytes(b"PAR1 and nothing behind it PAR1")
    else:
        pq.write_table(pq.read_table(second).drop_columns([READING]), second)
    with pytest.raises(RecordError):
        pivot(folder, "cap", "rate", READING)


def test_each_format_has_the_table_and_what_it_is(whole: Path) -> None:
    table = pivot(whole, "cap", "rate", READING, "max", ["burst_sessions=12"])
    words = "SIMULATED, exploratory: max of judged.sojourn_s; rule file small, arm BURST, cell sglang-300k"
    assert caption(table) == f"{words}, burst_sessions 12; 8 runs, over 2 of seed"
    markdown = pivot_markdown(table).splitlines()
    assert markdown[2:4] == ["| cap by rate | 1.35 | 1.2 |", "| --- | ---: | ---: |"]
    assert markdown[4].startswith("| none | ")
    comment, *rows = pivot_csv(table).splitlines()
    assert comment == f"# {caption(table)}"
    parsed = list(csv.reader(io.StringIO("\n".join(rows))))
    assert parsed[0] == ["cap by rate", "1.35", "1.2"]
    assert [[float(cell) for cell in row[1:]] for row in parsed[1:]] == table.cells.tolist()
    latex = pivot_latex(table)
    assert latex.count(r"\\") == 4 and r"burst\_sessions 12" in latex and "SIMULATED" in latex
    empty = replace(table, cells=np.full((2, 2), np.nan))
    assert "| none | - | - |" in pivot_markdown(empty)
    assert "none,,\n" in pivot_csv(empty)


def test_a_figure_is_the_same_bytes_again_small_and_undated(whole: Path, tmp_path: Path) -> None:
    table = pivot(whole, "burst_sessions", "rate", VERDICT)
    for suffix in (".svg", ".png"):
        first, again = (draw_pivot(table, tmp_path / f"{name}{suffix}").read_bytes() for name in ("first", "again"))
        assert first == again
        assert len(first) < 150_000
        assert b"dc:date" not in first
    with pytest.raises(TrapError, match="unknown kind of picture"):
        draw_pivot(table, tmp_path / "figure.jpg")


def test_the_phase_diagram_shows_the_cells_in_the_order_of_the_axes(whole: Path) -> None:
    table = pivot(whole, "burst_sessions", "rate", VERDICT)
    shares = np.linspace(0.0, 1.0, 4 * 30).reshape(4, 30)
    shares[0, 0] = np.nan
    wide: Pivot = replace(
        table, cells=shares, row_values=(0, 50, 100, 150), column_values=tuple(k / 10 for k in range(10, 40))
    )
    with drawing() as pyplot:
        figure = draw_phase(pyplot, wide)
        axis, bar = figure.axes
        (mesh,) = (part for part in axis.collections if part.get_array() is not None and part.get_array().size == 120)
        assert (mesh.norm.vmin, mesh.norm.vmax) == (0.0, 1.0)
        np.testing.assert_array_equal(np.ma.filled(mesh.get_array(), np.nan).reshape(4, 30), shares)
        assert [label.get_text() for label in axis.get_yticklabels()] == ["0", "50", "100", "150"]
        assert axis.get_yticks().tolist() == [0.5, 1.5, 2.5, 3.5]
        assert 8 <= len(axis.get_xticks()) <= 13
        assert "lambda" in axis.get_xlabel() and axis.get_ylabel() == "sessions in the burst"
        assert "share of runs" in bar.get_ylabel()
        assert "SIMULATED, exploratory" in figure.get_suptitle()


def test_the_two_commands(rule_file: Path, tmp_path: Path) -> None:
    asked = ("sweep", str(rule_file), "--out", "made", "--rates", "1.2,1.35", "--seeds", "0:1", "--bursts", "0,12")
    made = command(tmp_path, *asked)
    assert made.code == 0, made.text
    assert "8 runs (simulated, exploratory) in 8 shards, 8 made now: made" in made.out
    files = contents(tmp_path / "made")
    again = command(tmp_path, *asked)
    assert "8 shards, 0 made now" in again.out
    assert contents(tmp_path / "made") == files
    table = command(
        tmp_path, "tables", "made", "--rows", "burst_sessions", "--columns", "rate", "--value", "BURST.busy",
        "--format", "csv", "--figure", "phase.svg",
    )  # fmt: skip
    assert table.code == 0, table.text
    assert table.out.splitlines()[1:] == ["burst_sessions by rate,1.2,1.35", "0,1.0,1.0", "12,1.0,1.0"]
    assert (tmp_path / "phase.svg").is_file()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--rates", "2:1"), "never gets"),
        (("--caps", "lots"), "not a number"),
        (("--arm", "NOBURST", "--bursts", "9"), "no burst"),
        (("--executor", "slurm", "--seeds", "0:1"), "no study here"),
    ],
)
def test_the_command_refuses_in_words(rule_file: Path, tmp_path: Path, arguments: tuple[str, ...], word: str) -> None:
    done = command(tmp_path, "sweep", str(rule_file), "--out", "made", *arguments)
    assert done.code == 2
    assert word in done.err and "to do:" in done.err


def test_a_sweep_of_no_rule_file_is_told(tmp_path: Path) -> None:
    done = command(tmp_path, "sweep", "nothing.yaml", "--out", "made")
    assert (done.code, "no such rule file" in done.err) == (2, True)
    assert list(tmp_path.iterdir()) == []
