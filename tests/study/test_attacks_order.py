"""Attacks on the order of things: who saw what, when, and whose word it is."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cli.workflows.online import ask_witnesses
from registry.canonical import canonical_bytes
from registry.mirror import mirror_of
from registry.plan import plan_key
from registry.registration import read_registration
from registry.witness.archive import GITHUB_FOLDER, beacon_path, timestamp_path
from registry.witness.rows import PushRow
from tests.drand_stub import DrandStub
from tests.study.attacks import (
    SMALL,
    answering,
    checks,
    gathered_online,
    judged,
    main_not_before,
    outcomes,
    rows_of_github,
    shifted,
    tag_of,
)
from tests.study.hosted import REPOSITORY, Hosts, clone_of
from tests.support import commit_file, copy_study, git
from tests.tsa_stub import certificate, pem
from verifier.check import Outcome
from verifier.draws import draw_of
from verifier.evidence import StudyEvidence, gather
from verifier.stamps import Tagged, signed_sightings
from verifier.witness_checks import check_beacon


@pytest.fixture
def asked(github_clone: Path, services: Hosts) -> StudyEvidence:
    """The study as GitHub alone proves it."""
    return gathered_online(github_clone, services, services.policy(timestamp_roots=None))


def status(evidence: StudyEvidence) -> str:
    return judged(evidence).status.name


def test_what_github_saw_in_time_is_pre_registered(asked: StudyEvidence) -> None:
    proof = judged(asked)
    assert proof.status.name == "pre-registered"
    assert outcomes(proof)["push_witnessed"] is outcomes(proof)["independently_witnessed"] is Outcome.PROVEN


@pytest.mark.parametrize(("late_s", "expected"), [(-1e-6, "pre-registered"), (0, "void"), (1e-6, "void"), (1, "void")])
def test_a_push_at_its_round_or_later(
    github_clone: Path, services: Hosts, asked: StudyEvidence, late_s: float, expected: str
) -> None:
    out_at = str(tag_of(asked).draw.out_at)
    late = gathered_online(github_clone, services, asked.policy, main_not_before(shifted(out_at, late_s)))
    proof = judged(late)
    assert proof.status.name == expected
    assert proof.failed or late_s < 0
    assert (outcomes(proof)["drawn_after_push"] is Outcome.PROVEN) == (late_s < 0)


def test_rows_left_out_of_github_s_answer(github_clone: Path, services: Hosts, asked: StudyEvidence) -> None:
    def without(row: PushRow) -> PushRow | None:
        return None if row.ref == "refs/heads/main" else row

    proof = judged(gathered_online(github_clone, services, asked.policy, without))
    assert proof.status.name == "registered"
    assert outcomes(proof)["independently_witnessed"] is Outcome.UNPROVABLE


def test_another_repository_under_the_study_s_name(github_clone: Path, services: Hosts, asked: StudyEvidence) -> None:
    rows = answering(rows_of_github(services), services.github.number + 1)
    proof = judged(gather(github_clone, asked.policy, rows))
    assert outcomes(proof)["independently_witnessed"] is Outcome.UNPROVABLE
    assert proof.status.name == "registered"


def test_a_force_push_after_the_row_undoes_nothing(github_clone: Path, services: Hosts, asked: StudyEvidence) -> None:
    rows = rows_of_github(services)
    last = max(row.timestamp for row in rows)
    forced = dataclasses.replace(rows[0], id=999, timestamp=last, after="f" * 40, activity_type="force_push")
    evidence = gather(github_clone, asked.policy, answering((*rows, forced), services.github.number))
    assert outcomes(judged(evidence)) == outcomes(judged(asked))
    assert status(evidence) == "pre-registered"


def test_a_renamed_repository_keeps_its_number(
    github_clone: Path, services: Hosts, asked: StudyEvidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub, real = services.github, services.github.answer

    def moved(verb: str, url: str, content: Any) -> tuple[int, Any, dict[str, str]]:
        old = f"/repos/{REPOSITORY}"
        if not url.startswith(old):
            return real(verb, url, content)
        return 301, {"message": "Moved"}, {"Location": f"{stub.api}/repositories/{stub.number}{url[len(old) :]}"}

    monkeypatch.setattr(stub, "answer", moved)
    assert outcomes(judged(gather(github_clone, asked.policy, ask_witnesses))) == outcomes(judged(asked))


@pytest.fixture(scope="module")
def squashed(github_finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study's main as one commit; the tagged ones are reached by tags only."""
    root = copy_study(github_finished, tmp_path_factory.mktemp("squashed"))
    one = git(root, "commit-tree", "HEAD^{tree}", "-m", "squashed")
    git(root, "update-ref", "refs/heads/main", one)
    git(root, "push", "-q", "--force", "origin", "main")
    return root


@pytest.mark.parametrize(("seen_on_its_branch", "expected"), [(True, "pre-registered"), (False, "registered")])
def test_a_squash_merge_rests_on_the_row_of_its_branch(
    squashed: Path, services: Hosts, asked: StudyEvidence, seen_on_its_branch: bool, expected: str
) -> None:
    """Without that row no witness ever held the commit: a force-push dropped it."""
    services.github.bare = squashed.with_name("study-remote.git")
    one = git(squashed, "rev-parse", "main")

    def change(row: PushRow) -> PushRow | None:
        if row.ref != "refs/heads/main" or row.after == one:
            return dataclasses.replace(row, activity_type="push")
        return dataclasses.replace(row, ref="refs/heads/draft") if seen_on_its_branch else None

    proof = judged(gathered_online(squashed, services, asked.policy, change))
    assert proof.status.name == expected
    assert (outcomes(proof)["independently_witnessed"] is Outcome.PROVEN) == seen_on_its_branch


