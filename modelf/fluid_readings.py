"""Readings of a fluid orbit in a window, named as those of a run.

The names are those of the reading catalogue; "turns finished" is the mass of
turns served in [start_s, end_s), "sessions waiting at or served by the
engine" are the sessions present: in model F there are no others.
"""

from __future__ import annotations

import math

import numpy as np

from modelf.fluid import FluidOrbit
from modelf.fluid_inputs import Vector
from modelf.workload import Workload

SAMPLE_S = 10.0
"""Spacing of the backlog samples, seconds, as in runs."""


def window_readings(orbit: FluidOrbit, workload: Workload, start_s: float, end_s: float) -> dict[str, float]:
    """By name: mean_prompt_tokens (tokens), completions_per_s, arrivals_per_s,
    turns_per_s (1/s), backlog_slope_per_s (sessions/s, least squares over
    samples each 10 s), outstanding (sessions, time average), sojourn_s,
    sojourn_slope (seconds a second of completion time, least squares over
    the turns finished). NaN where undefined.
    """
    times = orbit.time_s
    if not times[0] <= start_s < end_s <= times[-1]:
        raise ValueError(f"window [{start_s:g}, {end_s:g}) s is empty or not within {times[0]:g} to {times[-1]:g} s")
    if len(workload.prompts()) != orbit.served.shape[1]:
        raise ValueError(f"{len(workload.prompts())} prompts, but the orbit has {orbit.served.shape[1]} turns")
    width = end_s - start_s
    edges = np.array([start_s, end_s], dtype=np.float64)
    served = np.diff(_rows_at(orbit, edges), axis=0)[0]
    total = float(served.sum())
    sojourn_s, slope = _sojourns(orbit, start_s, end_s)
    return {
        "mean_prompt_tokens": float(served @ workload.prompts()) / total if total > 0 else math.nan,
        "completions_per_s": float(np.diff(np.interp(edges, times, orbit.completed))[0]) / width,
        "arrivals_per_s": float(np.diff(np.interp(edges, times, orbit.entered))[0]) / width,
        "turns_per_s": total / width,
        "backlog_slope_per_s": _backlog_slope(orbit, start_s, end_s),
        "outstanding": _average(orbit, start_s, end_s),
        "sojourn_s": sojourn_s,
        "sojourn_slope": slope,
    }


def _rows_at(orbit: FluidOrbit, times_s: Vector) -> Vector:
    """Turns served by each time, shape (n, K)."""
    last = len(orbit.time_s) - 1
    after = np.clip(np.searchsorted(orbit.time_s, times_s, side="right"), 1, last)
    low, high = orbit.time_s[after - 1], orbit.time_s[after]
    share = np.divide(times_s - low, high - low, out=np.ones_like(times_s), where=high > low)
    before = orbit.served[after - 1]
    return np.asarray(before + share[:, None] * (orbit.served[after] - before))


def _knots(orbit: FluidOrbit, start_s: float, end_s: float, values: Vector) -> tuple[Vector, Vector]:
    """Times and values at the window's edges and at all knots between."""
    inside = (orbit.time_s > start_s) & (orbit.time_s < end_s)
    at_start, at_end = np.interp([start_s, end_s], orbit.time_s, values)
    times = np.concatenate([[start_s], orbit.time_s[inside], [end_s]])
    return times, np.concatenate([[at_start], values[inside], [at_end]])


def _backlog_slope(orbit: FluidOrbit, start_s: float, end_s: float) -> float:
    times = np.arange(start_s, end_s, SAMPLE_S)
    present = np.interp(times, orbit.time_s, orbit.present)
    centred = times - times.mean()
    spread = float(centred @ centred)
    return float(centred @ present) / spread if spread > 0 else math.nan


def _average(orbit: FluidOrbit, start_s: float, end_s: float) -> float:
    times, present = _knots(orbit, start_s, end_s, orbit.present)
    return float(np.trapezoid(present, times)) / (end_s - start_s)


def _sojourns(orbit: FluidOrbit, start_s: float, end_s: float) -> tuple[float, float]:
    """Mean sojourn of the turns finished, and its slope on their completion
    time, each weighed by its mass.
    """
    times, sojourns = _knots(orbit, start_s, end_s, orbit.time_s - orbit.joined_at_s)
    _, served = _knots(orbit, start_s, end_s, orbit.served.sum(axis=1))
    masses = np.maximum(np.diff(served), 0.0)
    if not masses.sum() > 0:
        return math.nan, math.nan
    middle, means = (times[1:] + times[:-1]) / 2, (sojourns[1:] + sojourns[:-1]) / 2
    widths, rises = np.diff(times), np.diff(sojourns)
    centred = middle - np.average(middle, weights=masses)
    # Both are lines between knots: each interval's own spread is 1/12 of its square.
    spread = float(masses @ (centred * centred + widths * widths / 12))
    return float(np.average(means, weights=masses)), float(masses @ (centred * means + widths * rises / 12)) / spread
