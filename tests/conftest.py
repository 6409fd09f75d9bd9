"""Fixtures that more than one room uses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support import command, copy_study, empty_study

# Machines are shared: how long one example takes says nothing.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def _own_key(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test touches the user's key, or reads the user's git settings."""
    folder = tmp_path_factory.mktemp("home")
    # Studies of tests need not outlive a power cut, nor be kept small.
    (folder / ".gitconfig").write_text("[core]\n fsync = none\n[gc]\n auto = 0\n[maintenance]\n auto = false\n")
    with pytest.MonkeyPatch.context() as patch:
        # The compiled core is kept between test runs, for this process and its children.
        patch.setenv("NUMBA_CACHE_DIR", os.environ.get("NUMBA_CACHE_DIR") or str(Path.home() / ".cache"))
        patch.setenv("TRAP_SIGNING_KEY", str(folder / "signing-key"))
        patch.setenv("HOME", str(folder))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        patch.delenv("XDG_CONFIG_HOME", raising=False)
        yield


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small study, registered, run and verified. Read it; never change it."""
    root = empty_study(tmp_path_factory.mktemp("finished"), "--commit-runs")
    for arguments in (("register", "rules/small.yaml"), ("run", "small")):
        done = command(root, *arguments)
        assert done.code == 0, done.text
    return root


@pytest.fixture
def study(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished study, free to tamper with."""
    return copy_study(finished, tmp_path)
