"""Where a new study is pushed to, and who witnesses it there."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from registry.errors import StudyError, TrapError
from registry.study_settings import GITHUB_API, GitHubRepository, ServedRepository

TIMESTAMP_AUTHORITY = "http://timestamp.digicert.com"
"""Asked by default for studies on GitHub: its root is built into the verifier."""


@dataclass(frozen=True)
class RemoteChoice:
    """A remote and its witnesses: at most one of a local one, GitHub and a server.

    `local` makes a bare repository beside the study. `authorities` are URLs of
    RFC 3161 services.
    """

    local: bool = False
    github: GitHubRepository | None = None
    server: ServedRepository | None = None
    authorities: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def url(self) -> str | None:
        """The URL that git pushes to, None for a local remote or none."""
        if self.server:
            return f"{self.server.url.rstrip('/')}/{self.server.repository}.git"
        return f"https://{_web_host(self.github.api)}/{self.github.repository}.git" if self.github else None

    @property
    def witnesses(self) -> tuple[str, ...]:
        """The witnesses as study.yaml names them."""
        first = "server" if self.server else "github" if self.github else "local"
        return (first, *("timestamps",) * bool(self.authorities))


def _web_host(api: str) -> str:
    host = urlsplit(api).netloc
    return "github.com" if host == "api.github.com" else host


def choose_remote(
    *,
    local: bool,
    github: str | None,
    github_api: str | None,
    server: str | None,
    repository: str | None,
    authorities: tuple[str, ...],
) -> RemoteChoice:
    """The remote that `init`'s options name; StudyError where they contradict."""
    if sum(map(bool, (local, github, server))) > 1:
        raise StudyError("a study has one remote", remedy="name one of --local-remote, --github and --server")
    if bool(server) != bool(repository) or (github_api and not github):
        raise StudyError(
            "an option is missing", remedy="--server URL with --repository OWNER/NAME; --github-api with --github"
        )
    if github:
        return _on_github(github, github_api or GITHUB_API, authorities or (TIMESTAMP_AUTHORITY,))
    if server and repository:
        return RemoteChoice(server=_served(server, repository), authorities=authorities)
    return RemoteChoice(local=local, authorities=authorities)


def _on_github(repository: str, api: str, authorities: tuple[str, ...]) -> RemoteChoice:
    """With the repository's number, if GitHub tells it now."""
    from registry.witness.github import GitHubClient, token_from_environment
    from registry.witness.policy_file import load_policy

    notes: tuple[str, ...] = ()
    number = None
    try:
        trusted = api in load_policy().github_apis
        number = GitHubClient(api, repository, token_from_environment() if trusted else None).repository_id()
    except TrapError as error:
        notes = (f"GitHub does not say which repository that is ({error.what}); add repository_id to study.yaml later",)
    return RemoteChoice(github=GitHubRepository(repository, number, api), authorities=authorities, notes=notes)


def _served(url: str, repository: str) -> ServedRepository:
    """The server's key is taken from itself now, and shown: compare it."""
    from registry.witness.served import fetch_key

    return ServedRepository(url.rstrip("/"), repository, fetch_key(url))
