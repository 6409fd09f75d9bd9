"""Attacks on tags: what a ref, a tag object and its signature can pretend."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from registry.canonical import canonical_bytes, sha256_hex
from registry.ssh_signature import default_key_path, load_key, sign
from registry.tags import tag_payload
from registry.witness.archive import beacon_path
from tests.study.attacks import (
    SMALL,
    checks,
    gathered_online,
    judged,
    outcomes,
    tag_of,
)
from tests.study.hosted import Hosts
from tests.support import commit_file, copy_study, git
from verifier.check import Outcome
from verifier.evidence import StudyEvidence, gather
from verifier.verification import verify_study

LONG_AGO = "1577836800 +0000"


def make_tag(root: Path, name: str, commit: str, digest: str, key: Ed25519PrivateKey | None = None) -> None:
    """A registration's tag, dated back, signed by the study's key or another."""
    payload = tag_payload(commit, name, f"A <a@example.org> {LONG_AGO}", "a title", digest)
    signature = sign(key or load_key(default_key_path()), payload)
    made = subprocess.run(
        ["git", "hash-object", "-t", "tag", "-w", "--stdin"],
        cwd=root,
        input=payload + signature,
        check=True,
        capture_output=True,
    )
    git(root, "update-ref", f"refs/tags/{name}", made.stdout.decode().strip())


def commit_registration(root: Path, identity: str, *, beacon_round: int | None = None) -> str:
    """Commit, with a date of long ago, the small registration under another id; its digest."""
    value = json.loads((root / "registrations/small.v1.json").read_bytes())
    value["id"] = value["draft"]["id"] = identity
    value["draft_sha256"] = sha256_hex(canonical_bytes(value["draft"]))
    value["beacon"]["round"] = beacon_round or value["beacon"]["round"]
    data = canonical_bytes(value)
    with pytest.MonkeyPatch.context() as patch:
        for who in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{who}_DATE", LONG_AGO)
        commit_file(root, f"registrations/{identity}.v1.json", data)
    return sha256_hex(data)


@pytest.fixture(scope="module")
def forged_root(github_finished: Path, running: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with a tag of every false kind, beside its true ones."""
    root = copy_study(github_finished, tmp_path_factory.mktemp("forged"))
    git(root, "tag", "-a", "-m", "a tag of a tag", "reg/nested/v1", SMALL)
    git(root, "update-ref", "refs/tags/reg/renamed/v1", git(root, "rev-parse", SMALL))
    git(root, "update-ref", "refs/tags/reg/light/v1", git(root, "rev-parse", f"{SMALL}^{{commit}}"))
    git(root, "tag", "-a", "-m", "a release", "v1.0", f"{SMALL}^{{commit}}")
    digest = commit_registration(root, "stranger")
    head = git(root, "rev-parse", "HEAD")
    make_tag(root, "reg/stranger/v1", head, digest, Ed25519PrivateKey.generate())
    digest = commit_registration(root, "unsigned")
    git(root, "tag", "-a", "-m", f"unsigned\n\ndigest: sha256:{digest}", "reg/unsigned/v1", "HEAD")
    digest = commit_registration(root, "late", beacon_round=5)
    make_tag(root, "reg/late/v1", git(root, "rev-parse", "HEAD"), digest)
    commit_file(root, beacon_path(running.drand.chain.chain_hash, 5), running.drand.answer(5))
    digest = commit_registration(root, "digest")
    make_tag(root, "reg/digest/v1", git(root, "rev-parse", "HEAD"), "0" * 64)
    return root


@pytest.fixture
def forged(forged_root: Path, services: Hosts) -> StudyEvidence:
    services.github.bare = forged_root.with_name("study-remote.git")
    return gathered_online(forged_root, services, services.policy())


@pytest.mark.parametrize(
    ("name", "check", "words"),
    [
        ("nested", "tag_is_annotated", "does not point at a commit"),
        ("renamed", "tag_is_annotated", "the tag object names itself reg/small/v1"),
        ("light", "tag_is_annotated", "a lightweight tag"),
        ("stranger", "tag_signed", "a key that neither the policy nor the study names"),
        ("unsigned", "tag_signed", "the tag is not signed"),
        ("digest", "registration_frozen", "the digest in the tag is not that of the registration"),
    ],
)
def test_a_tag_that_pretends(forged: StudyEvidence, name: str, check: str, words: str) -> None:
    proof = judged(forged, f"reg/{name}/v1")
    assert proof.check.outcome is not Outcome.PROVEN
    found = checks(proof)[check]
    assert found.outcome is not Outcome.PROVEN
    assert words in found.reason


