"""Shards: what is in them, and that nothing but the grid decides their bytes."""

from __future__ import annotations

import fcntl
import json
import math
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from cli.workflows import sweep_shards
from cli.workflows.explore import load_rule_file, simulated_calibration
from cli.workflows.rehearse import provisional, read_cached, rehearse_runs, simulated, simulated_tables
from cli.workflows.sweep import Request, frozen_sweep, make_sweep
from cli.workflows.sweep_folder import load_sweep
from cli.workflows.sweep_frozen import read_sweep
from cli.workflows.sweep_shards import make_shards
from registry.canonical import canonical_bytes
from registry.design import RunId
from registry.errors import StudyError, TrapError
from registry.reading_catalogue import READING_KINDS
from tests.sweeps.support import AXES, QUIET, RUNS, contents
from verifier.series import series_of

REQUEST = Request(AXES, shard_runs=6, records=True)


@pytest.fixture(scope="session")
def small(rule_file: Path) -> bytes:
    """The rule file frozen with the sweep's rates, as a rehearsal reads it."""
    draft = load_rule_file(rule_file)
    calibration = simulated_calibration(draft, rule_file.parent, QUIET)
    source = json.loads(json.dumps(draft.source))
    source["design"]["rates"] = [1.35, 1.2]
    return provisional(replace(draft, source=source), calibration)


def same_run(row: pd.Series[object]) -> RunId:
    """The run of the small rule file that a point of the sweep is."""
    arms = {(12, False): "BURST", (0, False): "NOBURST", (12, True): "CAPPED"}
    return RunId(arms[int(str(row["burst_sessions"])), row["cap"] == 4], float(str(row["rate"])), int(str(row["seed"])))


def test_readings_are_those_of_the_same_run_in_a_rehearsal(whole: Path, small: bytes) -> None:
    frame = pd.read_parquet(whole / "readings").set_index("run")
    compared = 0
    for number, row in frame.iterrows():
        if row["burst_sessions"] == 0 and row["cap"] == 4:
            continue  # no arm of the rule file
        run = same_run(row)
        (readings,) = rehearse_runs((small, (run,))).values()
        for name in READING_KINDS:
            np.testing.assert_array_equal(row[f"judged.{name}"], readings["judged"][name], f"{number} {name}")
        assert row["lambda_per_s"] == read_cached(small).lambda_per_s(run)
        assert bool(row["BURST.busy"]) == (readings["judged"]["turns_per_s"] > 0)
        compared += 1
    assert (len(frame), compared) == (RUNS, 12)
    # What differs must differ: a gate is seen to hold sessions back, a burst to bring some.
    delayed = frame.groupby(["burst_sessions", frame["cap"].fillna(0)])["judged.delayed"].sum()
    assert delayed[12, 4.0] > 0 == delayed[12, 0.0]
    assert frame["judged.arrivals_per_s"].nunique() > 2


def test_the_data_set_says_what_it_is(whole: Path) -> None:
    shards = sorted((whole / "readings").iterdir())
    assert [file.name for file in shards] == ["shard-00000.parquet", "shard-00001.parquet", "shard-00002.parquet"]
    for file in whole.rglob("*.parquet"):
        assert b"exploratory" in pq.read_schema(file).metadata[b"statement"], file
    schema = pq.read_schema(shards[0])
    assert schema.names == json.loads((whole / "sweep.json").read_text())["columns"]["readings"]
    assert schema.field("judged.sojourn_s").metadata == {b"unit": b"s"}
    assert [pq.read_metadata(file).num_rows for file in shards] == [6, 6, 4]


def test_what_is_undefined_is_null(whole: Path) -> None:
    table = pq.read_table(whole / "readings")
    assert table.column("cap").null_count == RUNS // 2
    assert table.column("judged.engaged_s").null_count == RUNS // 2
    assert not any(math.isnan(value) for value in table.column("judged.engaged_s").drop_null().to_pylist())


def test_series_are_the_runs_in_bins(whole: Path, small: bytes) -> None:
    series = pd.read_parquet(whole / "series")
    frame = pd.read_parquet(whole / "readings").set_index("run")
    (number, *_) = frame.index[(frame["burst_sessions"] == 12) & (frame["cap"] == 4)]
    registration, run = read_cached(small), same_run(frame.loc[number])
    expected = series_of(simulated(registration, run), 240.0, 60.0, registration.cell.cache_block_tokens)
    found = series[series["run"] == number]
    assert found["bin_start_s"].tolist() == [0.0, 60.0, 120.0, 180.0]
    np.testing.assert_array_equal(found["at_gate"], expected.at_gate.astype(np.float32))
    np.testing.assert_array_equal(found["outstanding"], expected.outstanding.astype(np.float32))
    np.testing.assert_array_equal(found["followup_hit_fraction"], expected.hits.astype(np.float32))
    assert found["at_gate"].max() > 0
    assert len(series) == 4 * RUNS


