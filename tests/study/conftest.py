"""Studies in these tests are small: their runs are quicker interpreted than
numba's machinery is loaded, and few seeds rehearse a rule. That compiled runs
give the same bits is tests/runners' business; tests/docs runs the compiled core
and whole rehearsals from end to end.
"""

from __future__ import annotations

import pytest

# In this process the core is decorated before compilation is switched off for children.
import cli.workflows.rehearse
import runners.gate

assert cli.workflows.rehearse and runners.gate


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setattr("cli.workflows.rehearse.rehearse.__defaults__", (4, 1000))
