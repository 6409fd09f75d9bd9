"""Studies in these tests are small: their runs are quicker interpreted than
numba's machinery is loaded. That both give the same bits is tests/runners'
business; tests/docs runs the compiled core from end to end.
"""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _interpreted_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
