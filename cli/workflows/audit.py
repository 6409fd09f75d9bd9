"""Auditing claims about a repository that was made with other tools."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cli.workflows.online import ask_witnesses
from registry.claims import Claims, parse_claims
from registry.errors import StudyError
from registry.mirror import mirror_of
from registry.study_settings import StudySettings
from registry.witness.policy import Policy
from verifier.claim_checks import ClaimProof, prove_claim, read_claimed
from verifier.github_logs import archived_hours, asked_logs, compared
from verifier.online import Online
from verifier.push_logs import against


@dataclass(frozen=True)
class Audit:
    """A claims file, its proofs, and whose logs were read."""

    claims: Claims
    proofs: tuple[ClaimProof, ...]
    witness_source: str

    @property
    def failures(self) -> int:
        """How many claims are contradicted."""
        return sum(proof.failed for proof in self.proofs)

    @property
    def exit_code(self) -> int:
        """0 all proven, 1 a contradiction, 3 something unprovable."""
        if self.failures:
            return 1
        return 3 if any(proof.incomplete for proof in self.proofs) else 0

    @property
    def last_line(self) -> str:
        """`N proofs, M failures`."""
        return f"{len(self.proofs)} proofs, {self.failures} failures"


def audit_claims(
    file: Path, repository: Path, policy: Policy, *, online: bool = False, hours: Path | None = None
) -> Audit:
    """Check every claim of a file against a clone and, online, against GitHub."""
    try:
        text = file.read_bytes()
    except OSError as error:
        raise StudyError(f"the claims cannot be read: {error.strerror}", where=str(file)) from None
    claims = parse_claims(text, str(file))
    settings = _settings(claims)
    asked = ask_witnesses(settings, policy) if online and claims.github else Online()
    with mirror_of(repository) as mirror:
        found = {claim.id: read_claimed(mirror, claim) for claim in claims.claims}
        graph = mirror.parents()
        found_logs = [*asked_logs(settings, asked), *archived_hours(settings, hours)]
        logs = [against(log, graph) for log in found_logs]
        if asked.contains:
            commits = [tag.commit for tag in found.values() if tag.commit]
            logs = [compared(log, commits, asked.contains) for log in logs]
    proofs = tuple(prove_claim(c, found[c.id], logs, policy.run_clock_allowance_s) for c in claims.claims)
    source = ", ".join(f"{log.witness}: {log.source}" for log in logs) or "none"
    return Audit(claims, proofs, source)


def _settings(claims: Claims) -> StudySettings:
    """The repository of claims, as a study names its own."""
    return StudySettings(
        name="claims",
        remote="origin",
        branch="main",
        witnesses=("github",),
        signing_key="",
        commit_runs=False,
        github=claims.github,
    )