def test_records_are_kept_whole(whole: Path) -> None:
    sweep = load_sweep(whole)
    registration, run = sweep.at(sweep.grid.point(7))
    for name, expected in simulated_tables(registration, run).items():
        kept = pq.read_table(whole / "records" / name, filters=[("run", "==", 7)])
        assert kept.drop_columns(["run"]).cast(expected.schema).equals(expected), name


def test_without_records_only_readings_and_series_are_kept(rule_file: Path, tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_bytes(frozen_sweep(rule_file, Request({"seed": "3:3"}), QUIET))
    make_shards(str(tmp_path), 0, 0)
    assert list(contents(tmp_path)) == ["readings/shard-00000.parquet", "series/shard-00000.parquet", "sweep.json"]


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_change_no_byte(rule_file: Path, whole: Path, tmp_path: Path, workers: int) -> None:
    outcome = make_sweep(rule_file, tmp_path / "new", REQUEST, QUIET, workers=workers)
    assert (outcome.runs, outcome.shards, outcome.made) == (RUNS, 3, 3)
    assert contents(tmp_path / "new") == contents(whole)


def test_a_place_and_a_copy_of_the_rule_file_change_no_byte(rule_file: Path, frozen: bytes, tmp_path: Path) -> None:
    shutil.copytree(rule_file.parent, tmp_path / "elsewhere" / "rules")
    assert frozen_sweep(tmp_path / "elsewhere" / "rules" / "small.yaml", REQUEST, QUIET) == frozen


def test_only_what_is_missing_is_made(rule_file: Path, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "begun"
    shutil.copytree(whole, folder)
    (folder / "readings" / "shard-00001.parquet").unlink()
    (folder / "series" / "shard-00001.parquet").write_bytes(b"from another attempt")
    (folder / "series" / ".shard-00002.parquet.0badcafe.partial").write_bytes(b"half")
    (folder / "series" / "notes.partial").write_bytes(b"of the user")
    before = (folder / "readings" / "shard-00000.parquet").stat().st_ino
    assert make_sweep(rule_file, folder, REQUEST, QUIET).made == 1
    assert (folder / "readings" / "shard-00000.parquet").stat().st_ino == before
    assert contents(folder) == contents(whole) | {"series/notes.partial": b"of the user"}
    assert make_sweep(rule_file, folder, REQUEST, QUIET).made == 0


@pytest.mark.parametrize(("moment", "renamed"), [("sync(1)", 0), ("rename(6)", 5)])
def test_a_kill_at_any_moment_leaves_whole_shards_only(
    frozen: bytes, whole: Path, tmp_path: Path, moment: str, renamed: int
) -> None:
    (tmp_path / "sweep.json").write_bytes(frozen)
    killer = f"""
import os, pathlib, signal
from cli.workflows import sweep_shards
calls = 0
def counted(name, original):
    def call(*arguments):
        global calls
        calls += {moment.partition("(")[0]!r} == name
        if calls == {moment.partition("(")[2].strip(")")}:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments)
    return call
sweep_shards.sync = counted("sync", sweep_shards.sync)
pathlib.Path.replace = counted("rename", pathlib.Path.replace)
sweep_shards.make_shards({str(tmp_path)!r}, 0, 2)
"""
    done = subprocess.run([sys.executable, "-c", killer], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    found = contents(tmp_path)
    shards = [name for name in found if name.endswith(".parquet")]
    assert len(shards) == renamed
    assert not any(name.startswith("readings") for name in shards)
    assert {name: found[name] for name in shards} == {name: contents(whole)[name] for name in shards}
    assert sum(name.endswith(".partial") for name in found) == 6 - renamed
    sweep_shards.remove_leftovers(tmp_path, load_sweep(tmp_path))
    assert make_shards(str(tmp_path), 0, 2) == 3
    assert contents(tmp_path) == contents(whole)


def test_a_shard_that_fails_leaves_nothing(frozen: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sweep.json").write_bytes(frozen)
    made = sweep_shards.make_run

    def failing(*arguments: object) -> object:
        if arguments[1] == 3:
            raise TrapError("no more")
        return made(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(sweep_shards, "make_run", failing)
    with pytest.raises(TrapError, match="no more"):
        make_shards(str(tmp_path), 0, 0)
    assert list(contents(tmp_path)) == ["sweep.json"]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (Request(AXES | {"rate": "1.35"}, shard_runs=6, records=True), "axes.rate"),
        (Request(AXES, shard_runs=7, records=True), "shard_runs"),
        (Request(AXES, shard_runs=6), "records"),
        (Request(AXES, shard_runs=6, records=True, bin_s=30.0), "bin_s"),
        (Request({"seed": "0:1"}, arm="CAPPED", shard_runs=6, records=True), "arm"),
    ],
    ids=["rates", "shard size", "records", "bins", "arm"],
)
def test_another_sweep_in_the_same_folder_is_refused(
    rule_file: Path, frozen: bytes, tmp_path: Path, request_: Request, field: str
) -> None:
    (tmp_path / "sweep.json").write_bytes(frozen)
    with pytest.raises(StudyError, match="another sweep") as caught:
        make_sweep(rule_file, tmp_path, request_, QUIET)
    assert field in str(caught.value.value)
    assert list(contents(tmp_path)) == ["sweep.json"]


def test_a_sweep_of_another_version_is_refused(rule_file: Path, frozen: bytes, tmp_path: Path) -> None:
    older = json.loads(frozen) | {"made_with": {"trapkit": "0.0.1", "pyarrow": "1.0"}}
    (tmp_path / "sweep.json").write_bytes(canonical_bytes(older))
    with pytest.raises(StudyError, match="another sweep") as caught:
        make_sweep(rule_file, tmp_path, REQUEST, QUIET)
    assert caught.value.value == "made_with"


def test_a_folder_that_is_somebody_elses_is_refused(rule_file: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("words")
    for out, words in ((tmp_path, "not empty"), (tmp_path / "thesis.tex", "in the folder's place")):
        with pytest.raises(StudyError, match=words):
            make_sweep(rule_file, out, REQUEST, QUIET)
    assert list(contents(tmp_path)) == ["thesis.tex"]


def test_two_programs_do_not_make_one_sweep(rule_file: Path, frozen: bytes, tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_bytes(frozen)
    with (tmp_path / "sweep.json").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StudyError, match="another program"):
            make_sweep(rule_file, tmp_path, REQUEST, QUIET)


@pytest.mark.parametrize(("first", "last"), [(-1, 0), (0, 3), (2, 1)])
def test_shards_that_are_not_there_are_refused(whole: Path, first: int, last: int) -> None:
    with pytest.raises(StudyError, match="no such shards"):
        make_shards(str(whole), first, last)


def test_a_folder_without_a_sweep_is_told(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="no sweep"):
        make_shards(str(tmp_path), 0, 0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema", "trap-sweep-0"),
        ("arm", "NOBODY"),
        ("bin_s", "wide"),
        ("bin_s", -1),
        ("shard_runs", 0),
        ("axes", {}),
        ("axes", {"seed": [0]}),
        ("axes", []),
        ("registration", {}),
    ],
)
def test_a_malformed_sweep_file_is_refused_in_words(frozen: bytes, field: str, value: object) -> None:
    with pytest.raises(TrapError):
        read_sweep(canonical_bytes(json.loads(frozen) | {field: value}), "sweep.json")


@pytest.mark.parametrize(("axis", "values"), [("seed", ["0"]), ("rate", [True]), ("cap", []), ("order", [1])])
def test_a_malformed_axis_is_refused_in_words(frozen: bytes, axis: str, values: list[object]) -> None:
    value = json.loads(frozen)
    value["axes"][axis] = values
    with pytest.raises(StudyError):
        read_sweep(canonical_bytes(value), "sweep.json")


@pytest.mark.parametrize("bin_s", [0.0, -1.0, math.nan, math.inf, 0.01, 241.0])
def test_bins_that_do_not_fit_are_refused(rule_file: Path, bin_s: float) -> None:
    with pytest.raises(StudyError, match="do not fit"):
        frozen_sweep(rule_file, Request(bin_s=bin_s), QUIET)


def test_an_unknown_arm_is_refused(rule_file: Path) -> None:
    with pytest.raises(StudyError, match="no such arm"):
        frozen_sweep(rule_file, Request(arm="NOBODY"), QUIET)
