"""Rotation and revocation of a ledger's key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cli.workflows.ledger import write_files
from cli.workflows.ledger_earlier import LEDGER_FILE, earlier_ledger
from ledger.reading import Ledger
from ledger.writing import revoked, rotated
from registry.errors import StudyError
from registry.ssh_signature import ensure_key, ledger_key_path, load_key
from registry.study import Study
from registry.witness.checkpoint import key_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def rotate(study: Study, key_file: Path) -> Ledger:
    """Put the key in `key_file` (made where there is none) in the place of the
    one that signs the ledger now; both sign that. Returns the new ledger.
    """
    ledger, old = _signed_ledger(study)
    new, _ = ensure_key(key_file)
    return write_files(study.root, rotated(ledger, old, new))[1]


def revoke(study: Study, public_key: str, from_size: int) -> Ledger:
    """Revoke a former key (`ssh-ed25519 AAAA...`): its signatures on entries from
    index `from_size` on count no more. Returns the new ledger.
    """
    ledger, key = _signed_ledger(study)
    return write_files(study.root, revoked(ledger, key, key_of(public_key), from_size))[1]


def _signed_ledger(study: Study) -> tuple[Ledger, Ed25519PrivateKey]:
    ledger = earlier_ledger(study.root)
    if ledger is None or ledger.signer is None:
        state = "there is no ledger" if ledger is None else "the ledger is unsigned"
        raise StudyError(state, where=LEDGER_FILE, remedy="first, with the study's key: trapkit ledger")
    return ledger, load_key(ledger_key_path())
