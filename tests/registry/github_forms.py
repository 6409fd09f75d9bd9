"""Answers in GitHub's form, with every field that its description requires."""

from __future__ import annotations

from typing import Any

ROOT = "https://api.github.com"
_REPOSITORY_URLS = """archive assignees blobs branches collaborators comments commits compare contents contributors
deployments downloads events forks git_commits git_refs git_tags hooks issue_comment issue_events issues keys labels
languages merges milestones notifications pulls releases stargazers statuses subscribers subscription tags teams trees
clone git ssh svn"""
_USER_URLS = "events followers following gists organizations received_events repos starred subscriptions"
_FLAGS = "fork has_issues has_projects has_wiki has_pages has_discussions archived disabled"
_COUNTS = "forks forks_count open_issues open_issues_count size stargazers_count watchers watchers_count network_count"


def user(login: str = "octocat") -> dict[str, Any]:
    """A user, as an actor or creator."""
    base = f"{ROOT}/users/{login}"
    urls = {f"{name}_url": f"{base}/{name}" for name in _USER_URLS.split()}
    return urls | {
        "login": login,
        "id": 1,
        "node_id": "MDQ6VXNlcjE=",
        "avatar_url": "https://avatars.example.org/1",
        "gravatar_id": "",
        "html_url": f"https://github.com/{login}",
        "url": base,
        "type": "User",
        "site_admin": False,
    }


def repository(full_name: str, number: int, private: bool = False) -> dict[str, Any]:
    """The answer to `/repos/{owner}/{repo}`."""
    owner, _, name = full_name.partition("/")
    base = f"{ROOT}/repos/{full_name}"
    urls = {f"{each}_url": f"{base}/{each}" for each in _REPOSITORY_URLS.split()}
    flags = dict.fromkeys(_FLAGS.split(), False)
    times = dict.fromkeys(("pushed_at", "created_at", "updated_at"), "2026-01-01T00:00:00Z")
    empty = dict.fromkeys(("description", "homepage", "language", "license", "mirror_url"))
    counts = dict.fromkeys((*_COUNTS.split(), "subscribers_count"), 0)
    return {
        **urls,
        **flags,
        **times,
        **empty,
        **counts,
        "id": number,
        "node_id": "MDEwOlJlcG9zaXRvcnk=",
        "name": name,
        "full_name": full_name,
        "owner": user(owner),
        "private": private,
        "html_url": f"https://github.com/{full_name}",
        "url": base,
        "default_branch": "main",
    }


def activity(
    number: int, before: str, after: str, ref: str, time: str, kind: str = "push", actor: str | None = "octocat"
) -> dict[str, Any]:
    """One row of `/activity`."""
    return {
        "id": number,
        "node_id": f"PSH_{number}",
        "before": before,
        "after": after,
        "ref": ref,
        "timestamp": time,
        "activity_type": kind,
        "actor": user(actor) if actor else None,
    }


def commit(sha: str) -> dict[str, Any]:
    """A commit, as `/compare` shows it."""
    base = f"{ROOT}/repos/octo/study/commits/{sha}"
    tree = {"sha": sha, "url": base}
    return {
        "url": base,
        "sha": sha,
        "node_id": "MDY6Q29tbWl0",
        "html_url": base,
        "comments_url": f"{base}/comments",
        "commit": {
            "url": base,
            "author": None,
            "committer": None,
            "message": "A commit",
            "comment_count": 0,
            "tree": tree,
        },
        "author": None,
        "committer": None,
        "parents": [],
    }


def comparison(base: str, head: str, merge_base: str, status: str) -> dict[str, Any]:
    """The answer to `/compare/{base}...{head}`, a page without files."""
    url = f"{ROOT}/repos/octo/study/compare/{base}...{head}"
    names = ("url", "html_url", "permalink_url", "diff_url", "patch_url")
    counts = {"ahead_by": int(status == "ahead"), "behind_by": int(status == "behind"), "total_commits": 1}
    return {
        **dict.fromkeys(names, url),
        **counts,
        "base_commit": commit(base),
        "merge_base_commit": commit(merge_base),
        "status": status,
        "commits": [],
        "files": [],
    }


def status(number: int, sha: str, context: str, description: str, time: str) -> dict[str, Any]:
    """A commit status."""
    return {
        "url": f"{ROOT}/repos/octo/study/statuses/{sha}",
        "avatar_url": None,
        "id": number,
        "node_id": "SC_1",
        "state": "success",
        "description": description,
        "target_url": None,
        "context": context,
        "created_at": time,
        "updated_at": time,
        "creator": user(),
    }


def error(message: str) -> dict[str, Any]:
    """The body of a refusal."""
    return {"message": message, "documentation_url": "https://docs.github.com/rest"}
