"""Releases of a session cap, and the windows that they open."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from registry.design import ReleaseWindow, Window
from verifier.turn_columns import equal_to, float_column, text_column

Releases = Mapping[str, float]
"""By arm, when its run of one rate and seed was released; NaN: never."""


def first_release_s(gate: pd.DataFrame) -> float:
    """The first `released` of a gate's log, seconds from the run's start; NaN
    where there is none.
    """
    times = float_column(gate, "time_s")[equal_to(text_column(gate, "event"), "released")]
    return float(np.min(times)) if times.size else math.nan


def opened_window(window: ReleaseWindow, releases: Releases) -> Window | None:
    """The window as one run's release opened it; None where that run is not
    known.
    """
    release_s = releases.get(window.from_release_of)
    return None if release_s is None else window.opened(release_s)
