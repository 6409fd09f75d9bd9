"""Verification of the study around a folder."""

from __future__ import annotations

from pathlib import Path

from cli.workflows.online import ask_witnesses, fetch_hours
from registry.errors import RecordError, RegistrationError
from registry.study import find_root
from registry.witness.policy import Policy
from registry.witness.policy_file import load_policy
from verifier.evidence import StudyEvidence, gather
from verifier.online import Ask, Hours
from verifier.report import StudyReport
from verifier.verification import verify_study


def verify(
    start: Path,
    only: str | None = None,
    runs: Path | None = None,
    *,
    policy: Policy | None = None,
    online: bool = False,
    hours: Path | None = None,
    live: bool = True,
    with_series: bool = False,
    ask: Ask | None = None,
) -> tuple[StudyReport, StudyEvidence]:
    """Verify a study, or one registration of it and what it quotes.

    `runs` is the folder of run files; by default the study's own. `policy` is
    the auditor's, by default what `load_policy` finds. With `online` the
    witnesses are asked again; `hours` is a folder for GH Archive's hours.
    Without `live` a local witness's own log is left alone. `with_series`: the
    runs have their series, for tables and pictures. `ask` takes the place of
    asking, and is `online`, too.
    """
    root = find_root(start)
    if runs is not None and not runs.is_dir():
        raise RecordError(
            "no such folder of run files", where=str(runs), remedy="--runs DIR: the folder with <id>.v<N>/"
        )
    trusted = policy or load_policy(study=root)
    ask, kept = ask or (ask_witnesses if online else None), Hours(hours) if hours else None
    evidence = gather(root, trusted, ask, kept, live=live)
    if ask and hours:
        evidence = gather(root, trusted, ask, Hours(hours, tuple(fetch_hours(evidence, hours))), live=live)
    known = sorted({tag.id for tag in evidence.tags})
    if only is not None and only not in known:
        raise RegistrationError(
            "not registered", value=only, remedy=f"registered here: {', '.join(known) or 'none yet'}"
        )
    return verify_study(evidence, runs.resolve() if runs else root / "runs", only, with_series), evidence
