"""Writes the ledger of a verified study."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from cli.workflows.verify import verify
from ledger.document import ledger_document
from ledger.markdown import ledger_markdown
from ledger.page.figure import Figure
from ledger.page.ledger_page import data_files, ledger_page
from registry.canonical import digest
from registry.witness.policy import Policy
from registry.witness.policy_file import built_in
from verifier.evidence import StudyEvidence
from verifier.report import StudyReport, dumps, to_json

Draw = Callable[[StudyReport, StudyEvidence], Sequence[Figure]]
"""Draws the figures of a verified study."""


def write_ledger(
    start: Path, runs: Path | None = None, policy: Policy | None = None, figures: Draw | Sequence[Figure] = ()
) -> tuple[list[Path], StudyReport]:
    """Verify the whole study and write evidence/ledger.json, LEDGER.md and
    index.html, the page with the `figures`, whose data lie in figures/ where
    they are too much for it.

    It rests on the study alone and on what is built in, so that every clone
    gives the same bytes: no live log, no answer of today, and nobody's policy
    unless one is given.
    Returns the files written and the verification behind them.
    """
    report, evidence = verify(start, runs=runs, policy=policy or built_in(), live=False)
    document = ledger_document(report, _policy_digest(policy) if policy else None)
    folder = evidence.root / "evidence"
    paths = []
    drawn = figures(report, evidence) if callable(figures) else figures
    texts = {
        "ledger.json": dumps(document) + "\n",
        "LEDGER.md": ledger_markdown(document),
        "index.html": ledger_page(document, drawn),
        **data_files(drawn),
    }
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
        paths.append(path)
    return paths, report


def _policy_digest(policy: Policy) -> str:
    """SHA-256 of what is trusted, wherever its file lies."""
    return digest({name: value for name, value in to_json(policy).items() if name != "sources"})
