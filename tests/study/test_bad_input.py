"""Bad input: a clear message, the right exit code, never a traceback."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from registry.errors import CapExceeded
from tests.support import SMALL_CALIBRATION, Result, command, commit_file, copy_study, empty_study, git
from verifier.evidence import gather
from verifier.verification import verify_study

RULE = "rules/all-miss-small.yaml"
CELL_WITHOUT_COSTS = """schema: trap-cell-1
name: real-only
engine: vllm
engine_version: "1"
model: a model
gpu: a gpu
pool_tokens: 300000
cache_block_tokens: 16
constants: []
"""
AUTHOR = (
    ("register", RULE),
    ("draw", "small"),
    ("run", "small"),
    ("show", "small"),
    ("status",),
    ("verify",),
    ("ledger",),
)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with nothing registered; tests that change it copy it."""
    return empty_study(tmp_path_factory.mktemp("bare"))


def refused(result: Result, *words: str) -> None:
    assert result.code == 2, result.text
    assert "Traceback" not in result.text
    assert result.err.startswith("error: ")
    for word in words:
        assert word in result.err, result.err


@pytest.mark.parametrize("arguments", AUTHOR, ids=lambda a: a[0])
def test_no_study(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    refused(command(tmp_path, *arguments), "no study here", "trapkit init")


@pytest.mark.parametrize("arguments", AUTHOR, ids=lambda a: a[0])
def test_a_study_without_git(bare: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    root = copy_study(bare, tmp_path)
    shutil.rmtree(root / ".git")
    result = command(root, *arguments)
    assert result.code == 2 and "git" in result.err and "Traceback" not in result.err


def test_git_is_not_installed(bare: Path, tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("trapkit")
    for arguments in (("verify",), ("register", RULE)):
        done = subprocess.run(
            [program, *arguments], cwd=bare, env={"PATH": str(tmp_path)}, capture_output=True, text=True
        )
        assert done.returncode == 2
        assert "git is not installed" in done.stderr


def test_a_detached_head(bare: Path, tmp_path: Path) -> None:
    root = copy_study(bare, tmp_path)
    git(root, "checkout", "-q", "--detach")
    refused(command(root, "register", RULE), "head is detached", "git switch main")


def test_another_branch(bare: Path, tmp_path: Path) -> None:
    root = copy_study(bare, tmp_path)
    git(root, "switch", "-q", "-c", "side")
    refused(command(root, "register", RULE), "another branch", "side", "git switch main")


def test_a_missing_remote(bare: Path, tmp_path: Path) -> None:
    root = copy_study(bare, tmp_path)
    git(root, "remote", "remove", "origin")
    refused(command(root, "register", RULE), "remote is missing", "git remote add origin URL")


def test_a_remote_that_does_not_answer_shows_no_credentials(bare: Path, tmp_path: Path) -> None:
    root = copy_study(bare, tmp_path)
    git(root, "remote", "set-url", "origin", "http://user:s3cret@127.0.0.1:1/x.git")
    result = command(root, "register", RULE)
    refused(result, "the remote does not answer")
    assert "s3cret" not in result.text


def test_a_dirty_rule_file(bare: Path, tmp_path: Path) -> None:
    root = copy_study(bare, tmp_path)
    (root / RULE).write_text(SMALL_CALIBRATION + "# later\n")
    refused(command(root, "register", RULE), "changes that are not committed", RULE)


def test_an_uncommitted_rule_file(bare: Path, tmp_path: Path) -> None:
    root = copy_study(bare, tmp_path)
    (root / "rules/new.yaml").write_text(SMALL_CALIBRATION)
    refused(command(root, "register", "rules/new.yaml"), "not committed", "git add rules/new.yaml")


def test_a_rule_file_that_is_not_there_or_outside(bare: Path, tmp_path: Path) -> None:
    refused(command(bare, "register", "rules/none.yaml"), "no such rule file")
    (tmp_path / "x.yaml").write_text(SMALL_CALIBRATION)
    refused(command(bare, "register", str(tmp_path / "x.yaml")), "outside the study")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("horizon_s: 120", "horizon_s: 12:30", ("ambiguous", "base 60")),
        ("population: 32", "population: 010", ("ambiguous", "octal")),
        ("caching: false", "caching: off", ("ambiguous", "true or false")),
        ("predictors: []", "predictors: &a []", ("anchors and aliases",)),
        ("predictors: []", "predictors: []\npredictors: []", ("stands twice", "predictors")),
        ("run.measured.reuse_fraction == 0.0", "run.measured.reuse == 0.0", ("unknown reading", "run.measured.reuse")),
        ("run.measured.reuse_fraction == 0.0", "run.measured.reuse_fraction / 2.0 > 1.0", ("rules do not divide",)),
        ("run.measured.reuse_fraction == 0.0", "run.measured.reuse_fraction <= 1.0", ("constant", "always true")),
        ("[0, 1]", "[0, 0]", ("listed twice",)),
        ("rates: []", "rates: [-1]", ("too small", "design.rates[0]")),
        ("end_s: 120", "end_s: 121", ("does not lie inside the run", "design.windows.measured")),
        ("horizon_s: 120", "horizon_s: .nan", ("only finite numbers",)),
    ],
)
def test_a_bad_rule_file_names_file_line_and_remedy(
    bare: Path, tmp_path: Path, old: str, new: str, words: tuple[str, ...]
) -> None:
    root = copy_study(bare, tmp_path)
    commit_file(root, RULE, SMALL_CALIBRATION.replace(old, new))
    refused(command(root, "register", RULE), *words, "all-miss-small.yaml, line ", "to do:")
    assert git(root, "tag") == ""


def test_study_yaml_is_read_strictly(bare: Path, tmp_path: Path) -> None:
    root = copy_study(bare, tmp_path)
    text = (root / "study.yaml").read_text()
    commit_file(root, "study.yaml", text + "surprise: 1\n")
    for arguments in (("register", RULE), ("verify",)):
        refused(command(root, *arguments), "unknown field surprise", "study.yaml, line ")


def test_an_absent_signing_key_and_another_s_key(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAP_SIGNING_KEY", str(tmp_path / "none"))
    refused(command(bare, "register", RULE), "the signing key is missing", "TRAP_SIGNING_KEY")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "none")], check=True)
    refused(command(bare, "register", RULE), "not the study's")


