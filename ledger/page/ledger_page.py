"""evidence/index.html: the ledger for people, one file that asks for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from ledger.page.entry_view import entry_view
from ledger.page.figure import Figure
from ledger.page.first_screen import design_words, tiles
from ledger.page.html import page
from ledger.page.svg import themed
from ledger.page.words import several, shown
from registry.rule_words import REFERENCE_NOTE

_PLAIN_IN_ADDRESSES = " ,.;:/()+-_|"


@dataclass(frozen=True)
class Drawn:
    """A figure as the template shows it; `address` holds its data, so that they
    can be kept without a request and without a script.
    """

    name: str
    title: str
    text: str
    picture: Markup
    address: str
    rows: int


def ledger_page(document: dict[str, Any], figures: Sequence[Figure] = ()) -> str:
    """The whole page; the same document and figures give the same bytes."""
    plain = shown(document)
    entries = [entry_view(entry) for entry in plain["registrations"]]
    return page(
        "ledger.html",
        {
            "study": plain["study"],
            "last_line": plain["last_line"],
            "good": not plain["failure_count"] and not plain["attempts_log_problems"],
            "policy_sha256": plain["policy_sha256"],
            "simulated": any(entry["simulated"] for entry in entries),
            "tiles": tiles(plain),
            "entries": entries,
            "designs": [design_words(design) for design in plain["designs"]],
            "statuses": sorted({entry["status"]["name"] for entry in entries}),
            "verdicts": sorted({entry["verdict_word"] for entry in entries} - {""}),
            "proof_outcomes": sorted({entry["proof_word"] for entry in entries}),
            "figures": _by_registration(figures),
            "attempts_log_problems": plain["attempts_log_problems"],
            "exploratory_runs": plain["exploratory_runs"],
            "unseen_pushes": plain["unseen_pushes"],
            "attack_model": plain["attack_model"],
            "no_one_can_prove": plain["no_one_can_prove"],
            "reference_note": REFERENCE_NOTE,
            "several": several,
        },
        styles=("ledger.css",),
        scripts=("ledger.js",),
    )


def _by_registration(figures: Sequence[Figure]) -> dict[str | None, list[Drawn]]:
    found: dict[str | None, list[Drawn]] = {}
    for place, figure in enumerate(figures, 1):
        drawn = Drawn(
            name=shown(figure.name),
            title=shown(figure.title),
            text=shown(figure.text),
            picture=themed(figure, place),
            address="data:text/csv;charset=utf-8," + quote(figure.csv, safe=_PLAIN_IN_ADDRESSES),
            rows=max(figure.csv.count("\n") - 1, 0),
        )
        found.setdefault(figure.registration, []).append(drawn)
    return found
