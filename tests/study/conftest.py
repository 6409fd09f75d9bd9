"""Studies in these tests are small: their runs are quicker interpreted than
numba's machinery is loaded, and few seeds rehearse a rule. That compiled runs
give the same bits is tests/runners' business; tests/docs runs the compiled core
and whole rehearsals from end to end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

# In this process the core is decorated before compilation is switched off for children.
import cli.workflows.rehearse
import runners.gate
from tests.study.hosted import Hosts, clone_of, finish, github_study, hosts, trusted
from tests.study.remembered import remembered_figures, remembered_rerun, remembered_runs

assert cli.workflows.rehearse and runners.gate


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setattr("cli.workflows.rehearse.rehearse.__defaults__", (4, 1000))
    monkeypatch.setattr("cli.workflows.rehearse.run_all", remembered_runs)
    monkeypatch.setattr("cli.workflows.predict.run_all", remembered_runs)
    monkeypatch.setattr("cli.workflows.study_figures.drawn_figures", remembered_figures)
    monkeypatch.setattr("verifier.verification.rerun", remembered_rerun)


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """The services, which the program does not believe unless a test says so."""
    with hosts(tmp_path_factory.mktemp("hosts")) as found:
        yield found


@pytest.fixture(scope="session")
def github_finished(running: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small study on the stub of GitHub, registered and run. Read it; never change it."""
    root = github_study(tmp_path_factory.mktemp("github"), running)
    with trusted(running), pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_DISABLE_JIT", "1")
        patch.setattr("cli.workflows.rehearse.rehearse.__defaults__", (4, 1000))
        finish(root)
    return root


@pytest.fixture(scope="session")
def github_clone(github_finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An auditor's clone of it. Read it; never change it."""
    return clone_of(github_finished, tmp_path_factory.mktemp("auditor"))


@pytest.fixture
def services(running: Hosts, github_finished: Path) -> Iterator[Hosts]:
    """The services, believed by the program; GitHub shows the finished study."""
    running.github.bare = github_finished.with_name("study-remote.git")
    with trusted(running):
        yield running
