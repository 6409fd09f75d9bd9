"""Sweeps of workloads from a trace: the scripts go along, nobody needs the trace."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cli.workflows.explore import load_rule_file, simulated_calibration
from cli.workflows.rehearse import provisional, rehearse_runs
from cli.workflows.sweep import Request, frozen_sweep, make_sweep
from cli.workflows.sweep_folder import load_sweep, prepare
from cli.workflows.sweep_frozen import read_sweep
from cli.workflows.sweep_shards import make_shards
from registry.bundle import unbundled
from registry.design import RunId
from registry.errors import DraftError, StudyError
from tests.made_traces import rule_of, write_trace
from tests.support import SMALL_CALIBRATION
from tests.sweeps.support import QUIET, contents

REQUEST = Request({"seed": "0:1", "burst_sessions": "0,12"}, shard_runs=2)


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder above rule files, with the trace. Read it; never change it."""
    folder = tmp_path_factory.mktemp("study")
    write_trace(folder)
    (folder / "rules").mkdir()
    (folder / "rules/all-miss-small.yaml").write_text(SMALL_CALIBRATION)
    for arrivals in ("re-timed", "replayed"):
        rule = rule_of(folder / "trace.jsonl", arrivals=arrivals).replace(f"{folder}/", "")
        (folder / f"rules/{arrivals}.yaml").write_text(rule)
    return folder


@pytest.fixture(scope="module", params=["re-timed", "replayed"])
def rule(rules: Path, request: pytest.FixtureRequest) -> Path:
    return rules / f"rules/{request.param}.yaml"


@pytest.fixture(scope="module")
def made(rule: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The finished sweep. Read it; never change it."""
    folder = tmp_path_factory.mktemp("made") / "sweep"
    data = frozen_sweep(rule, REQUEST, QUIET)
    prepare(folder, read_sweep(data, "sweep.json"), data)
    assert make_shards(str(folder), 0, 1) == 2
    return folder


@pytest.fixture
def moved(made: Path, rule: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The sweep and the rule file elsewhere, where the trace is not."""
    shutil.copytree(made, tmp_path / "sweep")
    shutil.copytree(rule.parent, tmp_path / "rules")
    return tmp_path / "sweep", tmp_path / "rules" / rule.name


def scripts_file(folder: Path) -> Path:
    (file,) = (folder / "workloads").iterdir()
    return file


def test_the_scripts_stand_beside_it_by_their_digest(made: Path) -> None:
    file = scripts_file(made)
    assert file.name == f"{hashlib.sha256(file.read_bytes()).hexdigest()}.json"
    facts = json.loads((made / "sweep.json").read_bytes())["registration"]["session_scripts"]
    assert f"{facts['sha256']}.json" == file.name and facts["sessions"] == 10
    assert set(contents(made)) == {
        "sweep.json", f"workloads/{file.name}",
        *(f"{table}/shard-0000{shard}.parquet" for table in ("readings", "series") for shard in (0, 1)),
    }  # fmt: skip


def test_readings_are_those_of_the_same_run_in_a_rehearsal(made: Path, rule: Path) -> None:
    draft = load_rule_file(rule)
    data = provisional(draft, simulated_calibration(draft, rule.parent, QUIET))
    frame = pd.read_parquet(made / "readings").set_index("run")
    for number, arm in ((0, "NOBURST"), (3, "BURST")):
        row = frame.loc[number]
        assert row["burst_sessions"] == (12 if arm == "BURST" else 0)
        (readings,) = rehearse_runs((data, (RunId(arm, 1.35, int(row["seed"])),))).values()
        for name, value in readings["judged"].items():
            np.testing.assert_array_equal(row[f"judged.{name}"], value, name)
    same = frame.loc[0, "judged.turns_per_s"] == frame.loc[2, "judged.turns_per_s"]
    assert same == ("replayed" in rule.name), "without a burst, seeds of a replay are the same run"


def test_it_goes_on_to_the_same_bytes_after_the_trace_is_deleted(made: Path, moved: tuple[Path, Path]) -> None:
    folder, rule = moved
    with pytest.raises(StudyError, match="no such trace"):
        frozen_sweep(rule, REQUEST, QUIET)
    (folder / "readings/shard-00001.parquet").unlink()
    assert make_sweep(rule, folder, REQUEST, QUIET, workers=1).made == 1
    assert contents(folder) == contents(made)
    # Another machine's shards read the folder alone.
    shutil.rmtree(rule.parent)
    (folder / "readings/shard-00000.parquet").unlink()
    assert make_shards(str(folder), 0, 1) == 1
    assert contents(folder) == contents(made)


def test_changed_and_missing_scripts_are_refused(moved: tuple[Path, Path]) -> None:
    folder, rule = moved
    (folder / "readings/shard-00001.parquet").unlink()
    file = scripts_file(folder)
    file.write_bytes(file.read_bytes().replace(b'"turns":[[', b'"turns":[[1', 1))
    for words in ("not those that the registration names", "are not there"):
        with pytest.raises(DraftError, match=words):
            make_shards(str(folder), 0, 1)
        with pytest.raises(DraftError, match=words):
            make_sweep(rule, folder, REQUEST, QUIET)
        with pytest.raises(DraftError, match=words):
            load_sweep(folder)
        file.unlink(missing_ok=True)
    assert not (folder / "readings/shard-00001.parquet").exists()


def test_another_trace_is_another_sweep(made: Path, rules: Path, rule: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "sweep")
    shutil.copytree(rules, tmp_path / "study")
    changed = tmp_path / "study/rules" / rule.name
    changed.write_text(changed.read_text().replace('"seed": 3', '"seed": 4'))
    before = contents(tmp_path / "sweep")
    with pytest.raises(StudyError, match="another sweep"):
        make_sweep(changed, tmp_path / "sweep", REQUEST, QUIET)
    assert contents(tmp_path / "sweep") == before


def test_a_beginning_that_was_killed_is_gone_on_with(rule: Path, tmp_path: Path) -> None:
    data = frozen_sweep(rule, REQUEST, QUIET)
    sweep, (own, scripts) = read_sweep(data, "sweep.json"), unbundled(data)
    assert scripts is not None
    name = f"{hashlib.sha256(scripts).hexdigest()}.json"
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads" / f".{name}.partial").write_bytes(scripts[:9])
    (tmp_path / "workloads" / name).write_bytes(scripts)
    prepare(tmp_path, sweep, data)
    assert (tmp_path / "sweep.json").read_bytes() == own
    assert load_sweep(tmp_path).registration.digest == sweep.registration.digest
    (tmp_path / "sweep.json").unlink()
    (tmp_path / "workloads/thesis.tex").write_text("words")
    with pytest.raises(StudyError, match="not empty"):
        prepare(tmp_path, sweep, data)


def test_the_oracle_of_evictions_is_refused(rule: Path) -> None:
    request = replace(REQUEST, axes={"eviction": "lru,longest-wait"})
    with pytest.raises(StudyError, match="blocks that sessions share") as caught:
        frozen_sweep(rule, request, QUIET)
    assert (caught.value.where, caught.value.value) == ("--evictions", "longest-wait")


def test_a_pool_too_small_for_a_turn_is_refused(rule: Path) -> None:
    with pytest.raises(StudyError, match="too small for one turn"):
        frozen_sweep(rule, replace(REQUEST, axes={"pool_tokens": "2k"}), QUIET)
