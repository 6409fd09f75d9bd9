"""What the arms of a design do to the engine, and when."""

from __future__ import annotations

from registry.design import Design


def marks_of(design: Design) -> dict[str, list[tuple[float, float]]]:
    """What was done to the engine and when: words to spans of seconds."""
    marks: dict[str, dict[tuple[float, float], None]] = {}
    for arm in design.arms:
        spans = {
            "burst": arm.burst and (arm.burst.start_s, arm.burst.spread_s),
            "new sessions refused": arm.shed and (arm.shed.start_s, arm.shed.duration_s),
            "tool calls longer": arm.tool_slowdown and (arm.tool_slowdown.start_s, arm.tool_slowdown.duration_s),
            "arrivals cut": arm.cut and (arm.cut.at_s, design.horizon_s - arm.cut.at_s),
        }
        for words, span in spans.items():
            if span:
                marks.setdefault(words, {})[span[0], span[0] + span[1]] = None
    return {words: list(found) for words, found in marks.items()}
