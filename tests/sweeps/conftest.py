"""One small sweep, made once: two seeds, rates, bursts and caps, in three shards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.workflows import sweep
from cli.workflows.reporter import Reporter
from cli.workflows.sweep import Request, frozen_sweep
from cli.workflows.sweep_folder import load_sweep
from cli.workflows.sweep_shards import make_shards
from registry.draft import Draft
from registry.draft_workload import ScriptsFor
from registry.registration import Calibration
from tests.support import SMALL_CALIBRATION, SMALL_RULE
from tests.sweeps.support import AXES, QUIET


@pytest.fixture(scope="session", autouse=True)
def _calibrated_once() -> Iterator[None]:
    """A rule file in a folder is calibrated for real, once."""
    known: dict[tuple[str, Path], Calibration | None] = {}
    calibrate = sweep.simulated_calibration

    def once(draft: Draft, folder: Path, reporter: Reporter, scripts_for: ScriptsFor) -> Calibration | None:
        if (draft.sha256, folder) not in known:
            known[draft.sha256, folder] = calibrate(draft, folder, reporter, scripts_for)
        return known[draft.sha256, folder]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep, "simulated_calibration", once)
        yield


@pytest.fixture(scope="session")
def rule_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweeps") / "rules"
    folder.mkdir()
    (folder / "all-miss-small.yaml").write_text(SMALL_CALIBRATION)
    file = folder / "small.yaml"
    file.write_text(SMALL_RULE)
    return file


@pytest.fixture(scope="session")
def frozen(rule_file: Path) -> bytes:
    return frozen_sweep(rule_file, Request(AXES, shard_runs=6, records=True), QUIET)


@pytest.fixture(scope="session")
def whole(frozen: bytes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The finished sweep, made in this process. Read it; never change it."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "sweep.json").write_bytes(frozen)
    assert make_shards(str(folder), 0, load_sweep(folder).shards - 1) == 3
    return folder