def test_a_commit_and_a_tag_dated_back(forged_root: Path, forged: StudyEvidence) -> None:
    """Their dates lie before the round; the server saw them pushed after it."""
    dates = (
        git(forged_root, "log", "-1", "--format=%ct", "reg/late/v1"),
        git(forged_root, "cat-file", "-p", "reg/late/v1"),
    )
    assert dates[0] == LONG_AGO.split()[0] and LONG_AGO in dates[1]
    proof = judged(forged, "reg/late/v1")
    found = outcomes(proof)
    assert found["tag_signed"] is found["registration_frozen"] is Outcome.PROVEN
    assert found["drawn_after_push"] is Outcome.REFUTED
    assert proof.status.name == "void"
    assert proof.failed


def test_two_annotated_tags_on_one_commit_harm_nothing(
    forged_root: Path, forged: StudyEvidence, github_clone: Path
) -> None:
    assert git(forged_root, "rev-parse", "v1.0^{commit}") == git(forged_root, "rev-parse", f"{SMALL}^{{commit}}")
    alone = judged(gather(github_clone, forged.policy))
    beside = judged(forged)
    assert outcomes(beside) == outcomes(alone)
    assert beside.status.name == "pre-registered"


def test_a_registration_dropped_from_the_study_is_listed(
    github_finished: Path, services: Hosts, tmp_path: Path
) -> None:
    root = copy_study(github_finished, tmp_path)
    git(root, "tag", "-d", SMALL)
    git(root, "rm", "-q", "registrations/small.v1.json")
    git(root, "commit", "-q", "-m", "never happened")
    evidence = gather(root, services.policy())
    assert [tag.name for tag in evidence.tags] == ["reg/all-miss-small/v1", SMALL]
    proof = judged(evidence)
    assert proof.check.outcome is Outcome.UNPROVABLE
    assert "the tag is not in the repository" in checks(proof)["tag_is_annotated"].reason


def test_commits_dropped_after_their_push_are_told(github_finished: Path, services: Hosts, tmp_path: Path) -> None:
    """The registration's history is gone by a force-push: the rows remain, and
    the attempts of something that is not there are a failure.
    """
    root = copy_study(github_finished, tmp_path)
    git(root, "tag", "-d", SMALL)
    git(root, "rm", "-q", "registrations/small.v1.json")
    bare = commit_without_history(root)
    git(root, "reflog", "expire", "--expire=now", "--all")
    git(root, "update-ref", "refs/remotes/origin/main", bare)
    evidence = gathered_online(root, services, services.policy())
    report = verify_study(evidence, root / "runs", "all-miss-small")
    assert report.unseen
    assert report.log_problems == ("attempts of reg/small/v1 are logged, and it has no tag",)
    assert report.exit_code == 1


def commit_without_history(root: Path) -> str:
    """Make the index a first commit, and main it."""
    one = git(root, "commit-tree", git(root, "write-tree"), "-m", "first")
    git(root, "update-ref", "refs/heads/main", one)
    return one


def test_two_registrations_of_one_id_and_version(github_finished: Path, services: Hosts, tmp_path: Path) -> None:
    root = copy_study(github_finished, tmp_path)
    true = (root / "registrations/small.v1.json").read_bytes()
    commit_file(root, "registrations/small.v1.json", true.replace(b"9000", b"8000"), "another small v1")
    commit_file(root, "registrations/small.v1.json", true, "the first one again")
    found = checks(judged(gather(root, services.policy())))["unchanged_at_head"]
    assert found.outcome is Outcome.REFUTED
    assert "2 different files were committed as reg/small/v1" in found.reason
    assert tag_of(gather(root, services.policy())).contents == 2


def test_an_attempts_log_cut_short(github_finished: Path, services: Hosts, tmp_path: Path) -> None:
    root = copy_study(github_finished, tmp_path)
    shorter = git(root, "rev-parse", "attempts~1")
    for ref in ("refs/heads/attempts", "refs/remotes/origin/attempts"):
        git(root, "update-ref", ref, shorter)
    found = checks(judged(gather(root, services.policy())))["attempts_log"]
    assert found.outcome is Outcome.REFUTED
    assert "the log does not hold what the witness saw pushed" in found.reason


def test_an_attempts_log_that_is_gone(github_finished: Path, services: Hosts, tmp_path: Path) -> None:
    root = copy_study(github_finished, tmp_path)
    for ref in git(root, "for-each-ref", "--format=%(refname)", "refs/heads/attempts", "refs/remotes").split():
        git(root, "update-ref", "-d", ref)
    report = verify_study(gather(root, services.policy()), root / "runs", "small")
    assert report.exit_code == 3
    assert len(report.proofs[-1].missing) == 6
