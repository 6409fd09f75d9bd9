"""What each witness of a claim can and cannot show."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.witness.github import GitHubClient
from registry.witness.github_answers import Answer as Answered
from registry.witness.github_archive import archive_bytes
from registry.witness.local import create_remote
from tests.loopback import Answer, LoopbackServer
from tests.registry import github_forms as forms
from tests.registry.github_stub import GitHubStub
from tests.support import Result, command, git

ROOT = Path(__file__).parents[2]
PUSHED, LATER, EARLIER = "2026-11-05T06:24:47Z", "2026-11-06T06:24:47Z", "2026-11-05T06:00:00Z"
RUN = {"name": "seed 0", "started_at": "2026-11-05T12:00:00Z", "source": "Slurm's accounting"}
HOUR = "2026-11-05-6.json.gz"
Checks = dict[str, tuple[str, str]]


@dataclasses.dataclass
class Scene:
    """Three commits in a line, the second of them tagged, and a stub of GitHub."""

    folder: Path
    first: str
    tagged: str
    last: str
    github: GitHubStub

    def audit(self, *options: str, policy: dict[str, Any] | None = None, **changes: Any) -> Result:
        github = {"repository": self.github.repository, "api": self.github.api} | changes.pop("github", {})
        claim = {"id": "pred", "tag": "pred", "commit": self.tagged, "pushed": {"time": PUSHED}, "runs": [RUN]}
        claims = [{key: value for key, value in (claim | changes).items() if value is not None}]
        text = {"schema": "trap-claims-1", "title": "A paper", "source": "its page", "github": github, "claims": claims}
        (self.folder / "claims.yaml").write_text(yaml.safe_dump(text))
        trusted = {"schema": "trap-policy-1", "github_apis": [self.github.api]} | (policy or {})
        (self.folder / "policy.yaml").write_text(yaml.safe_dump(trusted))
        named = ["--repository", "work", "--policy", "policy.yaml", "--json"]
        return command(self.folder, "audit", "claims.yaml", *named, *options)

    def checks(self, *options: str, **changes: Any) -> tuple[int, Checks]:
        done = self.audit(*options, **changes)
        assert done.code in (0, 1, 3), done.text
        (proof,) = json.loads(done.out)["proofs"]
        found = {check["name"]: (check["outcome"], check["reason"]) for check in proof["check"]["children"]}
        return done.code, found | {"status": (proof["status"]["name"], proof["status"]["reason"])}

    def answers(self, time: str = PUSHED, **changes: Any) -> str:
        """A file of archived answers that shows the push at `time`; its name."""
        says = {"api": self.github.api, "repository": self.github.repository, "number": self.github.number} | changes
        row = forms.activity(1, "0" * 40, self.tagged, "refs/heads/main", time)
        path = f"/repos/{says['repository']}"
        answers = [
            Answered(path, 200, json.dumps(forms.repository(says["repository"], says["number"]))),
            Answered(f"{path}/activity?per_page=100", 200, json.dumps([row])),
        ]
        data = archive_bytes(says["api"], says["repository"], says["number"], answers)
        (self.folder / "answers.json").write_bytes(data)
        return "answers.json"

    def hour(self, time: str, before: str = "0" * 40) -> bytes:
        """An hour of GH Archive with the push."""
        payload = {"push_id": 9, "ref": "refs/heads/main", "head": self.tagged, "before": before}
        repository = {"id": self.github.number, "name": "octo/paper"}
        event = {"id": "1", "type": "PushEvent", "repo": repository, "payload": payload, "created_at": time}
        return gzip.compress(json.dumps(event).encode() + b"\n")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    work = tmp_path_factory.mktemp("claims") / "work"
    git(work.parent, "init", "-q", "-b", "main", str(work))
    git(work, "config", "user.email", "a@example.org")
    git(work, "config", "user.name", "a")
    commits = []
    for message in ("first", "tagged", "last"):
        git(work, "commit", "-q", "--allow-empty", "-m", message)
        commits.append(git(work, "rev-parse", "HEAD"))
    git(work, "tag", "-a", "pred", "-m", "frozen", commits[1])
    git(work, "tag", "-a", "of-a-tag", "-m", "a tag of a tag", "pred")
    return work.parent, commits


@pytest.fixture
def scene(history: tuple[Path, list[str]]) -> Iterator[Scene]:
    folder, (first, tagged, last) = history
    with GitHubStub("octo/paper") as github:
        yield Scene(folder, first, tagged, last, github)


def test_a_push_that_brought_the_commit_proves_its_time_and_its_order(scene: Scene) -> None:
    scene.github.push(scene.first, EARLIER)
    scene.github.push(scene.tagged, PUSHED, before=scene.first)
    scene.github.push(scene.last, LATER, before=scene.tagged)
    code, checks = scene.checks("--online")
    assert code == 0 and checks["status"][0] == "pre-registered"
    assert checks["push_witnessed"][1].startswith(f"pushed {PUSHED}")
    assert "the claimant's word, the first that of seed 0, from Slurm's accounting" in checks["before_first_run"][1]


def test_a_push_that_brought_the_commit_late_refutes_both(scene: Scene) -> None:
    scene.github.push(scene.first, EARLIER)
    scene.github.push(scene.tagged, LATER, before=scene.first)
    code, checks = scene.checks("--online")
    assert code == 1 and checks["status"][0] == "retrospective"
    assert checks["pushed_when_claimed"] == (
        "REFUTED",
        f"claimed {PUSHED}, GitHub ({scene.github.api[7:]}) says {LATER}: 86400 s later, allowed were 1 s",
    )
    assert checks["before_first_run"][0] == "REFUTED"


@pytest.mark.parametrize("before", ["tagged", "unknown"])
def test_a_log_without_its_beginning_shows_only_a_latest_time(scene: Scene, before: str) -> None:
    """A true claim is not refuted because the row of its push is missing."""
    scene.github.push(scene.last, LATER, before=scene.tagged if before == "tagged" else "e" * 40)
    code, checks = scene.checks("--online")
    assert code == 3 and checks["status"][0] == "registered"
    assert checks["push_witnessed"][1].startswith(f"pushed by {LATER}")
    for name in ("pushed_when_claimed", "before_first_run"):
        assert checks[name][0] == "UNPROVABLE" and "may have been pushed earlier" in checks[name][1]


def test_a_latest_time_before_the_claimed_one_refutes_it(scene: Scene) -> None:
    scene.github.push(scene.last, EARLIER, before=scene.tagged)
    code, checks = scene.checks("--online")
    assert code == 1 and checks["pushed_when_claimed"][0] == "REFUTED"
    assert checks["before_first_run"][0] == "PROVEN"


def test_a_later_branch_of_a_log_without_its_beginning_is_no_first_push(scene: Scene) -> None:
    scene.github.push("d" * 40, EARLIER, before="e" * 40)
    scene.github.push(scene.last, LATER, ref="other")
    assert scene.checks("--online")[1]["pushed_when_claimed"][0] == "UNPROVABLE"


def test_a_commit_status_is_a_latest_time(scene: Scene) -> None:
    scene.github.statuses[scene.tagged] = [forms.status(1, scene.tagged, "ci", "passed", LATER)]
    code, checks = scene.checks("--online")
    assert code == 3 and checks["push_witnessed"][0] == "PROVEN"
    assert checks["pushed_when_claimed"][0] == checks["before_first_run"][0] == "UNPROVABLE"
    scene.github.statuses[scene.tagged] = [forms.status(1, scene.tagged, "ci", "passed", PUSHED)]
    code, checks = scene.checks("--online")
    assert checks["before_first_run"][0] == "PROVEN" and checks["pushed_when_claimed"][0] == "UNPROVABLE"


def test_a_real_repository_s_pushes(scene: Scene, tmp_path: Path) -> None:
    bare = tmp_path / "paper.git"
    create_remote(bare)
    for commit in (scene.first, scene.tagged, scene.last):
        git(scene.folder / "work", "push", "-q", str(bare), f"{commit}:refs/heads/main")
    scene.github.follow(bare)
    time = next(row["timestamp"] for row in scene.github.rows if row["after"] == scene.tagged)
    after = {"name": "r", "started_at": "2126-01-01T00:00:00Z"}
    code, checks = scene.checks("--online", pushed={"time": time, "within_s": 0}, runs=[after])
    assert code == 0, checks
    code, checks = scene.checks(
        "--online", pushed={"time": time}, runs=[after | {"started_at": "2000-01-01T00:00:00Z"}]
    )
    assert code == 1 and checks["before_first_run"][0] == "REFUTED" and checks["pushed_when_claimed"][0] == "PROVEN"


@pytest.mark.parametrize("tag", ["gone", "pred"])
def test_no_status_is_claimed_for_what_is_not_there(scene: Scene, tag: str) -> None:
    """Nor for a tag of another commit, however early that was pushed."""
    scene.github.push(scene.last, PUSHED)
    _, checks = scene.checks("--online", tag=tag, commit=scene.first)
    assert checks["status"][0] == "exploratory" and checks["push_witnessed"][0] == "UNPROVABLE"
    assert checks["before_first_run"][0] == "UNPROVABLE"


def test_a_push_that_nobody_saw_is_not_said_to_have_happened(scene: Scene) -> None:
    _, checks = scene.checks(runs=None)
    assert checks["status"] == ("registered", "committed, but no witness saw the push")


def test_words_without_a_start_prove_no_order(scene: Scene) -> None:
    scene.github.push(scene.tagged, PUSHED)
    code, checks = scene.checks("--online", runs=None, before="its jobs")
    assert code == 3 and checks["status"][0] == "registered"
    assert checks["before_first_run"] == ("UNPROVABLE", "claimed before its jobs, without any run's start")


def test_a_tag_of_a_tag_leads_to_the_commit(scene: Scene) -> None:
    _, checks = scene.checks(tag="of-a-tag", tag_kind="annotated")
    assert checks["commit_is"][0] == checks["tag_is_annotated"][0] == "PROVEN"


def test_without_a_network_it_is_unprovable_and_says_why(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.workflows.github.GitHubClient", functools.partial(GitHubClient, sleep=lambda _: None))
    gone = GitHubStub("octo/paper")
    gone._server.server_close()
    scene.github, kept = gone, scene.github
    code, checks = scene.checks("--online")
    scene.github = kept
    assert code == 3 and "asked: " in checks["push_witnessed"][1]


def test_another_repository_of_that_name_says_nothing(scene: Scene) -> None:
    scene.github.push(scene.tagged, PUSHED)
    code, checks = scene.checks("--online", github={"repository_id": 5})
    assert code == 3 and "has this name now" in checks["push_witnessed"][1]


def test_archived_answers_are_a_copy(scene: Scene) -> None:
    code, checks = scene.checks("--answers", scene.answers())
    assert code == 3 and checks["status"][0] == "registered"
    assert checks["push_witnessed"][0] == "UNPROVABLE" and "ask again with --online" in checks["push_witnessed"][1]
    assert "the same: a copy" in checks["pushed_when_claimed"][1]
    assert checks["before_first_run"][0] == "UNPROVABLE"


def test_archived_answers_that_github_contradicts_are_refuted(scene: Scene) -> None:
    scene.github.push(scene.tagged, LATER)
    code, checks = scene.checks("--online", "--answers", scene.answers())
    assert code == 1
    assert checks["push_witnessed"] == ("REFUTED", "row 1 of the archived answers is not what GitHub answers now")


@pytest.mark.parametrize("changes", [{"repository": "octo/other"}, {"api": "http://127.0.0.1:9"}])
def test_archived_answers_of_another_repository_are_refused(scene: Scene, changes: dict[str, str]) -> None:
    done = scene.audit("--answers", scene.answers(**changes))
    assert done.code == 2 and "about another repository" in done.err


@pytest.mark.parametrize("data", [b"", b"[" * 100_000, b'{"schema": "trap-github-answers-1"}'])
def test_malformed_answers_are_refused_in_words(scene: Scene, data: bytes) -> None:
    (scene.folder / "bad.json").write_bytes(data)
    done = scene.audit("--answers", "bad.json")
    assert done.code == 2 and "bad.json" in done.err and "Traceback" not in done.text


@pytest.mark.parametrize(
    ("time", "before", "outcome"),
    [(PUSHED, "0" * 40, "PROVEN"), (LATER, "0" * 40, "UNPROVABLE"), (EARLIER, "0" * 40, "REFUTED")],
)
def test_gh_archive_has_gaps(scene: Scene, tmp_path: Path, time: str, before: str, outcome: str) -> None:
    """A later row may be another push of the same commit; an earlier one may not."""
    (tmp_path / HOUR).write_bytes(scene.hour(time, before))
    numbered = {"repository_id": scene.github.number}
    _, checks = scene.checks("--gh-archive", str(tmp_path), github=numbered)
    assert checks["pushed_when_claimed"][0] == outcome, checks
    assert checks["before_first_run"][0] == ("UNPROVABLE" if time == LATER else "PROVEN")


def test_gh_archive_without_a_number_or_hours_says_so(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / HOUR).write_bytes(scene.hour(PUSHED))
    code, checks = scene.checks("--gh-archive", str(tmp_path))
    assert code == 3 and "add repository_id to the claims" in checks["push_witnessed"][1]
    code, checks = scene.checks("--gh-archive", str(tmp_path / "none"), github={"repository_id": 1})
    assert code == 3 and "no hours are in the folder" in checks["push_witnessed"][1]


def test_the_claimed_hour_is_fetched_online(scene: Scene, tmp_path: Path) -> None:
    data = scene.hour(PUSHED)
    with LoopbackServer(lambda _: Answer(body=data, kind="application/gzip")) as archive:
        policy = {"gh_archive": archive.url}
        code, checks = scene.checks("--online", "--gh-archive", str(tmp_path), policy=policy)
        assert [question.path for question in archive.questions] == [f"/{HOUR}"]
    assert code == 0 and "GH Archive says" in checks["pushed_when_claimed"][1]


def test_an_hour_that_cannot_be_fetched_is_told(scene: Scene, tmp_path: Path) -> None:
    with LoopbackServer(lambda _: Answer(404)) as archive:
        _, checks = scene.checks("--online", "--gh-archive", str(tmp_path), policy={"gh_archive": archive.url})
    assert HOUR in checks["push_witnessed"][1]


def test_an_empty_repository_proves_nothing_and_no_repository_is_an_error(scene: Scene, tmp_path: Path) -> None:
    claims = str(ROOT / "docs/examples/paper-claims.yaml")
    (tmp_path / "plain").mkdir()
    git(tmp_path, "init", "-q", "-b", "main", "empty")
    done = command(tmp_path, "audit", claims, "--repository", "empty")
    assert done.code == 3 and done.out.rstrip().endswith("5 proofs, 0 failures")
    assert command(tmp_path, "audit", claims, "--repository", "plain").code == 2
    assert command(tmp_path, "audit", "gone.yaml", "--repository", "empty").code == 2
