"""A reproduction as text or JSON: the paper's outcome, ours, test by test."""

from __future__ import annotations

from typing import Any

from cli.render.table import number, table
from cli.workflows.reproduce import Compared, Reproduction
from verifier.agreement import Agreement
from verifier.printed_outcomes import Outcome, Printed, printed_outcomes
from verifier.report import dumps, to_json

ENOUGH_SEEDS = 20
STATEMENT = "SIMULATED, literal seeds, exploratory: never evidence, and no result about a GPU"
_ANSWERS = {True: "yes", False: "NO", None: "-"}
_HEAD = ["arm", "rate", "outcome", "paper", "ours", "central 95%", "extremes", "inside", "as drawn"]


def reproduction_text(result: Reproduction) -> str:
    """Every table for people; the last lines count the answers."""
    lines = [f"{STATEMENT}", f"seeds {result.seeds[0]} to {result.seeds[-1]}, beside what the paper prints"]
    if len(result.seeds) < ENOUGH_SEEDS:
        lines.append(f"fewer than {ENOUGH_SEEDS} seeds: their central 95% says little")
    for name, rows in result.tables.items():
        lines.append(f"\n{name} (simulated): {_title(result, name, rows)}")
        lines.append(table([_HEAD, *map(_cells, rows)]) if rows else "  the paper prints no number of it")
    inside, drawn, decided = totals(result)
    lines += [
        f"\n{inside} of {decided} printed outcomes lie inside the central 95% of our simulated runs;",
        f"{drawn} of {decided} could be draws from them (see docs/reproduce.md).",
    ]
    return "\n".join(lines)


def totals(result: Reproduction) -> tuple[int, int, int]:
    """How many outcomes are inside, could be draws, and were comparable."""
    answers = [row.agreement for rows in result.tables.values() for row in rows if row.agreement.inside is not None]
    return sum(a.inside is True for a in answers), sum(a.as_drawn is True for a in answers), len(answers)


def reproduction_json(result: Reproduction) -> str:
    """The same as JSON, `trap-reproduction-1`."""
    inside, drawn, decided = totals(result)
    value: dict[str, Any] = {
        "schema": "trap-reproduction-1",
        "statement": STATEMENT,
        "paper": printed_outcomes().source,
        "seeds": list(result.seeds),
        "inside": inside,
        "as_drawn": drawn,
        "compared": decided,
        "tables": [
            {"test": name, "title": _title(result, name, rows), "outcomes": [_entry(row) for row in rows]}
            for name, rows in result.tables.items()
        ],
    }
    return dumps(to_json(value))


def _title(result: Reproduction, name: str, rows: tuple[Compared, ...]) -> str:
    tests = list(dict.fromkeys(test for row in rows for test in row.outcome.tests))
    if tests in ([name], []):
        draft = result.rehearsals[name].registration.draft
        return f"{draft.title} (cell {draft.cell.name})"
    return f"runs of {', '.join(tests)} taken together"


def _entry(row: Compared) -> dict[str, Any]:
    outcome = row.outcome
    return {
        "tests": list(outcome.tests),
        "arms": list(outcome.arms),
        "rates": list(outcome.rates),
        "outcome": outcome.what,
        "window": outcome.window,
        "printed": to_json(outcome.printed),
        "where": outcome.where,
        "note": outcome.note,
        "ours": to_json(row.agreement),
    }


def _cells(row: Compared) -> list[str]:
    outcome, ours = row.outcome, row.agreement
    return [
        "+".join(outcome.arms) if len(outcome.arms) < 3 else "all",
        ", ".join(f"{rate:g}" for rate in outcome.rates) or "all",
        outcome.what,
        _printed(outcome.printed, outcome),
        *_ours(outcome, ours),
        _ANSWERS[ours.inside],
        _ANSWERS[ours.as_drawn],
    ]


def _printed(printed: Printed, outcome: Outcome) -> str:
    def digits(value: float) -> str:
        return f"{value:,.{max(printed.decimals, 0)}f}"

    if outcome.rate_rule:
        return "PASS" if printed.low else "not met"
    if printed.kind == "count":
        return f"{printed.low:g} of {printed.of}"
    if printed.kind == "range":
        return f"{digits(printed.low)} to {digits(printed.high)}"
    return digits(printed.low) if printed.kind == "value" else f"{printed.kind} {digits(printed.low)}"


def _ours(outcome: Outcome, ours: Agreement) -> list[str]:
    if not ours.runs:
        return ["no run", "", ""]
    if ours.share is not None and outcome.rate_rule:
        return [f"{ours.share:.1%}", "", ""]
    if ours.share is not None:
        yes = round(ours.share * ours.runs)
        return [f"{yes} of {ours.runs}", f"{ours.low:g} to {ours.high:g} of {outcome.printed.of}", ""]
    middle = ours.most if outcome.printed.kind == "highest" else ours.mean
    middle = middle if outcome.printed.kind in ("mean", "highest") else ours.median
    word = f"{outcome.printed.kind} " if outcome.printed.kind in ("mean", "highest") else ""
    spans = [f"{number(low)} to {number(high)}" for low, high in ((ours.low, ours.high), (ours.least, ours.most))]
    return [f"{word}{number(middle)}", *spans]
