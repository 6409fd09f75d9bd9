"""The playground's pages from their data; nothing is computed here but places on a page."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ledger.page.html import data_block, page
from registry.canonical import canonical_bytes

_FOLDER = "playground/"
_STYLES = (f"{_FOLDER}playground.css",)
_GROUPED = 10_000
"""Numbers from here on have their thousands set apart, as the scripts do."""

CONTENTS = (
    ("index.html", "Playground", "Inside the trap: a playground", "What each page answers, and the words they use."),
    ("loop.html", "Loop", "The trap as a loop, and its exits",
     "Why does a trapped engine stay trapped, and what frees it? Choose an engine and a load."),
    ("timescales.html", "Time scales", "Two time scales: good state against trap",
     "How soon does a session come back, and how soon is its context overwritten?"),
    ("renewal.html", "Renewal cycle", "Model F as a renewal cycle",
     "Why does the trap grow at one certain rate, and which turns does it serve?"),
    ("calculator.html", "Calculator", "Model F calculator",
     "Where does a trapped engine go at this load: completions, backlog, gap, prompts, turn mix?"),
    ("replay.html", "Replay", "Two engines, side by side",
     "What does a trap look like from minute to minute, and how does a session cap end it?"),
)  # fmt: skip

CALCULATOR_ROWS = (
    ("rho", "arrivals over the all-miss capacity"),
    ("completions_over_lambda_miss", "completions over the all-miss capacity: the premium, if above 1"),
    ("turn_count_factor", "its factor from turn counts"),
    ("cost_growth_factor", "its factor from growing costs"),
    ("completions_over_lambda_ref", "completions, in multiples of the reference rate"),
    ("mean_prompt_tokens", "mean prompt of the turns served, tokens"),
    ("gap_slope", "growth of the gap between a session's turns, s a second"),
    ("growth", "growth factor of the cycles"),
    ("backlog_over_lambda_ref", "growth of the backlog, in multiples of the reference rate"),
    ("backlog_slope_over_excess", "the same over arrivals less capacity"),
    ("quasi_static_ratio", "what the quasi-static reading says over this"),
    ("arrivals_per_h", "arrivals, sessions an hour"),
    ("completions_per_h", "completions, sessions an hour"),
    ("backlog_per_h", "growth of the backlog, sessions an hour"),
)
"""Names are those of `trapkit theory`, and three rates an hour."""


def playground_pages(data: Mapping[str, Any]) -> dict[str, str]:
    """HTML by file name, from what `cli.workflows.playground` computed, by page."""
    calculator = data["calculator"]
    groups = _start_of(calculator)
    values: dict[str, Mapping[str, Any]] = {
        "loop": {"verdict": partial(_verdict, data["loop"])},
        "timescales": {},
        "renewal": {},
        "calculator": {"rows": CALCULATOR_ROWS, "top": 2.5, "groups": _turn_groups(calculator, groups)},
    }
    found = {"index.html": _index(calculator)}
    for name, more in values.items():
        found[f"{name}.html"] = _slider_page(name, data[name], more)
    return found | {"replay.html": _replay(data["replay"])}


def shown(value: float | int | str | None) -> str:
    """A number as the scripts show it."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    return f"{value:,}" if abs(value) >= _GROUPED else canonical_bytes(value).decode()


def _slider_page(name: str, data: Mapping[str, Any], more: Mapping[str, Any]) -> str:
    entry = _start_of(data)
    values = _frame(f"{name}.html") | {
        "about": data,
        "entry": entry,
        "start": lambda column: _start_value(data, column),
        "words": f"Shown: {data['start']['cell']}, standard workload, load {data['loads'][data['start']['index']]}.",
        "block": data_block("data", data),
        **more,
    }
    scripts = [f"{_FOLDER}common.js", f"{_FOLDER}{name}.js"]
    return page(f"{_FOLDER}{name}.html", values, styles=_STYLES, scripts=scripts)


def _frame(file: str) -> dict[str, Any]:
    title, lead = next((title, lead) for name, _, title, lead in CONTENTS if name == file)
    contents = [(name, short) for name, short, _, _ in CONTENTS]
    return {"here": file, "title": title, "lead": lead, "contents": contents, "shown": shown}


def _start_of(data: Mapping[str, Any]) -> Mapping[str, Any]:
    start = data["start"]
    found: Mapping[str, Any] = data["cells"][start["cell"]]["workloads"][start["workload"]]
    return found


def _start_value(data: Mapping[str, Any], name: str) -> str:
    """A column's value at the entry that is shown first, or what does not depend on the load."""
    entry = _start_of(data)
    if name in entry["columns"]:
        return shown(entry["columns"][name][data["start"]["index"]])
    return shown(entry["engine"][name]) if name in entry.get("engine", {}) else "not known"


def _verdict(data: Mapping[str, Any], name: str) -> tuple[str, str]:
    """Class and word of an exit at the entry that is shown first."""
    column = _start_of(data)["columns"].get(name)
    works = column[data["start"]["index"]] if column else None
    if works is None:
        return "unknown", "not known"
    return ("yes", "works") if works else ("no", "does not")


def _turn_groups(data: Mapping[str, Any], entry: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    trapped = entry["groups"][data["start"]["index"]] or ["none"] * len(data["group_names"])
    normal = data["normal"][data["start"]["workload"]]["groups"]
    return list(zip(data["group_names"], trapped, normal, strict=True))


def _index(calculator: Mapping[str, Any]) -> str:
    questions = [(file, short, lead) for file, short, _, lead in CONTENTS[1:]]
    cells = [
        (name, cell["words"], cell["workloads"]["standard"]["scale"]) for name, cell in calculator["cells"].items()
    ]
    values = _frame("index.html") | {"questions": questions, "cells": cells, "block": ""}
    return page(f"{_FOLDER}index.html", values, styles=_STYLES)


def _replay(data: Mapping[str, Any]) -> str:
    first = data["scenarios"][0]
    ends = {
        arm: {name: shown(first[arm][name][-1]) for name in ("hits", "engine", "tools", "gate")}
        for arm in ("alone", "rescued")
    }
    released = first["rescued"]["release_s"]
    states = {
        "alone": "No cap.",
        "rescued": "Cap engaged." if released is None else f"The cap came off at {shown(released)} s.",
    }
    values = _frame("replay.html") | {
        "about": data,
        "bins": len(first["alone"]["hits"]),
        "ends": ends,
        "states": states,
        "words": f"Simulated: the end of the run. {first['words']}.",
        "block": data_block("data", data),
    }
    return page(f"{_FOLDER}replay.html", values, styles=_STYLES, scripts=[f"{_FOLDER}replay.js"])
