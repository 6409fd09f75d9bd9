"""What witnesses answer after a push, archived beside the evidence.

A witness that does not answer costs nothing but its word: what came is
archived in one commit, what did not is said, and the next command asks again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import git

from cli.workflows.github import github_client, wait_for_row
from cli.workflows.reporter import Reporter
from registry.canonical import canonical_bytes, sha256_hex
from registry.errors import TrapError
from registry.plain_text import without_credentials
from registry.publish import publish
from registry.study import Study
from registry.witness.archive import (
    LOCAL_LOG,
    SERVER_CHECKPOINT,
    SERVER_LOG,
    github_answers_path,
    release_path,
    tag_stem,
    timestamp_path,
)
from registry.witness.github_archive import archive_bytes
from registry.witness.local import live_log
from registry.witness.policy import Policy

STATUS_CONTEXT = "trap/registration"


@dataclass(frozen=True)
class Pushed:
    """What was pushed: a name for its receipts, the commit and its branch;
    for a tag also its name, its object and the bytes of the tagged file.
    """

    name: str
    commit: str
    branch: str
    tag: str | None = None
    data: bytes = b""
    tag_object: str = ""


@dataclass
class Receipts:
    """Files to archive, and what could not be had."""

    files: dict[str, bytes | Path] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def ask(self, witness: str, ask: Callable[[], dict[str, bytes | Path]]) -> None:
        """Add what a witness answers, or note why it did not."""
        try:
            self.files |= ask()
        except TrapError as error:
            self.problems.append(f"{witness}: {without_credentials(error.what)}")


def archive_receipts(
    study: Study, repository: git.Repo, pushed: Pushed | None, policy: Policy, reporter: Reporter
) -> bool:
    """Ask every witness of the study, archive the answers in one pushed
    commit; whether there was anything new. Without `pushed` only logs are read.
    """
    settings, receipts = study.settings, Receipts()
    if "local" in settings.witnesses:
        receipts.ask("local witness", lambda: _local(study, repository, pushed))
    if "server" in settings.witnesses:
        receipts.ask("witness server", lambda: _server(study, pushed))
    if "github" in settings.witnesses and pushed:
        receipts.ask("GitHub", lambda: _github(study, pushed, policy, reporter))
    if "github" in settings.witnesses and pushed and pushed.tag and not receipts.problems:
        receipts.ask("GitHub", lambda: _release(study, pushed, policy))
    if "timestamps" in settings.witnesses and pushed and pushed.tag:
        for number, url in enumerate(settings.timestamp_authorities, 1):
            receipts.ask(url, lambda n=number, u=url: _stamp(study, pushed, n, u, policy))  # type: ignore[misc]
    for problem in receipts.problems:
        reporter.say(f"warning: no receipt from {problem}; the next draw or run asks again")
    new = {path: data for path, data in receipts.files.items() if not _same(study.root / path, data)}
    if new:
        publish(repository, settings.remote, new, "Archive witnesses' answers", "trapkit draw")
    return bool(new)


def _same(path: Path, data: bytes | Path) -> bool:
    return path.is_file() and isinstance(data, bytes) and path.read_bytes() == data


def _holds(path: Path, pushed: Pushed | None) -> bool:
    """Whether an archived log has the push already. Archiving is a push, too:
    without this the log would never stand still.
    """
    if pushed is None or not path.is_file():
        return False
    return (f'"refs/tags/{pushed.tag}"' if pushed.tag else pushed.commit).encode() in path.read_bytes()


def _local(study: Study, repository: git.Repo, pushed: Pushed | None) -> dict[str, bytes | Path]:
    if _holds(study.root / LOCAL_LOG, pushed):
        return {}
    live = live_log(next(iter(repository.remote(study.settings.remote).urls)))
    return {} if live is None else {LOCAL_LOG: live}


def _server(study: Study, pushed: Pushed | None) -> dict[str, bytes | Path]:
    if _holds(study.root / SERVER_LOG, pushed):
        return {}
    from registry.witness.served import fetch_log, token_from_environment

    server = study.settings.server
    assert server is not None
    log, checkpoint = fetch_log(server.url, server.repository, token=token_from_environment())
    return {SERVER_LOG: log, SERVER_CHECKPOINT: checkpoint}


def _github(study: Study, pushed: Pushed, policy: Policy, reporter: Reporter) -> dict[str, bytes | Path]:
    path = github_answers_path(pushed.name)
    if (study.root / path).is_file():
        return {}
    client = github_client(study.settings, policy)
    number = client.repository_id()
    wait_for_row(client, pushed.commit)
    if pushed.tag:
        posted = client.post_status(pushed.commit, STATUS_CONTEXT, f"sha256:{sha256_hex(pushed.data)}")
        if posted is None:
            reporter.say("GitHub takes no commit status from this token: one witness less")
    answers = archive_bytes(client.api, client.repository, number, client.answers)
    return {path: answers}


def _release(study: Study, pushed: Pushed, policy: Policy) -> dict[str, bytes | Path]:
    """GitHub's attestation of an immutable release of the tag, if there is one."""
    assert pushed.tag is not None
    path = release_path(pushed.tag)
    if (study.root / path).is_file():
        return {}
    bundles = github_client(study.settings, policy).attestations(f"sha1:{pushed.tag_object}")
    return {path: canonical_bytes(bundles[0])} if bundles else {}


def _stamp(study: Study, pushed: Pushed, number: int, url: str, policy: Policy) -> dict[str, bytes | Path]:
    from registry.witness.timestamp_authority import request_token

    assert pushed.tag is not None
    path = timestamp_path(pushed.tag, number)
    if (study.root / path).is_file():
        return {}
    return {path: request_token(url, sha256_hex(pushed.data))}


def pushed_tag(repository: git.Repo, study: Study, tag: str, tag_object: str, data: bytes) -> Pushed:
    """A registration or prediction tag as pushed; `data` is the tagged file."""
    commit = str(repository.git.rev_parse(f"{tag_object}^{{commit}}"))
    return Pushed(tag_stem(tag), commit, study.settings.branch, tag, data, tag_object)