def test_the_key_never_lies_in_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAP_SIGNING_KEY", str(tmp_path / "s" / "key"))
    refused(command(tmp_path, "init", "s"), "outside the study")


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "work.txt").write_text("mine")
    refused(command(tmp_path, "init", "s", "--local-remote"), "not empty")
    refused(command(tmp_path, "demo", "s", "--fresh"), "not an earlier demo")
    assert (tmp_path / "s" / "work.txt").read_text() == "mine"


def test_unknown_commands_and_options_exit_2(bare: Path) -> None:
    for arguments in (("nothing",), ("run",), ("run", "small", "--speed", "9"), ("run", "small", "--seed", "x")):
        result = command(bare, *arguments)
        assert result.code == 2
        assert "Traceback" not in result.text


def test_a_cell_that_cannot_be_simulated_names_the_way(bare: Path, tmp_path: Path) -> None:
    root = copy_study(bare, tmp_path)
    commit_file(root, "cells/real-only.yaml", CELL_WITHOUT_COSTS)
    commit_file(root, RULE, SMALL_CALIBRATION.replace("cell: sglang-300k", "cell: real-only"))
    assert command(root, "register", RULE).code == 0
    refused(command(root, "run", "all-miss-small"), "cannot be simulated", "real engine")


def test_verify_with_an_unknown_id(finished: Path) -> None:
    refused(command(finished, "verify", "nothing"), "not registered", "all-miss-small, small")


def test_nothing_registered_is_no_success(bare: Path) -> None:
    result = command(bare, "verify")
    assert result.code == 3
    assert result.out.splitlines()[-1] == "0 proofs, 0 failures"
    assert "nothing is registered yet" in command(bare, "status").out


def test_a_nan_reading_is_not_decidable_and_not_a_pass(tmp_path: Path) -> None:
    root = empty_study(tmp_path)
    text = SMALL_CALIBRATION.replace("{start_s: 20, end_s: 120}", "{start_s: 0, end_s: 0.001}")
    commit_file(root, RULE, text)
    assert command(root, "register", RULE).code == 0
    assert command(root, "run", "all-miss-small").code == 0
    result = command(root, "verify")
    assert result.code == 3
    assert "NOT DECIDABLE" in result.out
    assert "reuse_fraction is nan" in result.out
    assert result.out.splitlines()[-1] == "1 proofs, 0 failures"


def test_readings_of_another_version_decide_nothing(finished: Path) -> None:
    evidence = gather(finished)
    tags = tuple(
        dataclasses.replace(tag, registration=dataclasses.replace(tag.registration, readings_golden_sha256="0" * 64))
        if tag.registration
        else tag
        for tag in evidence.tags
    )
    report = verify_study(dataclasses.replace(evidence, tags=tags), finished / "runs", "all-miss-small")
    assert report.exit_code == 3
    assert report.proofs[0].verdict.value is None


def test_a_table_over_the_cap_is_unprovable(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*_: object) -> None:
        raise CapExceeded("the table has too many rows", where="turns.parquet", value=1)

    monkeypatch.setattr("verifier.run_report.read_tables", too_large)
    result = command(study, "verify")
    assert result.code == 3
    assert "too many rows" in result.out


def test_hostile_text_reaches_no_terminal(tmp_path: Path) -> None:
    root = empty_study(tmp_path)
    commit_file(root, RULE, SMALL_CALIBRATION.replace("A short calibration", "A [red]short[/red] <b>*one*</b>"))
    assert command(root, "register", RULE).code == 0
    assert "A [red]short[/red] <b>*one*</b>" in command(root, "status").out
    command(root, "ledger")
    page = (root / "evidence/LEDGER.md").read_text()
    assert "<b>" not in page and "\\*one\\*" in page


def test_an_unexpected_error_ends_in_words(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cli.workflows.verify.gather", broken)
    result = command(finished, "verify")
    assert result.code == 70
    assert "No space left on device" in result.err and "Traceback" not in result.err


def test_json_output_is_one_document(finished: Path) -> None:
    result = command(finished, "verify", "--json")
    document = json.loads(result.out)
    assert (document["proof_count"], document["failure_count"], document["exit_code"]) == (2, 0, 0)
    assert os.linesep not in result.err
