"""Claims about a repository that was made with other tools."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.claims import parse_claims
from registry.errors import TrapError
from tests.registry.github_stub import GitHubStub
from tests.support import command, git

ROOT = Path(__file__).parents[2]
RULE = b"trapped if hits == 0\n"
PUSHED = "2026-11-05T06:24:47Z"


@dataclasses.dataclass
class World:
    """A repository with a tag, the stub of GitHub that saw it pushed, a policy."""

    folder: Path
    commit: str
    github: GitHubStub

    def claims(self, **changes: Any) -> dict[str, Any]:
        claim = {
            "id": "pred",
            "tag": "frozen-pred",
            "commit": self.commit[:7],
            "tag_kind": "annotated",
            "files": [{"path": "rule.txt", "sha256": hashlib.sha256(RULE).hexdigest()}],
            "pushed": {"time": "2026-11-05T00:24:47-06:00", "within_s": 0},
            "runs": [{"name": "seed 0", "started_at": "2026-11-05T06:24:48Z"}],
        } | changes
        return {key: value for key, value in claim.items() if value is not None}

    def audit(self, *options: str, **changes: Any) -> Any:
        repository = {"repository": self.github.repository, "api": self.github.api}
        text = yaml.safe_dump(
            {
                "schema": "trap-claims-1",
                "title": "A [b]paper[/b]",
                "source": "its page",
                "github": repository,
                "claims": [self.claims(**changes)],
            }
        )
        (self.folder / "claims.yaml").write_text(text)
        policy = self.folder / "policy.yaml"
        policy.write_text(yaml.safe_dump({"schema": "trap-policy-1", "github_apis": [self.github.api]}))
        work = str(self.folder / "work")
        return command(
            self.folder, "audit", "claims.yaml", "--repository", work, "--policy", str(policy), "--json", *options
        )

    def checks(self, *options: str, **changes: Any) -> tuple[int, dict[str, tuple[str, str]]]:
        done = self.audit(*options, **changes)
        (proof,) = json.loads(done.out)["proofs"]
        return done.code, {c["name"]: (c["outcome"], c["reason"]) for c in proof["check"]["children"]}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("claims")
    work = folder / "work"
    git(folder, "init", "-q", "-b", "main", str(work))
    git(work, "config", "user.email", "a@example.org")
    git(work, "config", "user.name", "a")
    (work / "rule.txt").write_bytes(RULE)
    git(work, "add", "rule.txt")
    git(work, "commit", "-q", "-m", "rule")
    git(work, "tag", "-a", "frozen-pred", "-m", "frozen")
    git(work, "tag", "light")
    git(work, "tag", "other-name", "frozen-pred")
    git(work, "tag", "-a", "of-a-tag", "frozen-pred", "-m", "a tag of a tag")
    git(work, "tag", "-a", "of-a-file", "HEAD:rule.txt", "-m", "a file")
    commit = git(work, "rev-parse", "HEAD")
    git(work, "commit", "-q", "--allow-empty", "-m", "later")
    with GitHubStub("octo/paper") as github:
        github.push(git(work, "rev-parse", "HEAD"), PUSHED)
        yield World(folder, commit, github)


def test_a_true_claim_is_proven_online(world: World) -> None:
    code, checks = world.checks("--online")
    assert code == 0
    assert {outcome for outcome, _ in checks.values()} == {"PROVEN"}
    assert "run clocks: the author's own" in checks["before_first_run"][1]


def test_a_claim_of_no_kind_takes_a_lightweight_tag(world: World) -> None:
    code, checks = world.checks("--online", tag="light", tag_kind=None)
    assert code == 0 and {outcome for outcome, _ in checks.values()} == {"PROVEN"}
    assert world.checks("--online", tag="light", tag_kind="lightweight")[0] == 0


def test_offline_nothing_says_when(world: World) -> None:
    code, checks = world.checks()
    assert code == 3
    assert checks["files_frozen"][0] == "PROVEN"
    assert checks["push_witnessed"] == ("UNPROVABLE", "no witness saw it pushed (no witness was asked: --online)")


@pytest.mark.parametrize(
    ("changes", "check", "words"),
    [
        ({"commit": "0000000"}, "commit_is", "claimed was 0000000"),
        ({"tag": "light"}, "tag_is_annotated", "light is a lightweight tag, not a tag object"),
        ({"tag": "other-name"}, "tag_is_annotated", "names itself frozen-pred"),
        ({"tag_kind": "lightweight"}, "tag_is_lightweight", "claimed was a lightweight one"),
        ({"tag": "of-a-file"}, "tag_exists", "does not point at a commit"),
        ({"files": [{"path": "rule.txt", "sha256": "0" * 64}]}, "files_frozen", "claimed was 000"),
        ({"files": [{"path": "../rule.txt", "sha256": "0" * 64}]}, "files_frozen", "holds no ../rule.txt"),
        ({"pushed": {"time": "2026-11-05T00:24:48-06:00", "within_s": 0}}, "pushed_when_claimed", "1 s earlier"),
        ({"pushed": {"time": "2026-11-05T00:24:47+08:00"}}, "pushed_when_claimed", "50400 s later"),
        ({"runs": [{"name": "r", "started_at": "2026-11-05T06:24:46Z"}]}, "before_first_run", "before the push"),
    ],
)
def test_a_false_one_is_refuted(world: World, changes: dict[str, Any], check: str, words: str) -> None:
    code, checks = world.checks("--online", **changes)
    assert code == 1
    assert checks[check][0] == "REFUTED" and words in checks[check][1]


def test_equal_times_prove_no_order(world: World) -> None:
    code, checks = world.checks("--online", runs=[{"name": "r", "started_at": PUSHED}])
    assert code == 3
    assert checks["before_first_run"][0] == "UNPROVABLE" and "not strictly before" in checks["before_first_run"][1]


def test_a_tag_that_is_not_there_is_no_forgery(world: World) -> None:
    code, checks = world.checks("--online", tag="gone")
    assert code == 3 and checks["tag_exists"][0] == "UNPROVABLE"


def test_an_api_of_the_claims_own_is_not_believed(world: World) -> None:
    world.audit()
    done = command(world.folder, "audit", "claims.yaml", "--repository", "work", "--online", "--json")
    assert done.code == 3
    assert "not in your policy" in json.loads(done.out)["witness_source"]


def test_what_is_read_is_shown_as_plain_text(world: World) -> None:
    world.audit()
    done = command(world.folder, "audit", "claims.yaml", "--repository", "work")
    assert "A [b]paper[/b]" in done.out and done.out.rstrip().endswith("1 proofs, 0 failures")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("47-06:00", "47", "not a time with an offset"),
        ("id: r15-reg", "id: icml-trap-pred", "two claims have one id"),
        ('"6b47a6c"', '"6b47"', "commit"),
        ("schema: trap-claims-1", "schema: other", "schema"),
    ],
)
def test_a_malformed_file_is_refused_with_its_place(old: str, new: str, words: str) -> None:
    text = (ROOT / "docs/examples/paper-claims.yaml").read_text()
    with pytest.raises(TrapError) as raised:
        parse_claims(text.replace(old, new, 1).encode(), "claims.yaml")
    assert words in raised.value.diagnostics() and "claims.yaml" in raised.value.diagnostics()


def test_the_paper_s_tags_parse_and_are_unprovable_elsewhere(world: World) -> None:
    claims = parse_claims((ROOT / "docs/examples/paper-claims.yaml").read_bytes(), "paper")
    assert [claim.pushed_at for claim in claims.claims][:1] == ["2026-11-05T06:24:47.000000Z"]
    done = command(world.folder, "audit", str(ROOT / "docs/examples/paper-claims.yaml"), "--repository", "work")
    assert done.code == 3 and done.out.rstrip().endswith("5 proofs, 0 failures")
