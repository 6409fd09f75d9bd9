"""Attacks by what is read: times, paths, bombs, markup; and line ends, which harm nothing."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from artifacts.reader import read_run_record, read_tables
from cli.render.verification import verification_text
from ledger.document import ledger_document
from ledger.markdown import ledger_markdown
from registry.errors import RecordError
from registry.timestamps import parse_timestamp
from registry.witness.archive import github_answers_path
from tests.registry.github_stub import reply
from tests.study.attacks import NOWHERE, checks, judged, outcomes
from tests.study.hosted import Hosts
from tests.study.test_attacks_tags import make_tag
from tests.support import command, commit_file, copy_study, git
from verifier.check import Outcome
from verifier.evidence import gather
from verifier.report import StudyReport, dumps, report_json
from verifier.verification import verify_study

RUN = "runs/small.v1/BURST/1.35/0/attempt-1"
DEEP = b"[" * 200_000
HOSTILE = "\x1b[31mred\x1b[0m \x07[bold]x[/bold] \u202egnp\u2066 <b>*one*</b> | `two` ![](http://x)\r\n# three"


@pytest.mark.parametrize(
    "text",
    [
        "2026-06-30T23:59:60Z",
        "2026-01-31T12:00:00",
        "2026-01-31T12:00:00+02:00",
        "2026-01-31 12:00:00Z",
        "2026-02-30T12:00:00Z",
        "2026-01-31T12:00:00.1234567Z",
    ],
)
def test_leap_seconds_and_naive_or_local_times_are_no_times(text: str) -> None:
    assert parse_timestamp(text) is None


@pytest.mark.parametrize("name", ["../turns.parquet", "/etc/passwd", "C:\\turns.parquet", "a/turns.parquet"])
def test_a_manifest_that_names_a_file_elsewhere(finished: Path, tmp_path: Path, name: str) -> None:
    fields = json.loads((finished / RUN / "run.json").read_text())
    fields["files"][name] = fields["files"].pop("turns.parquet")
    (tmp_path / "run.json").write_text(json.dumps(fields))
    with pytest.raises(RecordError, match="other files than a run has"):
        read_run_record(tmp_path)


def test_a_run_record_with_a_key_that_stands_twice(finished: Path, tmp_path: Path) -> None:
    text = (finished / RUN / "run.json").read_text()
    (tmp_path / "run.json").write_text(text.replace('"seed":', '"seed": 1, "seed":', 1))
    with pytest.raises(RecordError, match="a key stands twice"):
        read_run_record(tmp_path)


def test_a_table_that_is_a_link(finished: Path, tmp_path: Path) -> None:
    record = read_run_record(finished / RUN)
    for name in record.files:
        (tmp_path / name).symlink_to(finished / RUN / name)
    with pytest.raises(RecordError, match="a path leaves the study"):
        read_tables(tmp_path, record)


def test_line_ends_of_a_checkout_harm_nothing(finished: Path, tmp_path: Path) -> None:
    """Even where every text file is checked out with CRLF: only the run files' own bytes are read from disk."""
    remote = str(finished.with_name("study-remote.git"))
    git(tmp_path, "clone", "-q", "--no-checkout", "-c", "core.autocrlf=true", remote, "clone")
    clone = tmp_path / "clone"
    (clone / ".git/info/attributes").write_text("* text eol=crlf\nruns/** -text\n")
    git(clone, "checkout", "-q", "main")
    git(clone, "fetch", "-q", "origin", "attempts")
    for name in ("study.yaml", "rules/small.yaml"):
        assert b"\r\n" in (clone / name).read_bytes()
    done = command(clone, "verify", "small")
    assert done.code == 0, done.text


