"""The study's repository on GitHub, as a client that holds the user's token."""

from __future__ import annotations

from registry.witness.github import GitHubClient, token_from_environment

from registry.errors import StudyError
from registry.study_settings import StudySettings
from registry.witness.policy import Policy


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
