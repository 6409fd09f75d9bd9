"""The moments of a registration with the margins between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from registry.timestamps import moment
from verifier.moments import Moment
from verifier.report import to_json


def timeline_of(moments: Sequence[Moment]) -> list[dict[str, Any]]:
    """Each moment with `margin_s`, the seconds since the one before it (negative
    where it came too early), and `one_clock`: whether both are by one clock.
    """
    found: list[dict[str, Any]] = []
    for place, one in enumerate(moments):
        before = moments[place - 1] if place else None
        margin_s = (moment(one.time) - moment(before.time)).total_seconds() if before else None
        same = before is not None and before.clock == one.clock
        found.append({**to_json(one), "margin_s": margin_s, "one_clock": same})
    return found