@pytest.mark.parametrize(
    "bomb",
    [DEEP, b"{a: " * 50_000, b"a: &a [x]\nb: [*a, *a]\n", b"x: " + b"y" * 2_000_000, b"\xff\xfe", b"- 1\n" * 300_000],
    ids=["lists", "maps", "aliases", "size", "bytes", "values"],
)
def test_a_bomb_for_study_yaml_ends_in_words(finished: Path, tmp_path: Path, bomb: bytes) -> None:
    git(tmp_path, "init", "-q", "-b", "main", "study")
    (tmp_path / "study/study.yaml").write_bytes(bomb)
    git(tmp_path / "study", "add", "study.yaml")
    git(tmp_path / "study", "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "-m", "bomb")
    done = command(tmp_path / "study", "verify")
    assert done.code == 2
    assert "study.yaml" in done.err and "Traceback" not in done.text


def test_bombs_in_the_study_s_json_pass_nothing(github_finished: Path, services: Hosts, tmp_path: Path) -> None:
    root = copy_study(github_finished, tmp_path)
    commit_file(root, "registrations/bomb.v1.json", DEEP)
    make_tag(root, "reg/bomb/v1", git(root, "rev-parse", "HEAD"), "0" * 64)
    commit_file(root, github_answers_path("reg-bomb.v1"), DEEP)
    evidence = gather(root, services.policy())
    bomb = judged(evidence, "reg/bomb/v1")
    assert bomb.check.outcome is not Outcome.PROVEN and bomb.registration is None
    assert "nested" in checks(bomb)["registration_frozen"].reason
    small = checks(judged(evidence))["push_witnessed"]
    assert small.outcome is Outcome.REFUTED
    assert github_answers_path("reg-bomb.v1") in small.reason


def test_bombs_in_github_s_answers_pass_nothing(github_clone: Path, services: Hosts) -> None:
    from cli.workflows.online import ask_witnesses

    policy = services.policy(timestamp_roots=None)
    services.github.faults.append(reply(200, DEEP))
    proof = judged(gather(github_clone, policy, ask_witnesses))
    services.github.faults.clear()
    assert proof.status.name == "registered"
    assert outcomes(proof)["independently_witnessed"] is Outcome.UNPROVABLE


@pytest.fixture(scope="module")
def defaced(finished: Path) -> StudyReport:
    """A report in which every text of the author's is hostile."""
    evidence = gather(finished)
    tags = []
    for tag in evidence.tags:
        assert tag.registration is not None
        source = {**tag.registration.draft.source, "blindness": HOSTILE, "caveats": [HOSTILE], "deviations": [HOSTILE]}
        draft = dataclasses.replace(tag.registration.draft, title=HOSTILE, question=HOSTILE, source=source)
        registration = dataclasses.replace(tag.registration, draft=draft)
        tags.append(dataclasses.replace(tag, registration=registration, problem=HOSTILE))
    logs = tuple(dataclasses.replace(log, source=HOSTILE, problem=HOSTILE) for log in evidence.logs)
    settings = dataclasses.replace(evidence.settings, name=HOSTILE)
    return verify_study(dataclasses.replace(evidence, tags=tuple(tags), logs=logs, settings=settings), NOWHERE)


HIDDEN = "\x1b\x07\u202e\u2066\r"


def test_markup_and_controls_reach_no_terminal(defaced: StudyReport) -> None:
    shown = verification_text(defaced)
    assert not set(HIDDEN) & set(shown)
    assert "U+001B[31mred" in shown and "U+202Egnp" in shown and "[bold]x[/bold]" in shown


def test_markup_and_controls_reach_no_ledger(defaced: StudyReport) -> None:
    page = ledger_markdown(ledger_document(defaced))
    assert not set(HIDDEN) & set(page)
    assert "red" in page
    assert all(words not in page for words in ("<b>", " *one*", "![](", "\n# three"))


def test_controls_are_escaped_in_json(defaced: StudyReport) -> None:
    text = dumps(report_json(defaced))
    assert not set(HIDDEN) & set(text)
    assert json.loads(text)["proofs"][0]["title"] == HOSTILE
