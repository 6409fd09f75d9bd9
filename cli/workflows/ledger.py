"""Writes the ledger of a verified study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.workflows.ledger_earlier import LEDGER_FILE, earlier_ledger
from cli.workflows.verify import verify
from ledger.document import ledger_document
from ledger.markdown import ledger_markdown
from ledger.page.figure import Figure
from ledger.page.ledger_page import data_files, ledger_page
from ledger.reading import Ledger, ledger_bytes, read_ledger
from ledger.writing import Author, next_ledger
from registry.canonical import digest, sha256_hex
from registry.ssh_signature import ledger_key_path, load_key
from registry.witness.policy import Policy
from registry.witness.policy_file import built_in
from verifier.report import StudyReport, to_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PAGE_FILE = "index.html"
Draw = Callable[[StudyReport], Sequence[Figure]]
"""Draws the figures of a verified study, whose runs have their series."""


@dataclass(frozen=True)
class Written:
    """The files written, evidence/ledger.json first, evidence/LEDGER.md second
    and the page third; what the ledger is now, and the verification behind it.
    """

    paths: list[Path]
    ledger: Ledger
    report: StudyReport


def write_ledger(
    start: Path, runs: Path | None = None, policy: Policy | None = None, draw: Draw | None = None
) -> Written:
    """Verify the whole study and write its ledger, and the page with what `draw`
    draws: evidence/ledger.json, LEDGER.md, index.html, and data of figures that
    are too much for the page.

    It rests on the study alone and on what is built in, so that every clone
    gives the same bytes: no live log, no answer of today, and nobody's policy
    unless one is given. Findings that are logged already are carried over.
    """
    report, evidence = verify(start, runs=runs, policy=policy or built_in(), live=False, with_series=draw is not None)
    author = Author(evidence.settings.name, evidence.settings.signing_key, key_at_hand())
    policy_sha256 = policy_digest(policy) if policy else None
    value = next_ledger(
        lambda signer: ledger_document(report, policy_sha256, signer), earlier_ledger(evidence.root), author
    )
    paths, ledger = write_files(evidence.root, value)
    figures = draw(report) if draw else ()
    page = ledger_page(value, figures, sha256_hex(ledger_bytes(value)))
    paths += _write(evidence.root, {PAGE_FILE: page, **data_files(figures)})
    return Written(paths, ledger, report)


def write_files(root: Path, value: dict[str, Any]) -> tuple[list[Path], Ledger]:
    """Write a ledger's own files, having read it back as a stranger would."""
    data = ledger_bytes(value)
    ledger = read_ledger(data, LEDGER_FILE)
    return _write(root, {"ledger.json": data.decode(), "LEDGER.md": ledger_markdown(value)}), ledger


def _write(root: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write files of evidence/, each whole or not at all."""
    paths = []
    for name, text in texts.items():
        path = (root / LEDGER_FILE).parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
        paths.append(path)
    return paths


def key_at_hand() -> Ed25519PrivateKey | None:
    """The private key that may sign the ledger; None where there is none."""
    path = ledger_key_path()
    return load_key(path) if path.exists() else None


def policy_digest(policy: Policy) -> str:
    """SHA-256 of what is trusted, wherever its file lies."""
    return digest({name: value for name, value in to_json(policy).items() if name != "sources"})
