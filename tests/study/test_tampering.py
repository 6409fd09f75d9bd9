"""Each way of tampering with a finished study is caught, with the right words."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support import command, commit_file, git, push_log

RUN = "runs/small.v1/BURST/1.35/0/attempt-1"


def test_an_untouched_study_is_proven(study: Path) -> None:
    result = command(study, "verify")
    assert result.code == 0, result.text
    assert result.out.splitlines()[-1] == "2 proofs, 0 failures"


def test_a_changed_cell_of_a_table(study: Path) -> None:
    path = study / RUN / "turns.parquet"
    table = pq.read_table(path)
    column = table.schema.get_field_index("cached_tokens")
    changed = pc.add(table.column(column), pc.if_else(pc.equal(table.column("turn"), 2), 1, 0))
    pq.write_table(table.set_column(column, table.schema.field(column), changed.cast("int64")), path)
    result = command(study, "verify")
    assert result.code == 1
    assert "turns.parquet" in result.out and "differs from the digest in run.json" in result.out
    assert result.out.splitlines()[-1] == "2 proofs, 1 failures"


def test_an_edited_run_record(study: Path) -> None:
    path = study / RUN / "run.json"
    record = json.loads(path.read_text())
    record["started_at"] = "2020-01-01T00:00:00.000000Z"
    path.write_text(json.dumps(record))
    result = command(study, "verify")
    assert result.code == 1
    assert "run.json differs from the digest in its pushed result record" in result.out


def test_a_tag_moved_and_pushed_again(study: Path) -> None:
    payload = git(study, "cat-file", "tag", "reg/small/v1")
    old = git(study, "rev-parse", "reg/small/v1^{commit}")
    moved = payload.replace(old, git(study, "rev-parse", "HEAD")).encode()
    (study / "moved").write_bytes(moved + b"\n")
    oid = git(study, "hash-object", "-t", "tag", "-w", "moved")
    git(study, "update-ref", "refs/tags/reg/small/v1", oid)
    git(study, "push", "-q", "--force", "origin", "refs/tags/reg/small/v1")
    result = command(study, "verify")
    assert result.code == 1
    assert "the tag was moved to another object" in result.out
    assert "the signature does not fit the tag" in result.out


def test_a_tag_deleted_and_pushed_again(study: Path) -> None:
    git(study, "push", "-q", "origin", ":refs/tags/reg/small/v1")
    git(study, "push", "-q", "origin", "refs/tags/reg/small/v1")
    result = command(study, "verify")
    assert result.code == 1
    assert "the tag was deleted" in result.out


def test_a_tag_deleted_for_good(study: Path) -> None:
    git(study, "tag", "-d", "reg/small/v1")
    result = command(study, "verify")
    assert result.code == 1
    assert "the witness saw reg/small/v1 pushed, and the tag is not in the repository" in result.out


def test_a_lightweight_tag_is_no_tag_object(study: Path) -> None:
    git(study, "update-ref", "refs/tags/reg/other/v1", git(study, "rev-parse", "HEAD"))
    result = command(study, "verify")
    assert result.code == 3
    assert "a lightweight tag, not a tag object" in result.out


def test_a_registration_changed_at_head(study: Path) -> None:
    path = study / "registrations" / "small.v1.json"
    commit_file(study, "registrations/small.v1.json", path.read_bytes().replace(b"9000", b"8000"))
    result = command(study, "verify")
    assert result.code == 1
    assert "the registration at the study's head differs from the tagged one" in result.out


def test_an_edited_draft_changes_nothing(study: Path) -> None:
    path = study / "rules" / "small.yaml"
    commit_file(study, "rules/small.yaml", path.read_text().replace("value: 9000", "value: 8000"))
    assert command(study, "verify").code == 0


def test_a_run_deleted_after_its_result(study: Path) -> None:
    for file in (study / RUN).iterdir():
        file.unlink()
    (study / RUN).rmdir()
    result = command(study, "verify")
    assert result.code == 1
    assert "the run is gone" in result.out


def test_run_files_that_are_nowhere_are_unprovable(study: Path) -> None:
    (study / "runs").rename(study / "elsewhere")
    result = command(study, "verify")
    assert result.code == 3
    assert "no source of run files" in result.out
    assert command(study, "verify", "--runs", "elsewhere").code == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "a Git LFS pointer stands in"),
        (b"not parquet at all", "differs from the digest"),
    ],
)
def test_something_else_in_a_table_s_place(study: Path, content: bytes, words: str) -> None:
    (study / RUN / "turns.parquet").write_bytes(content)
    result = command(study, "verify")
    assert result.code == 1
    assert words in result.out


def test_a_path_that_leaves_the_study(study: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (study / RUN).rename(outside)
    (study / RUN).symlink_to(outside)
    result = command(study, "verify")
    assert result.code == 1
    assert "a path leaves the study" in result.out


def test_a_rewritten_attempts_log(study: Path) -> None:
    first = git(study, "rev-list", "--max-parents=0", "attempts")
    git(study, "push", "-q", "--force", "origin", f"{first}:refs/heads/attempts")
    result = command(study, "verify")
    assert result.code == 1
    assert "the log's branch was rewritten" in result.out


def test_a_recreated_witness_log(study: Path) -> None:
    git(study, "fetch", "-q")
    log = study.with_name("study-remote.git") / "trap-witness" / "push-log.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    for row in rows[:3]:
        row["timestamp"] = "2020-01-01T00:00:00.000000Z"
    log.write_bytes(push_log(rows))
    result = command(study, "verify")
    assert result.code == 1
    assert "the archived push log is not the beginning of the witness's own" in result.out


def test_an_edited_row_breaks_the_witness_log(study: Path) -> None:
    log = study.with_name("study-remote.git") / "trap-witness" / "push-log.jsonl"
    log.write_bytes(log.read_bytes().replace(b"branch_creation", b"push", 1))
    result = command(study, "verify", "--json")
    assert result.code == 1
    assert "the push log's chain is broken" in result.out


def test_a_shallow_clone_is_refused(study: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{study}", "shallow")
    result = command(tmp_path / "shallow", "verify")
    assert result.code == 2
    assert "shallow or grafted" in result.err


def test_a_clone_without_the_remote_verifies_from_the_archive(study: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(study), "clone")
    git(tmp_path / "clone", "remote", "set-url", "origin", "https://127.0.0.1:1/nothing.git")
    result = command(tmp_path / "clone", "verify")
    assert result.code == 0, result.text
    assert "archived by the author" in result.out
