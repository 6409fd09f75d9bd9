"""A repository in the words of GitHub's `/repos/{owner}/{repo}`.

Source: GitHub's OpenAPI description, schema `full-repository`. Every value is
true of this server: what it has none of (issues, forks, stars) is false, zero,
null or empty. URLs follow GitHub's scheme; those that this server does not
answer give 404.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from registry.witness.rows import PushRow
from registry.witness.server.repositories import Repository

_BELOW = {
    "archive_url": "{archive_format}{/ref}",
    "assignees_url": "assignees{/user}",
    "blobs_url": "git/blobs{/sha}",
    "branches_url": "branches{/branch}",
    "collaborators_url": "collaborators{/collaborator}",
    "comments_url": "comments{/number}",
    "commits_url": "commits{/sha}",
    "compare_url": "compare/{base}...{head}",
    "contents_url": "contents/{+path}",
    "contributors_url": "contributors",
    "deployments_url": "deployments",
    "downloads_url": "downloads",
    "events_url": "events",
    "forks_url": "forks",
    "git_commits_url": "git/commits{/sha}",
    "git_refs_url": "git/refs{/sha}",
    "git_tags_url": "git/tags{/sha}",
    "hooks_url": "hooks",
    "issue_comment_url": "issues/comments{/number}",
    "issue_events_url": "issues/events{/number}",
    "issues_url": "issues{/number}",
    "keys_url": "keys{/key_id}",
    "labels_url": "labels{/name}",
    "languages_url": "languages",
    "merges_url": "merges",
    "milestones_url": "milestones{/number}",
    "notifications_url": "notifications{?since,all,participating}",
    "pulls_url": "pulls{/number}",
    "releases_url": "releases{/id}",
    "stargazers_url": "stargazers",
    "statuses_url": "statuses/{sha}",
    "subscribers_url": "subscribers",
    "subscription_url": "subscription",
    "tags_url": "tags",
    "teams_url": "teams",
    "trees_url": "git/trees{/sha}",
}
_OWNER_BELOW = {
    "followers_url": "followers",
    "following_url": "following{/other_user}",
    "gists_url": "gists{/gist_id}",
    "starred_url": "starred{/owner}{/repo}",
    "subscriptions_url": "subscriptions",
    "organizations_url": "orgs",
    "repos_url": "repos",
    "events_url": "events{/privacy}",
    "received_events_url": "received_events",
}
_FALSE = ("fork", "has_issues", "has_projects", "has_wiki", "has_pages", "has_discussions", "archived", "disabled")
_NULL = ("description", "mirror_url", "homepage", "language", "license")
_ZERO = (
    *("forks", "forks_count", "open_issues", "open_issues_count", "stargazers_count"),
    *("watchers", "watchers_count", "network_count", "subscribers_count"),
)


def repository_form(
    repository: Repository, rows: Sequence[PushRow], base_url: str, *, private: bool, size_kilobytes: int
) -> dict[str, Any]:
    """GitHub's `full-repository`; `base_url` is the server's, without a slash."""
    html_url = f"{base_url}/{repository.full_name}"
    url = f"{base_url}/api/v3/repos/{repository.full_name}"
    pushed_at = rows[-1].timestamp if rows else repository.created_at
    return {
        "id": repository.id,
        "node_id": _node("Repository", repository.id),
        "name": repository.name,
        "full_name": repository.full_name,
        "owner": _owner(repository, base_url),
        "private": private,
        "visibility": "private" if private else "public",
        "url": url,
        "html_url": html_url,
        "svn_url": html_url,
        "clone_url": f"{html_url}.git",
        "git_url": "",
        "ssh_url": "",
        "default_branch": "main",
        "size": size_kilobytes,
        "created_at": repository.created_at,
        "updated_at": pushed_at,
        "pushed_at": pushed_at,
        **{name: f"{url}/{below}" for name, below in _BELOW.items()},
        **dict.fromkeys(_FALSE, False),
        **dict.fromkeys(_NULL),
        **dict.fromkeys(_ZERO, 0),
    }


def _owner(repository: Repository, base_url: str) -> dict[str, Any]:
    """The owner as an organization: a name that repositories share, no account."""
    url = f"{base_url}/api/v3/users/{repository.owner}"
    number = int.from_bytes(repository.owner.encode()[:6].ljust(6, b"\0"), "big")
    return {
        "login": repository.owner,
        "id": number,
        "node_id": _node("Organization", number),
        "type": "Organization",
        "site_admin": False,
        "url": url,
        "html_url": f"{base_url}/{repository.owner}",
        "avatar_url": f"{base_url}/{repository.owner}",
        "gravatar_id": None,
        **{name: f"{url}/{below}" for name, below in _OWNER_BELOW.items()},
    }


def _node(kind: str, number: int) -> str:
    return base64.b64encode(f"{kind}:{number}".encode()).decode()
