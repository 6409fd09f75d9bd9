"""Studies whose witnesses are servers: GitHub (a stub in GitHub's published
form), a real witness server, a drand chain and a timestamp authority of the
tests' own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from registry.witness.policy import Policy
from registry.witness.policy_file import load_policy
from tests.drand_stub import DrandStub
from tests.registry.github_stub import GitHubStub
from tests.support import command, commit_file, empty_study, git
from tests.tsa_stub import TimestampAuthority

REPOSITORY = "octo/study"


class FollowingStub(GitHubStub):
    """A stub of GitHub that shows what a real bare repository was pushed."""

    bare: Path | None = None

    def answer(self, verb: str, url: str, content: Any) -> tuple[int, Any, dict[str, str]]:
        if self.bare:
            self.follow(self.bare)
        return super().answer(verb, url, content)


@dataclass
class Hosts:
    """The services that a study in these tests is witnessed by."""

    github: FollowingStub
    drand: DrandStub
    authority: TimestampAuthority
    folder: Path

    @property
    def policy_file(self) -> Path:
        """The auditor's policy, which trusts all of them."""
        return self.folder / "policy.yaml"

    def policy(self, **changes: Any) -> Policy:
        """The policy with some of its lines changed; None leaves one out."""
        chain = self.drand.chain
        entries = {
            "schema": "trap-policy-1",
            "built_in": False,
            "github_apis": [self.github.api],
            "drand_chains": [
                {
                    "chain_hash": chain.chain_hash,
                    "public_key": chain.public_key,
                    "period_s": chain.period_s,
                    "genesis_s": chain.genesis_s,
                    "urls": list(chain.urls),
                }
            ],
            "timestamp_roots": [self.authority.root_pem],
        }
        kept = {key: value for key, value in (entries | changes).items() if value is not None}
        self.policy_file.write_text(yaml.safe_dump(kept, sort_keys=False))
        return load_policy(self.policy_file)


@contextlib.contextmanager
def hosts(folder: Path) -> Iterator[Hosts]:
    """Start every service."""
    with FollowingStub(REPOSITORY) as github, DrandStub() as drand, TimestampAuthority() as authority:
        yield Hosts(github, drand, authority, folder)


@contextlib.contextmanager
def trusted(found: Hosts) -> Iterator[None]:
    """The program believes these services; the drand chain's clock is moved
    instead of waiting.
    """
    found.policy()
    found.github.faults.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAP_POLICY", str(found.policy_file))
        clock = SimpleNamespace(time=found.drand.now, sleep=found.drand.advance)
        patch.setattr("cli.workflows.beacons.time", clock)
        patch.setattr("cli.workflows.github.BETWEEN_S", 0.0)
        yield


def github_study(folder: Path, services: Hosts) -> Path:
    """A study on the stub of GitHub, with the small rules and nothing registered."""
    root = empty_study(folder, "--commit-runs")
    key = next(line for line in (root / "study.yaml").read_text().splitlines() if line.startswith("signing_key"))
    settings = f"""schema: trap-study-1
name: study
remote: origin
branch: main
witnesses: [github, timestamps]
beacon: {{chain: "{services.drand.chain.name}", margin_s: 60}}
github: {{repository: "{REPOSITORY}", repository_id: {services.github.number}, api: "{services.github.api}"}}
timestamp_authorities: ["{services.authority.url}"]
{key}
commit_runs: true
"""
    commit_file(root, "study.yaml", settings)
    services.github.bare = root.with_name("study-remote.git")
    return root


def finish(root: Path) -> None:
    """Register, draw and run the small rule and its calibration."""
    for arguments in (("register", "rules/small.yaml"), ("run", "small")):
        done = command(root, *arguments)
        assert done.code == 0, done.text


def clone_of(root: Path, folder: Path) -> Path:
    """An auditor's own clone of a study's remote."""
    target = folder / "clone"
    git(folder, "clone", "-q", str(root.with_name("study-remote.git")), str(target))
    git(target, "fetch", "-q", "origin", "attempts")
    return target
