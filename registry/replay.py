"""Replayed arrivals: a trace's own order and spacing, its clock stretched to a mean rate.

With a_i the scripts' `arrival_us`, ascending (ties keep the scripts' order), session i
arrives at (a_i - a_0) (n - 1) / ((a_{n-1} - a_0) lambda), to the nearest microsecond,
half a microsecond up: exact, by integers. Nothing arrives after the last script.
"""

from __future__ import annotations

import math

from registry.design import Cut
from registry.errors import RegistrationError
from registry.session_scripts import SessionScripts

MICROSECONDS = 1_000_000


def replayed_arrivals_us(scripts: SessionScripts, lambda_per_s: float, horizon_us: int) -> tuple[int, ...]:
    """The arrivals before the horizon, ascending; session i follows script
    `scripts.arrival_order[i]`.

    RegistrationError for a rate that is not positive, or scripts that all arrive at once.
    """
    if not 0 < lambda_per_s < math.inf:
        raise RegistrationError("an arrival rate must be positive", value=lambda_per_s)
    if not scripts.arrival_span_us:
        raise RegistrationError("the session scripts have no arrival times", value=scripts.sha256)
    per_s, parts = float(lambda_per_s).as_integer_ratio()
    times = scripts.arrival_us[scripts.arrival_order].tolist()
    above, below = (len(times) - 1) * MICROSECONDS * parts, scripts.arrival_span_us * per_s
    found = []
    for time in times:
        arrival_us = (2 * (time - times[0]) * above + below) // (2 * below)
        if arrival_us >= horizon_us:
            break
        found.append(arrival_us)
    return tuple(found)


def own_rate_per_s(scripts: SessionScripts) -> float:
    """The scripts' mean arrival rate by their own clock, sessions per second:
    the rate that replays them at their own speed.
    """
    return (len(scripts.turns) - 1) * MICROSECONDS / scripts.arrival_span_us


def replay_end_s(scripts: SessionScripts, lambda_per_s: float, rate: float, cut: Cut | None) -> float:
    """When the last session arrives, seconds, were there no horizon; `rate` is
    lambda as a multiple of lambda_ref.
    """
    end_s = (len(scripts.turns) - 1) / lambda_per_s
    if cut is None or end_s <= cut.at_s:
        return end_s
    return cut.at_s + (end_s - cut.at_s) * rate / cut.to_rate
