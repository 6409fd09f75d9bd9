"""Releases of a session cap, and the windows that they open."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from registry.design import GateSetting, ReleaseWindow, Window
from verifier.turn_columns import TurnColumns, due_turns, equal_to, float_column, gate_spans, text_column

Releases = Mapping[str, float]
"""By arm, when its run of one rate and seed was released; NaN: never."""


def first_release_s(gate: pd.DataFrame) -> float:
    """The first `released` of a gate's log, seconds from the run's start; NaN
    where there is none.
    """
    times = float_column(gate, "time_s")[equal_to(text_column(gate, "event"), "released")]
    return float(np.min(times)) if times.size else math.nan


def due_release_s(turns: pd.DataFrame, gate: GateSetting, horizon_s: float) -> float:
    """When the cap had to come off by the waits of the turns: as soon as
    nobody had waited for `release_after_s`. NaN where not before the horizon.
    """
    if gate.release_after_s is None:
        return math.nan
    waits = gate_spans(due_turns(TurnColumns.of(turns), horizon_s))
    some = waits.end_s > waits.begin_s
    order = np.argsort(waits.begin_s[some], kind="stable")
    empty_since_s = gate.engage_s
    for begin_s, end_s in zip(waits.begin_s[some][order], waits.end_s[some][order], strict=True):
        if begin_s >= empty_since_s + gate.release_after_s:
            break
        empty_since_s = max(empty_since_s, float(end_s))
    due_s = empty_since_s + gate.release_after_s
    return due_s if due_s < horizon_s else math.nan


def opened_window(window: ReleaseWindow, releases: Releases) -> Window | None:
    """The window as one run's release opened it; None where that run is not
    known.
    """
    release_s = releases.get(window.from_release_of)
    return None if release_s is None else window.opened(release_s)
