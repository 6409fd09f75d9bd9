"""evidence/index.html: the ledger for people, one file that asks for nothing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from ledger.log_section import log_words
from ledger.page.entry_view import entry_view
from ledger.page.figure import Figure
from ledger.page.first_screen import design_words, tiles
from ledger.page.html import page
from ledger.page.svg import themed
from ledger.page.words import several, shown
from registry.rule_words import REFERENCE_NOTE

MAX_DATA_BYTES = 1_500_000
"""Of all figures' data together; what is beyond it lies beside the page."""

_PLAIN_IN_ADDRESSES = " ,.;:/()+-_|"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9.-]+")


@dataclass(frozen=True)
class Drawn:
    """A figure as the template shows it; `address` holds its data, so that they
    can be kept without a request and without a script, or names the file that does.
    """

    name: str
    title: str
    text: str
    picture: Markup
    address: str
    rows: int


def ledger_page(document: dict[str, Any], figures: Sequence[Figure] = (), sha256: str | None = None) -> str:
    """The whole page; the same document and figures give the same bytes.

    `sha256` is that of the ledger's file: the page names it, and says how to
    check the log that the document then holds.
    """
    plain = shown({name: value for name, value in document.items() if name != "log"})
    entries = [entry_view(entry) for entry in plain["registrations"]]
    return page(
        "ledger.html",
        {
            "study": plain["study"],
            "last_line": plain["last_line"],
            "good": not plain["failure_count"] and not plain["attempts_log_problems"],
            "policy_sha256": plain["policy_sha256"],
            "ledger_sha256": sha256,
            "log": log_words(document["log"]) if "log" in document else None,
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


def data_files(figures: Sequence[Figure]) -> dict[str, str]:
    """The files that lie beside the page, path to text: the data that are too
    much for it.
    """
    parts = zip(figures, _addresses(figures), strict=True)
    return {address: figure.csv for figure, address in parts if not address.startswith("data:")}


def _addresses(figures: Sequence[Figure]) -> list[str]:
    """Where each figure's data are: in the page until it is full, else beside it."""
    inside = ["data:text/csv;charset=utf-8," + quote(figure.csv, safe=_PLAIN_IN_ADDRESSES) for figure in figures]
    sums = itertools.accumulate(map(len, inside))
    files = [f"figures/{name}" for name in _file_names(figures)]
    return [own if total <= MAX_DATA_BYTES else file for own, total, file in zip(inside, sums, files, strict=True)]


def _file_names(figures: Sequence[Figure]) -> list[str]:
    stems = [_NOT_IN_NAMES.sub("-", figure.name).strip(".-") or "figure" for figure in figures]
    return [f"{stem}.csv" if stems.count(stem) == 1 else f"{stem}.{place}.csv" for place, stem in enumerate(stems, 1)]


def _by_registration(figures: Sequence[Figure]) -> dict[str | None, list[Drawn]]:
    found: dict[str | None, list[Drawn]] = {}
    parts = zip(figures, _addresses(figures), _file_names(figures), strict=True)
    for place, (figure, address, name) in enumerate(parts, 1):
        drawn = Drawn(
            name=name,
            title=shown(figure.title),
            text=shown(figure.text),
            picture=themed(figure, place),
            address=address,
            rows=max(figure.csv.count("\n") - 1, 0),
        )
        found.setdefault(figure.registration, []).append(drawn)
    return found
