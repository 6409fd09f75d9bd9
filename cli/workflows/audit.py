"""Auditing claims about a repository that was made with other tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.workflows.online import ask_witnesses, fetch_hours_of
from registry.claims import Claims, parse_claims
from registry.errors import StudyError
from registry.mirror import Mirror, mirror_of
from registry.strict_yaml import MAX_BYTES
from registry.study_settings import StudySettings
from registry.witness.github_archive import MAX_ARCHIVE_BYTES, read_archive
from registry.witness.policy import Policy
from registry.witness.sightings import PushLog, Sighting
from verifier.claim_checks import ClaimedTag
from verifier.claim_logs import answered_log
from verifier.claims import ClaimProof, prove_claim, read_claimed
from verifier.github_logs import asked_logs, compared, hours_log, status_sightings
from verifier.online import Hours, Online
from verifier.push_logs import against

MAX_HOURS = 48


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


@dataclass(frozen=True)
class Sources:
    """What an auditor brings besides the claims: whether to ask GitHub, the
    folder of GH Archive's hours, a file of archived answers.
    """

    online: bool = False
    hours: Path | None = None
    answers: Path | None = None


def audit_claims(file: Path, repository: Path, policy: Policy, sources: Sources) -> Audit:
    """Check every claim of a file against a clone and what witnesses say."""
    claims = parse_claims(_read(file, MAX_BYTES, "claims"), str(file))
    settings = _settings(claims)
    with mirror_of(repository) as mirror:
        found = {claim.id: read_claimed(mirror, claim) for claim in claims.claims}
        online = ask_witnesses(settings, policy) if sources.online and claims.github else Online()
        logs = _logs(mirror, claims, found, settings, online, sources, policy)
        proofs = tuple(
            prove_claim(
                claim,
                found[claim.id],
                logs,
                mirror.is_ancestor,
                policy.run_clock_allowance_s,
                _statuses(found[claim.id], settings, online, logs),
            )
            for claim in claims.claims
        )
    source = ", ".join(f"{log.witness}: {log.source}" for log in logs)
    unnamed = "GitHub: not asked, the claims name no repository there" if sources.online and not claims.github else ""
    return Audit(claims, proofs, source or unnamed or "none")


def _logs(
    mirror: Mirror,
    claims: Claims,
    found: Mapping[str, ClaimedTag],
    settings: StudySettings,
    online: Online,
    sources: Sources,
    policy: Policy,
) -> list[PushLog]:
    """Every log, judged against the repository's commits."""
    graph = mirror.parents()
    logs = asked_logs(settings, online)
    if sources.answers:
        archive = read_archive(_read(sources.answers, MAX_ARCHIVE_BYTES, "answers"), str(sources.answers))
        logs.append(answered_log(archive, str(sources.answers), claims.github, logs))
    logs = [against(log, graph) for log in logs]
    if online.contains:
        commits = [tag.commit for tag in found.values() if tag.commit]
        logs = [compared(log, commits, online.contains) for log in logs]
    if sources.hours:
        problems = _fetch(claims, found, logs, sources.hours, policy) if sources.online else []
        logs.append(against(hours_log(settings, online, Hours(sources.hours, tuple(problems))), graph))
    return logs


def _fetch(
    claims: Claims, found: Mapping[str, ClaimedTag], logs: Sequence[PushLog], hours: Path, policy: Policy
) -> list[str]:
    """Download the hours of the pushes that are claimed or were seen."""
    times = [claim.pushed_at for claim in claims.claims if claim.pushed_at]
    rows = (log.first.get(tag.commit or "") for log in logs for tag in found.values())
    times += [row.timestamp for row in rows if row]
    by_hour = {time[:13]: time for time in times}
    left = len(by_hour) - MAX_HOURS
    problems = fetch_hours_of([by_hour[hour] for hour in sorted(by_hour)[:MAX_HOURS]], policy, hours)
    return [*problems, f"{left} more hours were not fetched"] if left > 0 else problems


def _statuses(tag: ClaimedTag, settings: StudySettings, online: Online, logs: Sequence[PushLog]) -> Sequence[Sighting]:
    """The earliest status of a commit that no independent log has."""
    if not (tag.commit and online.statuses and any(log.independent for log in asked_logs(settings, online))):
        return ()
    if any(log.independent and tag.commit in log.first for log in logs):
        return ()
    return status_sightings(tag.commit, online.statuses, settings)


def _read(file: Path, cap_bytes: int, what: str) -> bytes:
    """A file of the auditor's; one byte over the cap, for its parser to refuse."""
    try:
        with file.open("rb") as opened:
            return opened.read(cap_bytes + 1)
    except OSError as error:
        raise StudyError(f"the {what} cannot be read: {error.strerror}", where=str(file)) from None


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
