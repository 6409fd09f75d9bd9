"""The study's repository on GitHub, as a client that holds the user's token."""

from __future__ import annotations

import time
from collections.abc import Callable

from registry.errors import StudyError, WitnessError
from registry.study_settings import StudySettings
from registry.witness.github import GitHubClient, token_from_environment
from registry.witness.policy import Policy

TRIES = 21
BETWEEN_S = 3.0


def github_client(settings: StudySettings, policy: Policy) -> GitHubClient:
    """A client for the study's repository.

    The token goes to an API of the policy only: a study could name any host.
    """
    if settings.github is None:
        raise StudyError("the study names no GitHub repository", where="study.yaml", remedy="add github: ...")
    if settings.github.api not in policy.github_apis:
        raise StudyError(
            "the study's GitHub API is not in your policy",
            where="study.yaml, field github.api",
            value=settings.github.api,
            remedy="if you trust it, name it in your policy file: github_apis: [...]",
        )
    return GitHubClient(settings.github.api, settings.github.repository, token_from_environment())


def wait_for_row(client: GitHubClient, commit: str, sleep: Callable[[float], None] = time.sleep) -> None:
    """Ask until the activity log holds a row with `commit`; only the last
    answer is kept. WitnessError where it does not after `TRIES`.
    """
    kept = len(client.answers)
    for attempt in range(TRIES):
        del client.answers[kept:]
        if any(row.after == commit for row in client.newest()):
            return
        if attempt < TRIES - 1:
            sleep(BETWEEN_S)
    patience_s = (TRIES - 1) * BETWEEN_S
    raise WitnessError(f"GitHub's activity log does not show the push within {patience_s:.0f} s", where=commit[:12])
