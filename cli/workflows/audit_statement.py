"""An auditor's verification, written down as a statement of the auditor's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cli.workflows.ledger import policy_digest
from cli.workflows.online import ask_witnesses
from cli.workflows.verify import verify
from ledger.audit_statement import Answered, Occasion, audit_bytes, audit_predicate, audit_statement
from ledger.envelope import sealed
from registry.canonical import sha256_hex
from registry.ssh_signature import default_key_path, load_key, public_text
from registry.study_settings import StudySettings
from registry.timestamps import now
from registry.witness.policy import Policy
from verifier.online import Online, ServedLog
from verifier.report import StudyReport


def verify_and_state(
    start: Path,
    only: str | None,
    runs: Path | None,
    *,
    policy: Policy,
    online: bool,
    hours: Path | None,
    file: Path,
) -> tuple[StudyReport, str | None]:
    """Verify as `verify` does and write what was asked and found to `file`.

    Signed with the key at TRAP_SIGNING_KEY where there is one. Returns the
    report, and the public key that signed.
    """
    heard: list[tuple[StudySettings, Online]] = []

    def ask(settings: StudySettings, trusted: Policy) -> Online:
        heard.append((settings, ask_witnesses(settings, trusted)))
        return heard[-1][1]

    report, evidence = verify(start, only, runs, policy=policy, ask=ask if online else None, hours=hours)
    key = load_key(default_key_path()) if default_key_path().exists() else None
    signer = public_text(key) if key else None
    asked = [answer for settings, each in heard for answer in _answers(settings, each)]
    asked += _hours(hours) if hours else []
    silent = [text for _, each in heard for text in (each.github, each.server) if isinstance(text, str)]
    occasion = Occasion(now(), signer, policy_digest(policy), online, tuple(asked), tuple(dict.fromkeys(silent)))
    statement = audit_statement(audit_predicate(report, evidence.settings.signing_key, occasion))
    file.write_bytes(audit_bytes(sealed(statement, key) if key else sealed(statement)))
    return report, signer


def _answers(settings: StudySettings, online: Online) -> Iterator[Answered]:
    """What was heard of GitHub and of the witness server."""
    if settings.github:
        for answer in online.answers:
            yield Answered(f"{settings.github.api}{answer.path}", answer.status, sha256_hex(answer.body.encode()))
    if settings.server and isinstance(online.server, ServedLog):
        base = f"{settings.server.url.rstrip('/')}/witness/{settings.server.repository}"
        yield Answered(f"{base}, the push log", None, sha256_hex(online.server.log))
        yield Answered(f"{base}, the checkpoint", None, sha256_hex(online.server.checkpoint))


def _hours(folder: Path) -> Iterator[Answered]:
    """The hours of GH Archive that lie in the folder."""
    for path in sorted(folder.glob("*.json.gz")):
        yield Answered(f"GH Archive {path.name}", None, sha256_hex(path.read_bytes()))
