"""Asking witnesses again, for an auditor who does not take an archive's word."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from cli.workflows.github import github_client
from registry.errors import TrapError
from registry.study_settings import StudySettings
from registry.timestamps import moment
from registry.witness.policy import Policy
from verifier.evidence import StudyEvidence
from verifier.online import Online, ServedLog


def ask_witnesses(settings: StudySettings, policy: Policy) -> Online:
    """What GitHub and the witness server answer now, where the policy trusts
    them; else why they were not asked or did not answer.
    """
    online = Online()
    if settings.github:
        online = _ask_github(online, settings, policy)
    if settings.server:
        known = settings.server.url in {server.url for server in policy.witness_servers}
        answer = _ask_server(settings) if known else f"not asked: your policy does not name {settings.server.url}"
        online = replace(online, server=answer)
    return online


def _ask_github(online: Online, settings: StudySettings, policy: Policy) -> Online:
    try:
        client = github_client(settings, policy)
        number = client.repository_id()
        rows = client.activity()
    except TrapError as error:
        return replace(online, github=error.what)
    return replace(
        online,
        github=tuple(rows),
        github_repository_id=number,
        contains=client.contains,
        statuses=client.statuses,
        answers=client.answers,
    )


def _ask_server(settings: StudySettings) -> ServedLog | str:
    from registry.witness.served import fetch_log, token_from_environment

    assert settings.server is not None
    try:
        return ServedLog(*fetch_log(settings.server.url, settings.server.repository, token=token_from_environment()))
    except TrapError as error:
        return error.what


def fetch_hours(evidence: StudyEvidence, folder: Path) -> list[str]:
    """Download the GH Archive hours of every push that a tag rests on."""
    times = [tag.push.time for tag in (*evidence.tags, *evidence.predictions) if tag.push]
    return fetch_hours_of(times, evidence.policy, folder)


def fetch_hours_of(times: Iterable[str], policy: Policy, folder: Path) -> list[str]:
    """Download the GH Archive hours of these times (UTC).

    Each is tens of megabytes; hours that lie in the folder are kept. Returns
    why hours could not be had: the archive has gaps that are never filled.
    """
    from registry.witness.gh_archive import fetch_hour, hour_name

    hours = {hour_name(moment(time)): moment(time) for time in times}
    problems = []
    for name in sorted(hours):
        try:
            fetch_hour(policy.gh_archive, hours[name], folder)
        except TrapError as error:
            problems.append(f"{name}: {error.what}")
    return problems
