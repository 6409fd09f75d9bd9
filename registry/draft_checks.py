"""What a schema cannot say of a rule file: spans, references, combinations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelf.cells import Cell
from registry.design import Design
from registry.errors import DraftError, TrapError
from registry.policy_checks import policy_problems
from registry.predictor_checks import predictor_problems
from registry.reading_catalogue import READING_KINDS
from registry.strict_yaml import Document, Path
from registry.window_checks import window_problems

MAX_RUNS = 100_000
_PART_STARTS = {"burst": "start_s", "gate": "engage_s", "shed": "start_s", "cut": "at_s", "tool_slowdown": "start_s"}


def problems_of(document: Document, design: Design, cells: Mapping[str, Cell]) -> list[TrapError]:
    """Every finding about a document that satisfies the schema."""
    return [
        *cell_problems(document, cells),
        *_pool_problems(document, design, cells),
        *_design_problems(document, design),
        *window_problems(document, design),
        *_reference_problems(document, design),
        *policy_problems(document, design, cells),
        *predictor_problems(document, design),
    ]


def cell_problems(document: Document, cells: Mapping[str, Cell]) -> list[TrapError]:
    """Whether the cell is known."""
    name = document.value["cell"]
    if name in cells:
        return []
    remedy = f"one of: {', '.join(cells)}; a cell of the study's own is a file, cells/{name}.yaml"
    return [DraftError("unknown cell", where=document.where(("cell",)), value=name, remedy=remedy)]


def _pool_problems(document: Document, design: Design, cells: Mapping[str, Cell]) -> list[TrapError]:
    cell = cells.get(document.value["cell"])
    return [
        DraftError(
            "an arm's pool is larger than its cell's",
            where=document.where(("design", "arms", arm.name, "pool_tokens")),
            value=arm.pool_tokens,
            remedy=f"at most {cell.pool_tokens}, or leave it out",
        )
        for arm in design.arms
        if cell and (arm.pool_tokens or 0) > cell.pool_tokens
    ]


def _design_problems(document: Document, design: Design) -> list[TrapError]:
    problems: list[TrapError] = []

    def problem(what: str, path: Path, value: object, remedy: str) -> None:
        problems.append(DraftError(what, where=document.where(path), value=value, remedy=remedy))

    rates = max(len(design.rates), 1)
    if (runs := len(design.arms) * rates * len(design.seeds.values)) > MAX_RUNS:
        problem("too many runs", ("design",), runs, f"at most {MAX_RUNS}: arms x rates x seeds")
    for arm in design.arms:
        place: Path = ("design", "arms", arm.name)
        if arm.population is None and not design.rates:
            problem("an arm with open arrivals needs rates", place, arm.name, "give design.rates")
        if design.horizon_of(arm) > design.horizon_s:
            limit = f"at most the design's horizon_s = {design.horizon_s:g}"
            problem("an arm's runs outlast the design", (*place, "horizon_s"), arm.horizon_s, limit)
        for field, begins in _PART_STARTS.items():
            part = getattr(arm, field)
            if part is None:
                continue
            if arm.population is not None:
                problem(f"a closed population takes no {field}", (*place, field), arm.name, "leave it out")
            elif getattr(part, begins) >= design.horizon_of(arm):
                problem(
                    f"the {field.replace('_', ' ')} starts after the run",
                    (*place, field, begins),
                    getattr(part, begins),
                    f"less than horizon_s = {design.horizon_of(arm):g}",
                )
    if design.rates and "calibration" not in document.value:
        problem(
            "rates are multiples of a measured lambda_ref, and no calibration is named",
            (),
            None,
            "add calibration: all-miss-<cell>",
        )
    plan_from = document.value.get("plan_from")
    if (plan_from is None) == (design.seeds.binding == "plan_from"):
        problem(
            "seeds bound to plan_from, and plan_from, need each other",
            ("design", "seeds", "binding"),
            design.seeds.binding,
            "name the registration whose plans are taken, and write binding: plan_from",
        )
    if plan_from == document.value["id"]:
        problem(
            "a registration cannot take its own plans",
            ("plan_from",),
            plan_from,
            "name the registration that drew them",
        )
    if document.value.get("calibration") == document.value["id"]:
        problem(
            "a registration cannot calibrate itself",
            ("calibration",),
            document.value["id"],
            "name the all-miss registration of the cell",
        )
    return problems


def _reference_problems(document: Document, design: Design) -> list[TrapError]:
    arms = [arm.name for arm in design.arms]
    windows = [window.name for window in design.windows]
    allowed: dict[str, list[Any]] = {
        "arm": arms,
        "window": windows,
        "reading": list(READING_KINDS),
        "rate": list(design.rates),
    }
    places: list[Path] = [("predictors", i) for i in range(len(document.value["predictors"]))]
    places += [("measures", name) for name in document.value.get("measures", {})]
    problems: list[TrapError] = []
    for place in places:
        entry = document.value[place[0]][place[1]]
        for key, names in allowed.items():
            if key in entry and entry[key] not in names:
                problems.append(
                    DraftError(
                        f"unknown {key}",
                        where=document.where((*place, key)),
                        value=entry[key],
                        remedy=f"one of: {', '.join(map(str, names))}",
                    )
                )
    for section in ("runs", "reported"):
        for arm in document.value["rule"].get(section, {}):
            if arm not in arms:
                problems.append(
                    DraftError(
                        "the rule judges an arm that the design lacks",
                        where=document.where(("rule", section, arm)),
                        value=arm,
                        remedy=f"one of: {', '.join(arms)}",
                    )
                )
    return problems
