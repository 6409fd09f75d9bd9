"""The paper's registered tests on the simulator, ours beside the printed.

Simulated over literal seeds: never evidence, and no result about a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from cli.workflows.rehearse import FIRST_SEED, Rehearsal, rehearse, rehearsed_calibration
from cli.workflows.reporter import Reporter
from cli.workflows.reproduce_values import values_of
from registry.draft import Draft, load_draft
from registry.errors import StudyError
from registry.registration import Calibration
from verifier.agreement import Agreement, agree
from verifier.printed_outcomes import Outcome, printed_outcomes


@dataclass(frozen=True)
class Compared:
    """One printed outcome and what our runs say of it."""

    outcome: Outcome
    agreement: Agreement


@dataclass(frozen=True)
class Reproduction:
    """The outcomes by table, in the paper's order, and the rehearsals behind
    them by rule file.
    """

    seeds: tuple[int, ...]
    tables: dict[str, tuple[Compared, ...]]
    rehearsals: dict[str, Rehearsal]


def reproduce(names: Sequence[str], seeds: int, reporter: Reporter) -> Reproduction:
    """Rehearse the rule files behind the named tables (default: all of them)
    over `seeds` literal seeds, and compare every printed outcome.

    StudyError for a name that the paper has not.
    """
    tables = chosen_tables(names)
    needed = list(dict.fromkeys(test for name, rows in tables.items() for test in _rule_files(name, rows)))
    calibrations: dict[tuple[str, str], Calibration] = {}
    rehearsals = {}
    for test in needed:
        draft = shipped_draft(test)
        rehearsals[test] = rehearse(draft, _calibration(draft, calibrations, reporter), reporter, seeds)
    compared = {
        table: tuple(Compared(row, agree(row.printed, values_of(row, rehearsals))) for row in rows)
        for table, rows in tables.items()
    }
    return Reproduction(tuple(range(FIRST_SEED, FIRST_SEED + seeds)), compared, rehearsals)


def chosen_tables(names: Sequence[str]) -> dict[str, tuple[Outcome, ...]]:
    """The printed outcomes of the named tables, and of those that need no
    other rule files than theirs; all of them where nothing is named. A test of
    which nothing is printed has an empty table.
    """
    paper = printed_outcomes()
    known = dict.fromkeys([*(row.test for row in paper.outcomes), *paper.unprinted])
    if unknown := [name for name in names if name not in known]:
        raise StudyError("the paper has no such test, or none that is here", value=unknown[0], remedy=", ".join(known))
    tables = {name: tuple(row for row in paper.outcomes if row.test == name) for name in known}
    chosen = set(names) or set(known)
    covered = {test for name in chosen for test in _rule_files(name, tables[name])}
    return {name: rows for name, rows in tables.items() if name in chosen or set(_rule_files(name, rows)) <= covered}


def _rule_files(name: str, rows: Sequence[Outcome]) -> list[str]:
    return list(dict.fromkeys(test for row in rows for test in row.tests)) or [name]


@lru_cache(maxsize=64)
def shipped_draft(test: str) -> Draft:
    """The rule file of this id that ships with the product."""
    file = resources.files("rules") / f"{test}.yaml"
    return load_draft(file.read_bytes(), f"rules/{test}.yaml")


def _calibration(draft: Draft, known: dict[tuple[str, str], Calibration], reporter: Reporter) -> Calibration | None:
    if draft.calibration is None:
        return None
    key = (draft.calibration, draft.cell.name)
    if key not in known:
        name = f"{draft.calibration}.yaml"
        text = (resources.files("rules") / name).read_bytes()
        known[key] = rehearsed_calibration(text, f"rules/{name}", draft, reporter)
    return known[key]