@pytest.mark.parametrize(
    "unnamed", [("github_apis", "timestamp_roots"), ("timestamp_roots", "github_apis"), ("drand_chains",)]
)
def test_what_only_the_study_names_earns_no_trust(
    github_clone: Path, services: Hosts, unnamed: tuple[str, ...]
) -> None:
    before = len(services.github.asked)
    proof = judged(gather(github_clone, services.policy(**dict.fromkeys(unnamed)), ask_witnesses))
    assert proof.status.name == "registered"
    assert outcomes(proof)["independently_witnessed"] is Outcome.UNPROVABLE
    assert (len(services.github.asked) == before) == ("github_apis" in unnamed)


def test_a_root_of_another_authority(github_clone: Path, services: Hosts) -> None:
    policy = services.policy(timestamp_roots=[pem(certificate("Another", authority=True)[0])])
    proof = judged(gather(github_clone, policy))
    assert proof.status.name == "registered"
    assert "root that the policy trusts" in checks(proof)["independently_witnessed"].reason


def test_a_token_for_another_digest(github_clone: Path, services: Hosts) -> None:
    evidence = gather(github_clone, services.policy())
    tag = tag_of(evidence)
    other = (github_clone / timestamp_path("reg/all-miss-small/v1", 1)).read_bytes()
    assert tag.oid and tag.tag and tag.registration
    tagged = Tagged(SMALL, tag.oid, tag.tag.commit, tag.registration.digest)
    seen, unusable = signed_sightings(tagged, lambda path: other, evidence.policy, None)
    assert seen == []
    assert "another digest" in unusable[0]


@pytest.fixture
def archive(github_finished: Path, tmp_path: Path, services: Hosts) -> Path:
    """A study whose author made GitHub's archived rows a day older, bodies and all."""
    root = copy_study(github_finished, tmp_path)
    for path in sorted((root / GITHUB_FOLDER).glob("*.json")):
        value = json.loads(path.read_bytes())
        for answer in value["answers"]:
            if "/activity" in answer["path"]:
                rows = [row | {"timestamp": shifted(row["timestamp"], -86400)} for row in json.loads(answer["body"])]
                answer["body"] = json.dumps(rows)
        commit_file(root, f"{GITHUB_FOLDER}/{path.name}", canonical_bytes(value))
    return clone_of(root, tmp_path)


def test_archived_answers_edited_with_all_that_binds_them(archive: Path, services: Hosts) -> None:
    policy = services.policy(timestamp_roots=None)
    offline = judged(gather(archive, policy))
    assert outcomes(offline)["independently_witnessed"] is Outcome.UNPROVABLE
    online = judged(gather(archive, policy, answering(rows_of_github(services), services.github.number)))
    assert "is not what GitHub answers now" in checks(online)["push_witnessed"].reason
    assert online.failed


def test_a_beacon_of_another_chain_or_round(github_clone: Path, services: Hosts, asked: StudyEvidence) -> None:
    registration = tag_of(asked).registration
    assert registration is not None
    number, chain = registration.beacon.round, services.drand.chain
    with DrandStub(secret=99) as stranger:
        forgeries = [
            ("holds round", services.drand.answer(number + 1)),
            ("holds round", services.drand.answer(number).replace(b'"round": ', b'"round": 1')),
            ("signature", stranger.answer(number)),
            ("signature", services.drand.answer(number + 1).replace(str(number + 1).encode(), str(number).encode())),
            ("names no round", b'{"round":1e3}'),
        ]
    for words, data in forgeries:
        draw = draw_of(registration, asked.logs, {beacon_path(chain.chain_hash, number): data}.get, asked.policy)
        assert draw.value is None and words in str(draw.refuted)
        forged = dataclasses.replace(tag_of(asked), draw=draw)
        assert check_beacon(registration, draw, forged).outcome is Outcome.REFUTED


def test_seeds_of_the_author_s_own_choice_give_other_plans(asked: StudyEvidence) -> None:
    tag = tag_of(asked)
    assert tag.registration and tag.draw.value
    drawn = tag.registration.plan_key(0, tag.draw.value)
    promise = tag.registration.beacon
    for key in (plan_key("", 0, "", 0), plan_key(tag.registration.digest, promise.round, "00" * 48, 0)):
        assert key != drawn


def test_a_thousand_candidate_commits_have_one_plan(github_finished: Path, tmp_path: Path, services: Hosts) -> None:
    root = copy_study(github_finished, tmp_path)
    tree = git(root, "rev-parse", f"{SMALL}^{{tree}}")
    text = b"".join(
        b"commit refs/heads/c%d\ncommitter A <a@example.org> %d +0000\ndata 0\nM 040000 %s \n\n" % (n, n, tree.encode())
        for n in range(1000)
    )
    subprocess.run(["git", "fast-import", "--quiet"], cwd=root, input=text, check=True)
    commits = set(git(root, "for-each-ref", "--format=%(objectname)", "refs/heads/c*").split())
    evidence = gather(root, services.policy())
    tag = tag_of(evidence)
    assert len(commits) == 1000 and tag.registration and tag.tag and tag.draw.value
    files = set(git(root, "rev-parse", *(f"{commit}:{tag.registration.file}" for commit in commits)).split())
    assert len(files) == 1
    (same,) = files
    assert same == git(root, "rev-parse", f"{SMALL}:{tag.registration.file}")
    with mirror_of(root) as mirror:
        frozen = {mirror.blob(commit, tag.registration.file) for commit in commits}
    (again,) = [read_registration(data, "candidate") for data in frozen if data]
    assert again.plan_key(0, tag.draw.value) == tag.registration.plan_key(0, tag.draw.value)
