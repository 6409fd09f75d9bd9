"""What a schema cannot say of windows: how they start, and that they lie inside
the run.
"""

from __future__ import annotations

from typing import Any

from registry.design import Design, ReleaseWindow
from registry.errors import DraftError, TrapError
from registry.strict_yaml import Document

Users = list[tuple[tuple[str | int, ...], dict[str, Any]]]
"""Places in a document, each with the entry there that names a window."""


def start_problems(document: Document) -> list[TrapError]:
    """A window starts at a second or at a release: at one of the two. Checked
    before a design is built.
    """
    return [
        DraftError(
            "a window starts at start_s or at a release, not at both"
            if "start_s" in window
            else "the window does not say where it starts",
            where=document.where(("design", "windows", name)),
            value=window,
            remedy="give start_s, or from_release_of: the arm whose release opens it",
        )
        for name, window in document.value["design"]["windows"].items()
        if ("start_s" in window) == ("from_release_of" in window)
    ]


def window_problems(document: Document, design: Design) -> list[TrapError]:
    """Every finding about the windows of a design."""
    problems: list[TrapError] = []
    for window in design.windows:
        for field, what, value, remedy in _findings(design, window):
            where = document.where(("design", "windows", window.name, *([field] if field else [])))
            problems.append(DraftError(what, where=where, value=value, remedy=remedy))
    return problems + _use_problems(document, design)


def _findings(design: Design, window: Any) -> list[tuple[str, str, object, str]]:
    """(field, what, value, remedy) of everything wrong with one window."""
    if not isinstance(window, ReleaseWindow):
        if window.start_s < window.end_s <= design.horizon_s:
            return []
        remedy = f"0 <= start_s < end_s <= horizon_s = {design.horizon_s:g}"
        return [("", "the window does not lie inside the run", [window.start_s, window.end_s], remedy)]
    arms = {arm.name: arm for arm in design.arms}
    if window.from_release_of not in arms:
        return [("from_release_of", "unknown arm", window.from_release_of, f"one of: {', '.join(arms)}")]
    gate = arms[window.from_release_of].gate
    if gate is None or gate.release_after_s is None:
        remedy = "name an arm whose gate has a release_after_s that is not null"
        return [("from_release_of", "nothing is ever released in this arm", window.from_release_of, remedy)]
    if not gate.engage_s < window.end_s <= design.horizon_s:
        remedy = f"engage_s = {gate.engage_s:g} < end_s <= horizon_s = {design.horizon_s:g}"
        return [("end_s", "the window does not lie inside the run", window.end_s, remedy)]
    return []


def _use_problems(document: Document, design: Design) -> list[TrapError]:
    """Measures and computed predictors speak of windows known beforehand."""
    opened = {window.name for window in design.windows if isinstance(window, ReleaseWindow)}
    measures = document.value.get("measures", {})
    users: Users = [(("measures", name, "window"), measure) for name, measure in measures.items()]
    users += [
        (("predictors", index, "window"), predictor)
        for index, predictor in enumerate(document.value["predictors"])
        if predictor["kind"] != "stated" and "window" in predictor
    ]
    return _outlasting(document, design, users) + [
        DraftError(
            "the window is known only when its run is over",
            where=document.where(place),
            value=user["window"],
            remedy="name a window that has a start_s",
        )
        for place, user in users
        if user["window"] in opened
    ]


def _outlasting(document: Document, design: Design, users: Users) -> list[TrapError]:
    """Measures and predictors whose window ends after their arm's runs."""
    arms = {arm.name: arm for arm in design.arms}
    windows = {window.name: window for window in design.windows}
    return [
        DraftError(
            "the window ends after the arm's runs",
            where=document.where(place),
            value=user["window"],
            remedy=f"a window that ends by {design.horizon_of(arms[user['arm']]):g} s",
        )
        for place, user in users
        if user["window"] in windows
        and user.get("arm") in arms
        and windows[user["window"]].end_s > design.horizon_of(arms[user["arm"]])
    ]
